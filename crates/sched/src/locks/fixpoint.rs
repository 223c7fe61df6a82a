//! Blocking and response times that depend on each other: the least pair that satisfies both.
//!
//! How much others can block a job depends on how long it and they are pending, and that on the
//! blocking. Both grow with one another, so iteration from R = C + J upwards reaches the least
//! fixpoint (Wieder and Brandenburg, RTSS 2013, section II; Brandenburg's thesis, 2011). Only the
//! fixpoint is a bound: if some window outgrows its deadline on the way, the set has no response
//! times at all. Deadlines are at most periods, so one job of a task is pending at a time.

use super::{
    Blocking, Charge, LocalLocks, Locks, Protocol, Semantics, Sharing, blocking, edf, global_omlp, suspending,
};
use crate::analyze::{Refusal, Test};
use crate::fp_rta::response_times;
use crate::locks::answer::{beyond, charged, check, given_responses, show, unanswered};
use crate::system::System;
use crate::task::{Task, TaskSet};
use crate::verdict::Verdict;
use crate::window::Limits;

/// One test by name for tasks that wait for locks. Arrays of the verdict are in the order of the
/// system's tasks.
pub fn analyze_with_locks(
    system: &System,
    test: Test,
    locks: impl Into<Locks>,
    limits: Limits,
) -> Result<Verdict, Refusal> {
    let locks = locks.into();
    match (test, locks.protocol()) {
        (Test::EdfQpa, Protocol::MsrpClassic) => edf::classic(system, limits),
        (Test::EdfQpa, Protocol::MsrpLp) => edf::exact(system, limits),
        (Test::Global(test), _) => global_omlp::analyze(system, locks, test, limits),
        (Test::FpRta, _) => response_times_with_locks(system, locks, &[], limits),
        (Test::EdfQpa, protocol) => Err(beyond("edf-qpa", protocol.name(), "msrp-classic or msrp-lp")),
        (_, protocol) => Err(beyond(test.name(), protocol.name(), "fp-rta or edf-qpa")),
    }
}

/// Response times, fixed priorities on each core. [`Verdict::rounds`] counts passes of blocking.
/// `above` are tasks above all others of a core, core by core, that request nothing and that
/// nothing blocks: interrupts, where they are counted.
pub(crate) fn response_times_with_locks(
    system: &System,
    locks: Locks,
    above: &[Vec<Task>],
    limits: Limits,
) -> Result<Verdict, Refusal> {
    let protocol = locks.protocol();
    if protocol == Protocol::MsrpLp {
        return Err(beyond("fp-rta", "msrp-lp", "edf-qpa, or fifo-np here"));
    }
    check(system, protocol)?;
    let sharing = Sharing::of(system, locks.local());
    let cores = system.by_core();
    let mut verdict = unanswered(system);
    let mut responses: Vec<u64> =
        system.tasks.iter().map(|one| one.task.cost_ns.saturating_add(one.task.jitter_ns)).collect();
    loop {
        verdict.rounds += 1;
        let bound = blocking(&sharing, protocol, Semantics::Sound, &responses);
        let next = if protocol.charge() == Charge::Suspension {
            suspended(system, &cores, &sharing, &bound, limits, &mut verdict)?
        } else {
            pass(system, &cores, above, protocol.charge(), &bound, limits, &mut verdict)?
        };
        show(system, &bound, &mut verdict);
        let Some(mut next) = next else { return Ok(verdict) };
        for (next, before) in next.iter_mut().zip(&responses) {
            *next = (*next).max(*before);
        }
        if next == responses {
            verdict.response_times = responses.into_iter().map(Some).collect();
            verdict.schedulable = verdict.meets_deadlines();
            return Ok(verdict);
        }
        if verdict.rounds >= limits.rounds_per_task {
            verdict.undecided = (0..system.tasks.len()).collect();
            return Ok(verdict);
        }
        responses = next;
    }
}

/// One pass of blocking from the response times of the system; where it has none, from cost plus
/// jitter. No verdict. SchedCAT treats every resource of one core as held at its ceiling.
pub fn block_once(
    system: &System,
    locks: impl Into<Locks>,
    semantics: Semantics,
) -> Result<Verdict, Refusal> {
    let locks = locks.into();
    let protocol = locks.protocol();
    let local = match semantics {
        Semantics::Sound => locks.local(),
        Semantics::SchedCat => LocalLocks::Ceiling,
    };
    if protocol == Protocol::MsrpLp {
        return Err(beyond("--blocking-only", "msrp-lp", "edf-qpa"));
    }
    if (protocol, semantics) == (Protocol::Pip, Semantics::SchedCat) {
        return Err(beyond("--semantics schedcat", "pip on pinned tasks", "--semantics sound"));
    }
    check(system, protocol)?;
    let mut verdict = unanswered(system);
    let responses = given_responses(system);
    show(system, &blocking(&Sharing::of(system, local), protocol, semantics, &responses), &mut verdict);
    verdict.rounds = 1;
    verdict.response_times = responses.into_iter().map(Some).collect();
    Ok(verdict)
}

/// Response times under one bound; none where a window outgrows its deadline.
fn pass(
    system: &System,
    cores: &[Vec<usize>],
    above: &[Vec<Task>],
    charge: Charge,
    bound: &Blocking,
    limits: Limits,
    verdict: &mut Verdict,
) -> Result<Option<Vec<u64>>, Refusal> {
    let mut responses = vec![0; system.tasks.len()];
    for (core, indices) in cores.iter().enumerate() {
        let above = above.get(core).map_or(&[][..], Vec::as_slice);
        let tasks = indices
            .iter()
            .map(|&at| charged(system.tasks[at].task, charge, bound.spin[at], bound.arrival[at]));
        let tasks = above.iter().copied().chain(tasks).collect();
        let answer = response_times(&TaskSet::new(tasks)?, limits);
        let undecided = answer.undecided.iter().filter_map(|at| at.checked_sub(above.len()));
        verdict.undecided.extend(undecided.map(|at| indices[at]));
        for (&at, response) in indices.iter().zip(&answer.response_times[above.len()..]) {
            let Some(response) = response else { return Ok(None) };
            responses[at] = *response;
        }
    }
    Ok(Some(responses))
}

/// The same where waiters suspend; nothing is above the tasks.
fn suspended(
    system: &System,
    cores: &[Vec<usize>],
    sharing: &Sharing,
    bound: &Blocking,
    limits: Limits,
    verdict: &mut Verdict,
) -> Result<Option<Vec<u64>>, Refusal> {
    let mut responses = vec![0; system.tasks.len()];
    for indices in cores {
        let answer = suspending::on_one_core(system, indices, sharing, bound, limits)?;
        verdict.undecided.extend(answer.undecided.iter().map(|&at| indices[at]));
        for (&at, response) in indices.iter().zip(&answer.response_times) {
            let Some(response) = response else { return Ok(None) };
            responses[at] = *response;
        }
    }
    Ok(Some(responses))
}
