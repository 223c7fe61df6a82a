//! Earliest deadline first on one core: processor demand, evaluated only where it matters.
//!
//! A set of sporadic tasks is schedulable under preemptive EDF iff its demand in every interval of
//! length t is at most t (Baruah, Mok and Rosier, RTSS 1990). Release jitter takes J from each
//! deadline and leaves the period: a job that becomes ready J after its arrival must still end D
//! after the arrival, while the next one may be ready at once (Spuri 1996). Points are visited from
//! the longest interval downwards. A demand proves a range harmless, and that range is skipped
//! (quick processor-demand analysis: Zhang and Burns, IEEE Transactions on Computers 58(9), 2009).
//! Deadlines may exceed periods.

use crate::fp_rta::jobs_until_repetition;
use crate::task::{Task, TaskSet};
use crate::verdict::Verdict;
use crate::window::{Limits, Window, Work, least};

/// Relative slack for sums of utilizations in floating point, as in `window`.
const MARGIN: f64 = 1e-9;

/// Whether the set meets all deadlines under preemptive EDF. No response times; blocking counts
/// against every interval, as under the stack resource policy for the whole set (Baker 1991): the
/// largest blocking of the set.
pub fn edf_qpa(set: &TaskSet, limits: Limits) -> Verdict {
    edf_qpa_within(set, limits, &mut Work::of(limits))
}

/// The same as part of a larger question.
pub(crate) fn edf_qpa_within(set: &TaskSet, limits: Limits, work: &mut Work) -> Verdict {
    let tasks = set.tasks();
    let mut verdict = Verdict::unanswered(tasks);
    let decided = decide_within(tasks, limits, work, &mut Vec::new());
    verdict.rounds = decided.rounds;
    match decided.answer {
        Some(answer) => verdict.schedulable = answer,
        None => verdict.undecided = (0..tasks.len()).collect(),
    }
    verdict
}

/// What came out, and its price.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decided {
    /// None where the cap on rounds came first.
    pub(crate) answer: Option<bool>,
    pub(crate) rounds: u64,
}

/// Decides a set; `shifted` is memory that may be used again.
pub(crate) fn decide_within(
    tasks: &[Task],
    limits: Limits,
    work: &mut Work,
    shifted: &mut Vec<Shifted>,
) -> Decided {
    let rounds_left = work.rounds_left(tasks.len());
    let cap = limits.rounds_per_task.saturating_mul(tasks.len() as u64).min(rounds_left);
    let mut rounds = 0;
    let answer = decide(tasks, cap, &mut rounds, shifted);
    work.spend(rounds, tasks.len());
    Decided { answer, rounds }
}

/// A task with its jitter taken from its deadline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shifted {
    pub(crate) period: u64,
    pub(crate) deadline: u64,
    pub(crate) cost: u64,
}

/// Yes, no, or none where the cap on rounds came first.
fn decide(tasks: &[Task], cap: u64, rounds: &mut u64, shifted: &mut Vec<Shifted>) -> Option<bool> {
    shifted.clear();
    for task in tasks {
        let deadline =
            task.deadline_ns.checked_sub(task.jitter_ns).filter(|&deadline| task.cost_ns <= deadline);
        let Some(deadline) = deadline else { return Some(false) };
        shifted.push(Shifted { period: task.period_ns, deadline, cost: task.cost_ns });
    }
    let blocking = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
    let Some(shortest) = shifted.iter().map(|task| task.deadline).min() else { return Some(true) };
    let utilization: f64 = tasks.iter().map(Task::utilization).sum();
    if utilization > 1.0 + MARGIN {
        return Some(false);
    }
    let longest = longest_interval(tasks, shifted, blocking, utilization, rounds, cap)?;
    let Some(mut t) = last_deadline_before(shifted, longest.saturating_add(1)) else { return Some(true) };
    loop {
        if *rounds >= cap {
            return None;
        }
        *rounds += 1;
        let demand = demand(shifted, t).saturating_add(blocking);
        if demand > t {
            return Some(false);
        }
        if demand <= shortest {
            // What is left are intervals as short as the shortest deadline, in which only that
            // deadline's jobs count.
            return Some(self::demand(shifted, shortest).saturating_add(blocking) <= shortest);
        }
        t = if demand < t { demand } else { last_deadline_before(shifted, t)? };
    }
}

/// The longest interval to check: where demand exceeds a longer one, it also exceeds a shorter one.
/// The shorter of a bound by utilization (Zhang and Burns, theorem 2) and of the synchronous busy
/// period.
pub(crate) fn longest_interval(
    tasks: &[Task],
    shifted: &[Shifted],
    blocking: u64,
    utilization: f64,
    rounds: &mut u64,
    cap: u64,
) -> Option<u64> {
    let idle = 1.0 - utilization - MARGIN;
    let by_utilization = (idle > 0.0).then(|| {
        let late = |task: &Shifted| {
            task.cost as f64 / task.period as f64 * (task.period as f64 - task.deadline as f64)
        };
        let sum: f64 = shifted.iter().map(|task| late(task).max(0.0)).sum::<f64>() + blocking as f64;
        let beyond = shifted.iter().map(|task| task.deadline.saturating_sub(task.period)).max().unwrap_or(0);
        ((sum / idle * (1.0 + MARGIN) + 1.0) as u64).max(beyond)
    });
    let start = tasks.iter().map(|task| task.cost_ns).sum::<u64>().saturating_add(blocking);
    let limit = by_utilization.unwrap_or(u64::MAX / 2);
    if blocking > 0
        && by_utilization.is_none()
        && let Some(longest) = repetition(tasks)
    {
        // A full core never works off what blocked it, so there is no busy period.
        return Some(longest);
    }
    match busy_period(tasks, blocking, start.min(limit), limit, rounds, cap) {
        Window::Exact(length) => Some(length.min(limit)),
        Window::Beyond | Window::Undecided => by_utilization.or_else(|| repetition(tasks)),
    }
}

/// The synchronous busy period: the least L > 0 that is not shorter than the demand of all jobs
/// released in it, jitter left out. As [`crate::window::Demand::least`].
fn busy_period(tasks: &[Task], blocking: u64, start: u64, limit: u64, rounds: &mut u64, cap: u64) -> Window {
    let at = |length: u64| {
        tasks.iter().fold(blocking, |sum: u64, task| {
            sum.saturating_add(length.div_ceil(task.period_ns).saturating_mul(task.cost_ns))
        })
    };
    least(at, start, limit, rounds, cap)
}

/// With a utilization of exactly 1, demand repeats: a hyperperiod H adds H, from the longest
/// deadline on. No longer interval is worse.
pub(crate) fn repetition(tasks: &[Task]) -> Option<u64> {
    let own_periods = jobs_until_repetition(tasks)?.checked_add(1)?;
    let hyperperiod = own_periods.checked_mul(tasks.last()?.period_ns)?;
    hyperperiod.checked_add(tasks.iter().map(|task| task.deadline_ns).max()?)
}

/// Demand of the jobs that arrive and are due within an interval of this length.
pub(crate) fn demand(tasks: &[Shifted], t: u64) -> u64 {
    tasks.iter().filter(|task| task.deadline <= t).fold(0, |sum: u64, task| {
        let jobs = (t - task.deadline) / task.period + 1;
        sum.saturating_add(jobs.saturating_mul(task.cost))
    })
}

/// The longest interval below `t` that ends at a deadline.
pub(crate) fn last_deadline_before(tasks: &[Shifted], t: u64) -> Option<u64> {
    let last = |task: &Shifted| {
        let room = t.checked_sub(1)?.checked_sub(task.deadline)?;
        Some(task.deadline + room / task.period * task.period)
    };
    tasks.iter().filter_map(last).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(period_ns: u64, deadline_ns: u64, cost_ns: u64, jitter_ns: u64) -> Task {
        Task { deadline_ns, jitter_ns, ..Task::implicit(period_ns, cost_ns) }
    }

    fn answer(tasks: &[Task]) -> bool {
        let verdict = edf_qpa(&TaskSet::new(tasks.to_vec()).unwrap(), Limits::default());
        assert!(verdict.undecided.is_empty());
        verdict.schedulable
    }

    /// Every interval up to twice the hyperperiod and the longest deadline.
    fn by_definition(tasks: &[Task]) -> bool {
        let utilization: u64 = tasks.iter().map(|task| 27_720 / task.period_ns * task.cost_ns).sum();
        if utilization > 27_720 {
            return false;
        }
        let shifted: Option<Vec<Shifted>> = tasks
            .iter()
            .map(|task| {
                let deadline = task.deadline_ns.checked_sub(task.jitter_ns)?;
                Some(Shifted { period: task.period_ns, deadline, cost: task.cost_ns })
            })
            .collect();
        shifted.is_some_and(|shifted| (0..=60_000).all(|t| demand(&shifted, t) <= t))
    }

    #[test]
    fn a_full_core_is_schedulable_with_a_little_jitter_and_no_more() {
        assert!(answer(&[task(10, 10, 5, 0), task(14, 14, 7, 1)]));
        // In 40 ns four jobs of the first and three of the second are due: 41 ns.
        assert!(!answer(&[task(10, 10, 5, 0), task(14, 14, 7, 2)]));
        assert!(answer(&[]));
        assert!(!answer(&[task(10, 3, 4, 0)]));
        assert!(!answer(&[task(10, 5, 4, 2)]));
    }

    #[test]
    fn deadlines_beyond_periods_and_jitter_beyond_deadlines() {
        assert!(answer(&[task(4, 100, 2, 0), task(6, 100, 3, 0)]));
        assert!(!answer(&[task(4, 9, 2, 10), task(6, 100, 3, 0)]));
    }

    #[test]
    fn a_full_core_with_blocking_is_decided_by_its_hyperperiod() {
        let blocked = |task: Task| Task { blocking_ns: 4, ..task };
        assert!(!answer(&[blocked(task(15, 15, 15, 0))]));
        assert!(answer(&[blocked(task(15, 19, 15, 0))]));
        assert!(!answer(&[blocked(task(15, 19, 15, 1))]));
        assert!(answer(&[blocked(task(10, 14, 5, 0)), task(14, 18, 7, 0)]));
    }

    #[test]
    fn overload_is_refused_and_extremes_do_not_overflow() {
        assert!(!answer(&[task(10, 10, 6, 0), task(10, crate::MAX_NS, 5, 0)]));
        assert!(!answer(&[task(1, crate::MAX_NS, crate::MAX_NS, 0)]));
        assert!(answer(&[task(crate::MAX_NS, crate::MAX_NS, crate::MAX_NS, 0)]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        // Releases no closer than T - J that are due D - J later: what is accepted so is accepted
        // exactly.
        #[test]
        fn counted_from_releases_nothing_more_is_accepted(
            tasks in prop::collection::vec((5u64..25, 1u64..6, 40u64..260, 0u64..6), 1..5)
        ) {
            let tasks: Vec<Task> = tasks.iter().map(|&(t, c, d, j)| task(t, (t * d / 100).max(1), c.min(t), j)).collect();
            if let Some(released) = tasks.iter().map(Task::from_release).collect::<Option<Vec<_>>>() {
                prop_assert!(!answer(&released) || answer(&tasks));
            }
        }

        #[test]
        fn as_by_definition(
            tasks in prop::collection::vec(
                (prop::sample::select(vec![5u64, 7, 8, 9, 10, 11, 12, 20, 24]), 1u64..6, 40u64..260, 0u64..6), 1..5)
        ) {
            let tasks: Vec<Task> =
                tasks.iter().map(|&(t, c, d, j)| task(t, (t * d / 100).max(1), c.min(t), j)).collect();
            prop_assert_eq!(answer(&tasks), by_definition(&tasks));
        }

        #[test]
        fn monotone(
            tasks in prop::collection::vec((10u64..100, 1u64..20, 0u64..9, 0u64..5), 1..6), at in 0usize..6, by in 1u64..5,
        ) {
            let mut tasks: Vec<Task> = tasks.iter().map(|&(t, c, j, b)| Task { blocking_ns: b, ..task(t, t, c, j) }).collect();
            let before = answer(&tasks);
            let at = at % tasks.len();
            tasks[at].cost_ns += by;
            prop_assert!(before || !answer(&tasks));
        }
    }
}
