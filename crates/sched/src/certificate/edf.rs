//! Certificates under EDF: a busy window and the intervals that quick processor-demand analysis
//! visits in it, or one that is overfull.
//!
//! If B and the work released in L fit into L, then for t > L the demand is at most that work and
//! the demand in t - L: where t is overfull, so is a shorter interval. Below L, demand h in t
//! proves all of [h + B, t], as demand does not fall with the interval (Zhang and Burns, IEEE
//! Transactions on Computers 58(9), 2009).

use super::{Proof, overloads};
use crate::edf_qpa::repetition;
use crate::task::Task;
use crate::window::{Demand, Limits, Window};

pub(super) fn prove(tasks: &[Task], limits: Limits) -> Proof {
    let hopeless =
        |task: &Task| task.deadline_ns.checked_sub(task.jitter_ns).is_none_or(|left| task.cost_ns > left);
    if let Some(task) = tasks.iter().position(hopeless) {
        return Proof::Hopeless { task };
    }
    if overloads(tasks) {
        return Proof::Overload { task: tasks.len() - 1 };
    }
    let blocking = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
    let cap = limits.rounds_per_task.saturating_mul(tasks.len() as u64);
    let mut rounds = 0;
    let full = if blocking > 0 { repetition(tasks) } else { None };
    let busy = match full {
        // A full core never works off what blocked it. Lateness can still be proved.
        Some(_) => None,
        None => busy_window(tasks, blocking, &mut rounds, cap),
    };
    let Some(longest) = busy.or(full) else { return Proof::Open };
    let mut points_ns = Vec::new();
    let mut next = last_deadline_below(tasks, longest.saturating_add(1));
    while let Some(point) = next {
        if rounds >= cap {
            return Proof::Open;
        }
        rounds += 1;
        let demand = demand(tasks, point).saturating_add(blocking);
        if demand > point {
            return Proof::EdfLate { interval_ns: point };
        }
        points_ns.push(point);
        next = last_deadline_below(tasks, demand);
    }
    busy.map_or(Proof::Open, |busy_ns| Proof::EdfInTime { busy_ns, points_ns })
}

/// The least window at whose end all work released in it is done.
fn busy_window(tasks: &[Task], blocking: u64, rounds: &mut u64, cap: u64) -> Option<u64> {
    let plain: Vec<Task> = tasks.iter().map(|task| Task { jitter_ns: 0, ..*task }).collect();
    let start = plain.iter().fold(blocking, |sum, task| sum.saturating_add(task.cost_ns));
    let busy = Demand { base: blocking, higher: &plain, extra_jitter: 0 };
    match busy.least(start, u64::MAX / 4, rounds, cap) {
        Window::Exact(length) => Some(length),
        Window::Beyond | Window::Undecided => None,
    }
}

/// Demand of the jobs that arrive and are due within an interval of this length, with deadline D -
/// J instead of D.
fn demand(tasks: &[Task], interval: u64) -> u64 {
    tasks.iter().fold(0, |sum: u64, task| {
        let jobs = (interval + task.jitter_ns)
            .checked_sub(task.deadline_ns)
            .map_or(0, |room| room / task.period_ns + 1);
        sum.saturating_add(jobs.saturating_mul(task.cost_ns))
    })
}

/// The longest interval below `end` that ends with a deadline.
fn last_deadline_below(tasks: &[Task], end: u64) -> Option<u64> {
    let last = |task: &Task| {
        let first = task.deadline_ns - task.jitter_ns;
        let room = end.checked_sub(1)?.checked_sub(first)?;
        Some(first + room / task.period_ns * task.period_ns)
    };
    tasks.iter().filter_map(last).max()
}
