//! What the tests of locking protocols share: the question checked, the answer shown.

use crate::analyze::Refusal;
use crate::locks::{Blocking, Charge, Protocol};
use crate::system::{System, SystemTask};
use crate::task::{MAX_NS, Task};
use crate::verdict::Verdict;

pub(crate) fn check(system: &System, protocol: Protocol) -> Result<(), Refusal> {
    if system.tasks.len() > MOST_TASKS {
        return Err(beyond(
            protocol.name(),
            "more than 20,000 tasks, whose pairs it looks at",
            "a test without locks",
        ));
    }
    if system.suspends() {
        return Err(beyond(protocol.name(), "self-suspension", "a test without locks"));
    }
    // It may come again after each suspension, and delay a holder for whom others wait.
    if protocol.suspends() && system.tasks.iter().any(|one| one.task.blocking_ns > 0) {
        return Err(beyond(protocol.name(), "blocking by anything but locks", "spin locks"));
    }
    if system.limits_preemption() {
        let instead = if protocol.suspends() { "a test without locks" } else { "them as blocking" };
        return Err(beyond(protocol.name(), "sections that cannot be preempted", instead));
    }
    if system.tasks.iter().any(|one| one.task.deadline_ns > one.task.period_ns) {
        return Err(beyond(protocol.name(), "deadlines beyond periods", "a test without locks"));
    }
    Ok(())
}

pub(crate) fn unanswered(system: &System) -> Verdict {
    let tasks: Vec<Task> = system.tasks.iter().map(|one| one.task).collect();
    let mut verdict = Verdict::unanswered(&tasks);
    verdict.cores = system.tasks.iter().map(|one| one.core).collect();
    verdict
}

pub(crate) fn show(system: &System, bound: &Blocking, verdict: &mut Verdict) {
    verdict.spin.clone_from(&bound.spin);
    verdict.arrival.clone_from(&bound.arrival);
    let lock = bound.spin.iter().zip(&bound.arrival).map(|(spin, arrival)| spin.saturating_add(*arrival));
    let other = system.tasks.iter().map(|one| one.task.blocking_ns);
    verdict.blocking = lock.zip(other).map(|(lock, other)| lock.saturating_add(other)).collect();
}

/// A task with its share. What exceeds the range of times exceeds every deadline, too, so cutting
/// it off there changes no verdict.
pub(crate) fn charged(task: Task, charge: Charge, spin: u64, arrival: u64) -> Task {
    let (inflation, block) = match charge {
        Charge::Blocking | Charge::Suspension => (0, spin.saturating_add(arrival)),
        Charge::SpinInflates => (spin, arrival),
        Charge::AllInflates => (spin.saturating_add(arrival), 0),
    };
    Task {
        cost_ns: task.cost_ns.saturating_add(inflation).min(MAX_NS),
        blocking_ns: task.blocking_ns.saturating_add(block).min(MAX_NS),
        ..task
    }
}

/// The response times of a system; where it has none, cost plus jitter.
pub(super) fn given_responses(system: &System) -> Vec<u64> {
    let least = |task: &Task| task.cost_ns.saturating_add(task.jitter_ns);
    let given = |one: &SystemTask| one.response_time_ns.unwrap_or_else(|| least(&one.task));
    system.tasks.iter().map(given).collect()
}

/// A pass of blocking compares each task with each other one.
pub(super) const MOST_TASKS: usize = 20_000;

pub(super) fn beyond(test: &'static str, what: &'static str, instead: &'static str) -> Refusal {
    Refusal::Beyond { test, what, instead }
}
