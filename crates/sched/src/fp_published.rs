//! Fixed-priority response times as two papers write them, to compare with the sound test: the
//! effect of a difference in the formula.
//!
//! - The replication of the RTSS 2024 paper leaves the task's own jitter out: R = C + B + sum
//!   ceil((R + J_k) / T_k) C_k, R <= D. A job that is released J late may end after its deadline:
//!   **unsound**.
//! - R. Delgado and B. W. Choi, "New insights into the real-time performance of a multicore processor", IEEE Access 8, 2020, eq. 1, puts it
//!   inside the window: R = C + B + J + sum ceil((R + J_k) / T_k) C_k. What is released while the task itself waits for its release is
//!   counted as interference: sound, and never below R = w + J of [`crate::response_times`].
//!
//! One job of a task is analysed: deadlines up to periods.

use crate::task::TaskSet;
use crate::verdict::Verdict;
use crate::window::{Demand, Limits, Load, Window, Work};

/// Whose equation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// Own jitter left out. Accepts sets in which jobs are late.
    Replication,
    /// Own jitter as part of the window.
    Access2020,
}

impl Published {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Replication, Self::Access2020];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replication => "fp-rta-replication",
            Self::Access2020 => "fp-rta-access2020",
        }
    }
}

/// Response times and verdict by one of these equations; R is what the equation calls so.
pub fn response_times_as_published(set: &TaskSet, published: Published, limits: Limits) -> Verdict {
    let tasks = set.tasks();
    let mut verdict = Verdict::unanswered(tasks);
    let (mut load, mut work) = (Load::default(), Work::of(limits));
    for (index, task) in tasks.iter().enumerate() {
        let own_jitter = match published {
            Published::Replication => 0,
            Published::Access2020 => task.jitter_ns,
        };
        let base = task.cost_ns + task.blocking_ns + own_jitter;
        let demand = Demand { base, higher: &tasks[..index], extra_jitter: 0 };
        let (mut rounds, cap) = (0, work.rounds_of(index + 1).map_or(0, |limits| limits.rounds_per_task));
        match demand.least(load.lower_bound(base), task.deadline_ns, &mut rounds, cap) {
            Window::Exact(window) => verdict.response_times[index] = Some(window),
            Window::Beyond => {}
            Window::Undecided => verdict.undecided.push(index),
        }
        work.spend(rounds, index + 1);
        verdict.rounds += rounds;
        load.add(task, 0);
    }
    verdict.schedulable = verdict.meets_deadlines();
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_NS, Task, paper_sets, response_times};
    use proptest::prelude::*;

    fn task(period_ns: u64, deadline_ns: u64, cost_ns: u64, jitter_ns: u64) -> Task {
        Task { deadline_ns, jitter_ns, ..Task::implicit(period_ns, cost_ns) }
    }

    #[test]
    fn own_jitter_left_out_accepts_a_job_that_is_late() {
        // Released 3 late, a job of 8 ends 11 after its arrival.
        let set = TaskSet::new(vec![task(20, 10, 8, 3)]).unwrap();
        let left_out = response_times_as_published(&set, Published::Replication, Limits::default());
        assert_eq!((left_out.schedulable, left_out.response_times), (true, vec![Some(8)]));
        assert!(!response_times(&set, Limits::default()).schedulable);
        assert!(!response_times_as_published(&set, Published::Access2020, Limits::default()).schedulable);
    }

    #[test]
    fn without_jitter_all_are_one() {
        let set = paper_sets::IEEE_ACCESS_2020.task_set();
        let sound = response_times(&set, Limits::default());
        for published in Published::ALL {
            let verdict = response_times_as_published(&set, published, Limits::default());
            assert_eq!((verdict.schedulable, verdict.response_times), (true, sound.response_times.clone()));
        }
    }

    #[test]
    fn the_edges_of_the_ranges_do_not_overflow() {
        let extreme = Task { blocking_ns: MAX_NS, ..task(1, MAX_NS, MAX_NS, MAX_NS) };
        for published in Published::ALL {
            let set = TaskSet::new(vec![extreme; 3]).unwrap();
            assert!(!response_times_as_published(&set, published, Limits::default()).schedulable);
        }
    }

    proptest! {
        #[test]
        fn one_is_below_the_sound_bound_and_one_is_above(
            rows in prop::collection::vec((10u64..300, 1u64..50, 50u64..101, 0u64..40, 0u64..20), 1..6),
        ) {
            let one = |&(t, c, d, j, b): &(u64, u64, u64, u64, u64)| Task { blocking_ns: b, ..task(t, t * d / 100, c, j) };
            let set = TaskSet::new(rows.iter().map(one).collect()).unwrap();
            let sound = response_times(&set, Limits::default());
            let [left_out, inside] =
                Published::ALL.map(|published| response_times_as_published(&set, published, Limits::default()));
            prop_assert!(!inside.schedulable || sound.schedulable);
            prop_assert!(!sound.schedulable || left_out.schedulable);
            for (index, response) in sound.response_times.iter().enumerate() {
                prop_assert_eq!(left_out.response_times[index], response.map(|r| r - set.tasks()[index].jitter_ns));
                prop_assert!(inside.response_times[index].is_none_or(|inside| response.is_some_and(|r| r <= inside)));
            }
        }
    }
}
