//! The probability that a job is late, from measured release latencies: fixed priorities, one core.
//!
//! Costs are as given. The only random quantity is L, by which a release is later than it would be.
//! Known is a bound of P(L > x) for every x, the same for every release. How releases depend on one
//! another is unknown, and nothing is assumed about it.
//!
//! **The bound of a job of task i.** Let b be its budget, the largest L at which it meets its
//! deadline if no release is later ([`crate::jitter_margin`]). A job that is late is in a level-i
//! busy window from t0 to beyond its deadline, and what was done before t0 does not bear on it. If
//! no release in that window were later than b, response-time analysis says that it is in time. So
//! one of them was, and by the union bound
//!
//! > P(late) <= n_i P(L > b), n_i = sum over k up to i of ceil((w + J_k + l) / T_k),
//!
//! w = B + sum ceil((w + J_k + l) / T_k) C_k the longest level-i busy window where no release at
//! all is more than l late. That l is the only assumption about the unmeasured: without it,
//! releases of long ago could all arrive at once.
//!
//! **The critical instant, revised.** That all tasks are released at once is not the worst case for
//! probabilities: Chen, Guenzel, von der Brueggen and Chen, "Critical instant for probabilistic
//! timing guarantees: refuted and revisited", RTSS 2022. Where jobs are stopped at their deadlines,
//! D <= T, at most one job of each higher-priority task is left over when a job becomes ready, and
//! adding it is sound. With costs that do not vary nothing is left to be convolved: those jobs are
//! counted however late they were released, and
//!
//! > P(late) <= P(L > D - J - w'), w' = C + B + sum over higher priorities of (ceil(w' / T_k) + 1) C_k.
//!
//! **An estimate, no bound** (`sums`): latencies independent and taking the core's time, from the
//! classical critical instant, convolved. Takahashi, Yano and Azumi, "Accelerating probabilistic
//! response-time analysis" (arXiv 2512.01381) is the state of that art.

mod exceedance;
mod on_cores;
mod sums;

use crate::fp_rta::{Level, Outcome};
use crate::jitter_margin::task_margin;
use crate::task::{MAX_NS, Task, TaskSet};
use crate::window::{Demand, Limits, Load, Window};
use serde::Serialize;

pub use exceedance::{Exceedance, ExceedanceError};
pub use on_cores::{LatestError, OnCore, Releases, on_cores};
pub use sums::Shares;

/// What is known of one task. Probabilities are of one job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Likelihood {
    /// Latest release, of all tasks at once, at which it meets its deadline, ns; none where it is
    /// late without.
    pub budget_ns: Option<u64>,
    /// Releases that bear on one job; none where busy windows have no end that could be found.
    pub releases: Option<u64>,
    /// Bound of the probability that a job is late; 1 where nothing better is known.
    pub late_at_most: f64,
    /// The same if jobs are stopped at their deadlines; none for deadlines beyond periods.
    pub late_at_most_if_stopped: Option<f64>,
    /// Estimate of it, no bound; none where it would take too long.
    pub late_estimate: Option<f64>,
}

/// Bounds for every task of one core. No release is more than `latest_ns` late; `shares` are the
/// observed ones.
pub fn likelihoods(
    set: &TaskSet,
    exceedance: &Exceedance,
    shares: &Shares,
    latest_ns: u64,
    limits: Limits,
) -> Vec<Likelihood> {
    let tasks = set.tasks();
    let one = |index: usize| {
        let budget_ns = task_margin(tasks, index, limits);
        let releases = releases(tasks, index, latest_ns, limits);
        let bound =
            budget_ns.zip(releases).map(|(budget_ns, releases)| releases as f64 * exceedance.at(budget_ns));
        Likelihood {
            budget_ns,
            releases,
            late_at_most: bound.unwrap_or(1.0).min(1.0),
            late_at_most_if_stopped: if_stopped(tasks, index, exceedance, limits),
            late_estimate: sums::estimate(tasks, index, shares),
        }
    };
    (0..tasks.len()).map(one).collect()
}

/// A response time, from the arrival, that a job of this task exceeds with at most this
/// probability. None where the measurement does not reach that probability, and beyond the
/// deadline: there jobs of a task meet one another.
pub fn response_at(
    set: &TaskSet,
    index: usize,
    likelihood: &Likelihood,
    exceedance: &Exceedance,
    probability: f64,
    limits: Limits,
) -> Option<u64> {
    let tasks = set.tasks();
    let extra_jitter = exceedance.least_for(probability / likelihood.releases? as f64)?;
    let load = Load::of(&tasks[..index], extra_jitter);
    match (Level { tasks, index, extra_jitter, load: &load, limits, want_slack: false }).response().outcome {
        Outcome::Within { response_ns, .. } => Some(response_ns).filter(|ns| *ns <= tasks[index].deadline_ns),
        Outcome::Beyond | Outcome::Undecided => None,
    }
}

/// n_i: jobs whose releases can be in the level-i busy window of one job.
fn releases(tasks: &[Task], index: usize, latest_ns: u64, limits: Limits) -> Option<u64> {
    let level = &tasks[..=index];
    let load = Load::of(level, latest_ns);
    if load.overloaded() {
        return None;
    }
    let base = tasks[index].blocking_ns;
    let demand = Demand { base, higher: level, extra_jitter: latest_ns };
    // From a start above 0: a window of 0 would be a trivial solution.
    let start = load.lower_bound(base).max(1);
    let window = match demand.least(start, MAX_NS, &mut 0, limits.rounds_per_task) {
        Window::Exact(window) => window,
        Window::Beyond | Window::Undecided => return None,
    };
    let of = |task: &Task| {
        window.saturating_add(task.jitter_ns).saturating_add(latest_ns).div_ceil(task.period_ns)
    };
    Some(level.iter().fold(0, |sum: u64, task| sum.saturating_add(of(task))))
}

/// With one job left over of each task above.
fn if_stopped(tasks: &[Task], index: usize, exceedance: &Exceedance, limits: Limits) -> Option<f64> {
    let level = &tasks[..=index];
    if level.iter().any(|task| task.deadline_ns > task.period_ns) {
        return None;
    }
    let task = &tasks[index];
    let at_once: Vec<Task> =
        tasks[..index].iter().map(|task| Task { jitter_ns: task.period_ns, ..*task }).collect();
    let base = task.cost_ns + task.blocking_ns;
    let demand = Demand { base, higher: &at_once, extra_jitter: 0 };
    let start = Load::of(&at_once, 0).lower_bound(base);
    let room = match demand.least(start, task.deadline_ns, &mut 0, limits.rounds_per_task) {
        Window::Exact(window) => task.deadline_ns.checked_sub(window + task.jitter_ns),
        Window::Beyond | Window::Undecided => None,
    };
    Some(room.map_or(1.0, |room| exceedance.at(room)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L is 2 with probability 0.01, and else 0.
    fn two() -> (Exceedance, Shares) {
        let exceedance = Exceedance::new(vec![(0, 0.01), (2, 0.0)]).unwrap();
        (exceedance, Shares::new(&[(0, 99), (2, 1)]))
    }

    #[test]
    fn by_hand() {
        let (exceedance, shares) = two();
        let set = TaskSet::new(vec![Task::implicit(10, 3), Task { deadline_ns: 8, ..Task::implicit(20, 5) }])
            .unwrap();
        let tasks = likelihoods(&set, &exceedance, &shares, 2, Limits::default());
        // Alone it has 7 to spare, more than L is ever late.
        assert_eq!((tasks[0].budget_ns, tasks[0].releases), (Some(7), Some(1)));
        assert!(tasks[0].late_at_most.abs() < 1e-15);
        // 3 + 5 = 8: nothing to spare. w = 3 ceil((w + 2) / 10) + 5 = 8 ends at the second release,
        // w + 2 = 10; one each.
        assert_eq!((tasks[1].budget_ns, tasks[1].releases), (Some(0), Some(2)));
        assert!((tasks[1].late_at_most - 0.02).abs() < 1e-15);
        // 5 + 2 * 3 is beyond the deadline: nothing is known if jobs are stopped.
        assert_eq!(tasks[1].late_at_most_if_stopped, Some(1.0));
        assert_eq!(tasks[0].late_at_most_if_stopped, Some(0.0));
        // Of two releases one is late: 1 - 0.99^2.
        assert!((tasks[1].late_estimate.unwrap() - 0.0199).abs() < 1e-12, "{tasks:?}");
        let at = |probability| response_at(&set, 0, &tasks[0], &exceedance, probability, Limits::default());
        assert_eq!([at(0.5), at(0.01), at(0.009)], [Some(3), Some(3), Some(5)]);
    }

    #[test]
    fn what_was_not_measured_bears_nothing() {
        // Never later than 2 in a thousand: 3 in a thousand at most.
        let exceedance = Exceedance::new(vec![(0, 0.02), (2, 0.003)]).unwrap();
        let (_, shares) = two();
        let set = TaskSet::new(vec![Task::implicit(10, 3)]).unwrap();
        let tasks = likelihoods(&set, &exceedance, &shares, 5, Limits::default());
        assert!((tasks[0].late_at_most - 0.003).abs() < 1e-15, "{tasks:?}");
        assert_eq!(response_at(&set, 0, &tasks[0], &exceedance, 0.003, Limits::default()), Some(5));
        assert_eq!(response_at(&set, 0, &tasks[0], &exceedance, 0.002, Limits::default()), None);
    }

    #[test]
    fn overload_and_lateness_as_given_are_certain() {
        let (exceedance, shares) = two();
        let set = TaskSet::new(vec![Task::implicit(10, 10), Task::implicit(20, 5)]).unwrap();
        let tasks = likelihoods(&set, &exceedance, &shares, 2, Limits::default());
        assert_eq!((tasks[1].budget_ns, tasks[1].releases), (None, None));
        assert!((tasks[1].late_at_most - 1.0).abs() < 1e-15);
        let edge = Task { blocking_ns: MAX_NS, jitter_ns: MAX_NS, ..Task::implicit(1, MAX_NS) };
        let set = TaskSet::new(vec![edge; 2]).unwrap();
        assert!(
            likelihoods(&set, &exceedance, &shares, MAX_NS, Limits::default())
                .iter()
                .all(|one| one.late_at_most >= 1.0)
        );
    }
}
