//! Yes or no for fixed priorities, without the response times: constant-time bounds first,
//! iteration only for the tasks they leave open. Same verdict as [`crate::response_times`], several
//! times as fast.
//!
//! A task with D <= T is accepted if the upper bound on its window is within D - J and rejected if
//! the lower bound is not (Bini and Baruah 2007). The rest is iterated lowest priority first, where
//! a set is most likely to fail.

use crate::fp_rta::Level;
use crate::task::{Task, TaskSet};
use crate::window::{Limits, Load, Window};

/// Whether every task meets its deadline; a task undecided at the cap counts as not.
pub fn is_schedulable(set: &TaskSet, limits: Limits) -> bool {
    let tasks = set.tasks();
    let mut load = Load::default();
    let mut open = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        match by_bounds(task, &load) {
            Bound::Meets => {}
            Bound::Misses => return false,
            Bound::Open => open.push((index, load)),
        }
        load.add(task, 0);
    }
    open.iter().rev().all(|(index, load)| meets_deadline(tasks, *index, load, limits))
}

enum Bound {
    Meets,
    Misses,
    Open,
}

fn by_bounds(task: &Task, higher: &Load) -> Bound {
    let base = task.cost_ns + task.blocking_ns;
    let Some(allowed) = task.deadline_ns.checked_sub(task.jitter_ns) else { return Bound::Misses };
    // Also for D > T: the first job of the busy window must be in time, too.
    if higher.lower_bound(base) > allowed {
        Bound::Misses
    } else if task.deadline_ns <= task.period_ns
        && higher.upper_bound(base).is_some_and(|upper| upper <= allowed as f64)
    {
        Bound::Meets
    } else {
        Bound::Open
    }
}

fn meets_deadline(tasks: &[Task], index: usize, load: &Load, limits: Limits) -> bool {
    let task = &tasks[index];
    let level = Level { tasks, index, extra_jitter: 0, load, limits, want_slack: false };
    if task.deadline_ns > task.period_ns {
        return level.meets_deadline();
    }
    let demand = level.demand(task.cost_ns + task.blocking_ns);
    // Stopping at D - J instead of D saves the rounds that could only end in a late response.
    let allowed = task.deadline_ns.saturating_sub(task.jitter_ns);
    let start = load.lower_bound(demand.base);
    matches!(demand.least(start, allowed, &mut 0, limits.rounds_per_task), Window::Exact(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response_times;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn same_verdict_as_the_response_times(
            rows in prop::collection::vec((10u64..1000, 1u64..120, 20u64..250, 0u64..60, 0u64..30), 0..12),
        ) {
            let task = |&(period_ns, cost_ns, percent, jitter_ns, blocking_ns): &(u64, u64, u64, u64, u64)| Task {
                period_ns, deadline_ns: (period_ns * percent / 100).max(1), cost_ns, jitter_ns, blocking_ns,
            };
            let mut tasks: Vec<Task> = rows.iter().map(task).collect();
            tasks.sort_by_key(|task| task.deadline_ns);
            let set = TaskSet::new(tasks).unwrap();
            let full = response_times(&set, Limits::default());
            prop_assert!(full.undecided.is_empty());
            prop_assert_eq!(is_schedulable(&set, Limits::default()), full.schedulable);
        }
    }
}
