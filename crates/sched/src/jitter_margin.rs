//! The largest release jitter, the same for every task on top of its own, at which a set still
//! meets its deadlines: how much wake-up latency a core may show before a guarantee breaks. Exact
//! to the nanosecond.
//!
//! Why a search finds it: the right-hand side of the busy-window equation does not fall when a
//! jitter grows, so neither does its least solution (Knaster-Tarski), and R = w + J grows strictly.
//! The jitters a task tolerates are therefore all those from 0 to some largest one. For D > T the
//! same holds for every job q, and more jitter only lets more jobs into the busy window. A job
//! needs C + B after J, so no task tolerates more than D - J - B - C, and there the search begins.

use serde::{Deserialize, Serialize};

use crate::fp_rta::{Level, response_times};
use crate::largest::largest;
use crate::task::{Task, TaskSet};
use crate::verdict::Verdict;
use crate::window::{Limits, Load};

/// How much uniform release jitter a set tolerates. Arrays are indexed by task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JitterMargin {
    /// Largest jitter, added to every task, at which the set is schedulable, ns; `null` if it is
    /// not schedulable as given, or has no task to limit it.
    pub margin_ns: Option<u64>,
    /// The first task, by priority, to miss its deadline at one nanosecond more; if the set is not
    /// schedulable as given, the first that misses it then.
    pub limiting_task: Option<usize>,
    /// Largest jitter, added to every task, at which this one meets its deadline, ns.
    pub per_task_ns: Vec<Option<u64>>,
    /// The answer for the set as given.
    pub as_given: Verdict,
    /// The answer with the margin added.
    pub at_margin: Option<Verdict>,
}

/// Searches the margin of every task. A task undecided at the cap counts as late, so a margin
/// reported with tasks in `as_given.undecided` may be smaller than the true one, never larger.
pub fn jitter_margin(set: &TaskSet, limits: Limits) -> JitterMargin {
    let tasks = set.tasks();
    let margins: Vec<Option<u64>> = (0..tasks.len()).map(|i| task_margin(tasks, i, limits)).collect();
    // None sorts before every number, so a task that is late as given wins; the first of equal
    // ones.
    let limiting_task = (0..tasks.len()).min_by_key(|&index| margins[index]);
    let margin_ns = limiting_task.and_then(|index| margins[index]);
    let with_margin = margin_ns.and_then(|margin| set.with_added_jitter(margin).ok());
    JitterMargin {
        margin_ns,
        limiting_task,
        per_task_ns: margins,
        as_given: response_times(set, limits),
        at_margin: with_margin.map(|set| response_times(&set, limits)),
    }
}

/// The same for one task.
pub(crate) fn task_margin(tasks: &[Task], index: usize, limits: Limits) -> Option<u64> {
    let tolerates = |extra_jitter: u64| {
        let load = Load::of(&tasks[..index], extra_jitter);
        Level { tasks, index, extra_jitter, load: &load, limits, want_slack: false }.meets_deadline()
    };
    let task = &tasks[index];
    let fixed = task.jitter_ns + task.blocking_ns + task.cost_ns;
    let late = task.deadline_ns.checked_sub(fixed)? + 1;
    tolerates(0).then(|| largest(late, tolerates))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper_sets;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn ieee_access_set_tolerates_seven_milliseconds() {
        let set = paper_sets::IEEE_ACCESS_2020.task_set();
        let answer = jitter_margin(&set, Limits::default());
        assert_eq!(answer.margin_ns, Some(7 * MS));
        assert_eq!(answer.limiting_task, Some(0));
        // At its margin task 1 has w = 11 ms, or w = 14 ms if the third job of task 0 gets in (9 ms
        // and on).
        assert_eq!(answer.per_task_ns, [Some(7 * MS), Some(9 * MS), Some(8 * MS)]);
        let at = answer.at_margin.unwrap();
        assert_eq!(at.response_times, [Some(10 * MS), Some(18 * MS), Some(39 * MS)]);
        assert!(at.schedulable);
        let above = set.with_added_jitter(7 * MS + 1).unwrap();
        assert!(!response_times(&above, Limits::default()).schedulable);
    }

    #[test]
    fn a_set_that_fails_as_given_names_the_task_and_has_no_margin() {
        let set = TaskSet::new(vec![Task::implicit(10, 5), Task::implicit(12, 6)]).unwrap();
        let answer = jitter_margin(&set, Limits::default());
        assert_eq!((answer.margin_ns, answer.limiting_task), (None, Some(1)));
        assert_eq!(answer.per_task_ns, [Some(5), None]);
        assert!(answer.at_margin.is_none() && !answer.as_given.schedulable);
        let empty = jitter_margin(&TaskSet::default(), Limits::default());
        assert_eq!((empty.margin_ns, empty.limiting_task), (None, None));
    }

    /// The margin of a task with D <= T without any iteration. With x = w + j, the task is in time
    /// iff some x <= D - J has j <= x - (C + B + sum ceil((x + J_k) / T_k) C_k); between two
    /// releases the right side only grows with x, so the releases and the end of the range are
    /// enough to look at.
    fn margin_by_points(tasks: &[Task], index: usize) -> Option<u64> {
        let task = &tasks[index];
        let end = task.deadline_ns.checked_sub(task.jitter_ns)?;
        let releases = tasks[..index].iter().flat_map(|k| {
            (1..)
                .map(|m| m * k.period_ns)
                .skip_while(|t| *t <= k.jitter_ns)
                .map(|t| t - k.jitter_ns)
                .take_while(|x| *x <= end)
        });
        let gap = |x: u64| {
            let load: u64 =
                tasks[..index].iter().map(|k| (x + k.jitter_ns).div_ceil(k.period_ns) * k.cost_ns).sum();
            x.checked_sub(task.cost_ns + task.blocking_ns + load)
        };
        releases.chain([end]).filter_map(gap).max()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn equals_the_maximum_over_scheduling_points(
            rows in prop::collection::vec((10u64..500, 1u64..60, 30u64..101, 0u64..60, 0u64..30), 1..7),
        ) {
            let task = |&(period_ns, cost_ns, percent, jitter_ns, blocking_ns): &(u64, u64, u64, u64, u64)| Task {
                period_ns, deadline_ns: period_ns * percent / 100, cost_ns, jitter_ns, blocking_ns,
            };
            let set = TaskSet::new(rows.iter().map(task).collect()).unwrap();
            let answer = jitter_margin(&set, Limits::default());
            let expected: Vec<Option<u64>> =
                (0..rows.len()).map(|index| margin_by_points(set.tasks(), index)).collect();
            prop_assert_eq!(&answer.per_task_ns, &expected);
            prop_assert_eq!(answer.margin_ns.is_some(), answer.as_given.schedulable);
        }

        #[test]
        fn the_margin_is_the_last_jitter_that_holds(
            rows in prop::collection::vec((10u64..300, 1u64..50, 50u64..300, 0u64..40, 0u64..20), 1..5),
        ) {
            let task = |&(period_ns, cost_ns, percent, jitter_ns, blocking_ns): &(u64, u64, u64, u64, u64)| Task {
                period_ns, deadline_ns: period_ns * percent / 100, cost_ns, jitter_ns, blocking_ns,
            };
            let set = TaskSet::new(rows.iter().map(task).collect()).unwrap();
            if let Some(margin) = jitter_margin(&set, Limits::default()).margin_ns {
                let holds = |extra| crate::is_schedulable(&set.with_added_jitter(extra).unwrap(), Limits::default());
                prop_assert!(holds(margin) && !holds(margin + 1));
            }
        }
    }
}
