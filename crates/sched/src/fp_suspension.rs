//! Fixed-priority response times of tasks that suspend themselves, suspension treated as release
//! jitter.
//!
//! A task of higher priority that suspends for up to S in total interferes as if its release jitter
//! were R - C; a task's own suspension counts as its own demand, w = C + B + S + interference.
//! Sound for D <= T: Chen et al., "Many suspensions, many problems: a review of self-suspending
//! tasks in real-time systems", Real-Time Systems 55, 2019, section 4. Not exact. It needs the
//! response times of all suspending tasks above, so everything below one that has none is left
//! without one too.

use thiserror::Error;

use crate::fp_rta::{Level, Outcome};
use crate::task::{Task, TaskSet};
use crate::verdict::Verdict;
use crate::window::{Limits, Load, Work};

/// Why the question cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SuspensionError {
    /// Not one suspension a task.
    #[error("{suspensions} suspensions for {tasks} tasks, expected one a task")]
    Count {
        /// Suspensions given.
        suspensions: usize,
        /// Tasks in the set.
        tasks: usize,
    },
    /// A deadline beyond the period, for which the analysis is not proven.
    #[error("task {task}: deadline_ns is {deadline_ns}, expected at most its period_ns, {period_ns}")]
    ArbitraryDeadline {
        /// Index of the task.
        task: usize,
        /// Its deadline.
        deadline_ns: u64,
        /// Its period.
        period_ns: u64,
    },
}

/// Response times of tasks that suspend for at most `suspensions_ns[i]` a job, in total.
///
/// [`Verdict::blocking`] stays the blocking given; suspensions are not added to it.
pub fn response_times_with_suspension(
    set: &TaskSet,
    suspensions_ns: &[u64],
    limits: Limits,
) -> Result<Verdict, SuspensionError> {
    let tasks = set.tasks();
    check(tasks, suspensions_ns)?;
    let demands: Vec<Demand> =
        suspensions_ns.iter().map(|&added_ns| Demand { added_ns, suspends: added_ns > 0 }).collect();
    Ok(response_times_of_demands(tasks, &demands, limits))
}

/// What a task has beside its cost and blocking.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// The longest that a job suspends and is blocked otherwise.
    pub(crate) added_ns: u64,
    /// Whether it leaves the processor to tasks below before it ends.
    pub(crate) suspends: bool,
}

/// The same for tasks that suspend, or only may.
pub(crate) fn response_times_of_demands(tasks: &[Task], demands: &[Demand], limits: Limits) -> Verdict {
    let mut verdict = Verdict::unanswered(tasks);
    let mut work = Work::of(limits);
    // The tasks above, with the release jitter by which each interferes.
    let mut higher: Vec<Task> = Vec::with_capacity(tasks.len());
    for (index, (task, demand)) in tasks.iter().zip(demands).enumerate() {
        let blocking_ns = task.blocking_ns.saturating_add(demand.added_ns);
        higher.push(Task { blocking_ns, ..*task });
        let Some(limits) = work.rounds_of(index + 1) else {
            verdict.undecided.extend(index..tasks.len());
            break;
        };
        let load = Load::of(&higher[..index], 0);
        let response =
            Level { tasks: &higher, index, extra_jitter: 0, load: &load, limits, want_slack: false }
                .response();
        work.spend(response.rounds, index + 1);
        verdict.rounds += response.rounds;
        match response.outcome {
            Outcome::Within { response_ns, .. } => verdict.response_times[index] = Some(response_ns),
            Outcome::Beyond => {}
            Outcome::Undecided => verdict.undecided.push(index),
        }
        if demand.suspends {
            let Some(response_ns) = verdict.response_times[index] else { break };
            higher[index].jitter_ns = response_ns - task.cost_ns;
        }
    }
    verdict.schedulable = verdict.meets_deadlines();
    verdict
}

fn check(tasks: &[Task], suspensions_ns: &[u64]) -> Result<(), SuspensionError> {
    if tasks.len() != suspensions_ns.len() {
        return Err(SuspensionError::Count { suspensions: suspensions_ns.len(), tasks: tasks.len() });
    }
    check_deadlines(tasks, suspensions_ns)
}

/// Refuses a suspending task that may not be done when its next job comes. Of others, several jobs
/// may be pending: what interferes with them does so in any interval alike.
pub(crate) fn check_deadlines(tasks: &[Task], suspensions_ns: &[u64]) -> Result<(), SuspensionError> {
    let is_late =
        |(task, suspension_ns): (&Task, &u64)| *suspension_ns > 0 && task.deadline_ns > task.period_ns;
    match tasks.iter().zip(suspensions_ns).position(is_late) {
        None => Ok(()),
        Some(task) => Err(SuspensionError::ArbitraryDeadline {
            task,
            deadline_ns: tasks[task].deadline_ns,
            period_ns: tasks[task].period_ns,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response_times;
    use proptest::prelude::*;

    fn set(rows: &[(u64, u64)]) -> TaskSet {
        TaskSet::new(rows.iter().map(|&(period, cost)| Task::implicit(period, cost)).collect()).unwrap()
    }

    #[test]
    fn a_suspending_task_interferes_as_if_released_late() {
        // Task 0: w = 2 + 3 = 5, so it interferes with jitter 3. Task 1: w = 4 + 2 = 6, and 6 + 3 <
        // 10.
        let answer =
            response_times_with_suspension(&set(&[(10, 2), (40, 4)]), &[3, 0], Limits::default()).unwrap();
        assert_eq!(answer.response_times, [Some(5), Some(6)]);
        // At cost 6 the jitter brings in a second job of task 0: w = 6 + 4.
        let answer =
            response_times_with_suspension(&set(&[(10, 2), (40, 6)]), &[3, 0], Limits::default()).unwrap();
        assert_eq!(answer.response_times, [Some(5), Some(10)]);
    }

    #[test]
    fn what_delays_a_suspending_task_adds_to_its_jitter() {
        // Task 1: w = 5 + 3 + 2 = 10, jitter 10 - 5 = 5, more than its suspension. Task 2: 46 + 5 >
        // 50 brings in its second job, where 46 + 3 would not: w = 31 + 6 * 2 + 2 * 5.
        let set = set(&[(10, 2), (50, 5), (100, 31)]);
        let answer = response_times_with_suspension(&set, &[0, 3, 0], Limits::default()).unwrap();
        assert_eq!(answer.response_times, [Some(2), Some(10), Some(53)]);
    }

    #[test]
    fn below_a_suspending_task_that_fails_nothing_is_claimed() {
        let set = set(&[(10, 2), (40, 4)]);
        let answer = response_times_with_suspension(&set, &[9, 0], Limits::default()).unwrap();
        assert_eq!(answer.response_times, [None, None]);
        assert!(!answer.schedulable);
    }

    #[test]
    fn bad_questions_say_what_was_expected() {
        let late = Task { deadline_ns: 11, ..Task::implicit(10, 2) };
        let set = TaskSet::new(vec![late]).unwrap();
        let ask = |suspensions: &[u64]| {
            response_times_with_suspension(&set, suspensions, Limits::default()).unwrap_err().to_string()
        };
        assert_eq!(ask(&[]), "0 suspensions for 1 tasks, expected one a task");
        assert_eq!(ask(&[1]), "task 0: deadline_ns is 11, expected at most its period_ns, 10");
    }

    proptest! {
        #[test]
        fn without_suspensions_it_is_the_plain_analysis_and_they_never_help(
            rows in prop::collection::vec((10u64..200, 1u64..30, 0u64..20), 0..6), suspension in 1u64..20,
        ) {
            let set = set(&rows.iter().map(|&(t, c, _)| (t, c)).collect::<Vec<_>>());
            let none = vec![0; rows.len()];
            let plain = response_times(&set, Limits::default());
            let verdict = response_times_with_suspension(&set, &none, Limits::default()).unwrap();
            prop_assert_eq!((verdict.schedulable, &verdict.response_times), (plain.schedulable, &plain.response_times));
            let some: Vec<u64> = rows.iter().map(|&(.., s)| s * suspension / 20).collect();
            let harder = response_times_with_suspension(&set, &some, Limits::default()).unwrap();
            for (easy, hard) in plain.response_times.iter().zip(&harder.response_times) {
                prop_assert!(hard.is_none() || easy <= hard);
            }
        }
    }
}
