//! FIFO spin locks: each request waits for at most one request of every other core.
//!
//! Non-preemptable: Wieder and Brandenburg, RTSS 2013, constraints 1 to 9 (ticket and MCS locks,
//! and MSRP with its actual critical sections). Preemptable: a job that is preempted while it spins
//! gives up its place and queues anew, so every release of a local higher-priority job allows one
//! more request of every other core, for one resource (constraints 20 to 23).

use super::longest::{self, Run};
use super::pending::Pending;
use super::sharing::Sharing;
use super::{Blocking, Semantics};

/// Spinning without preemption.
pub(super) fn non_preemptable(sharing: &Sharing, responses: &[u64], semantics: Semantics) -> Blocking {
    let mut pending = Pending::new(sharing, responses, semantics);
    let mut result = Blocking::default();
    for task in 0..sharing.tasks.len() {
        pending.enter(task);
        result.spin.push(spin(&pending));
        let arrival = pending.blockers().map(|(resource, section)| {
            let with = delay(&pending, resource, true);
            let without = delay(&pending, resource, false);
            section.saturating_add(with.saturating_sub(without))
        });
        result.arrival.push(arrival.max().unwrap_or(0));
    }
    result
}

/// Spinning with preemption: no task spins at a raised priority, so only one local section blocks
/// on arrival.
pub(super) fn preemptable(sharing: &Sharing, responses: &[u64], semantics: Semantics) -> Blocking {
    let mut pending = Pending::new(sharing, responses, semantics);
    let mut result = Blocking::default();
    for task in 0..sharing.tasks.len() {
        pending.enter(task);
        result.spin.push(spin(&pending).saturating_add(requeueing(&pending)));
        result.arrival.push(pending.longest_section());
    }
    result
}

/// What all other cores delay the requests of the job and of local higher-priority jobs.
fn spin(pending: &Pending<'_>) -> u64 {
    let delays = pending.requested().iter().map(|&resource| delay(pending, resource, false));
    delays.fold(0, u64::saturating_add)
}

fn delay(pending: &Pending<'_>, resource: usize, arrival: bool) -> u64 {
    let slots = pending.requests(resource);
    let delays =
        pending.remote(resource).map(|claims| longest::total(pending, resource, claims, slots, arrival));
    delays.fold(0, u64::saturating_add)
}

/// The worst distribution of preemptions over resources.
fn requeueing(pending: &Pending<'_>) -> u64 {
    if pending.requested().is_empty() {
        return 0;
    }
    let left = pending.preemptions();
    let at = |&resource: &usize| {
        let slots = pending.requests(resource);
        let cores = pending.remote(resource);
        gains(cores.map(|claims| longest::after(pending, resource, claims, slots, left)).collect())
    };
    spread(pending.requested().iter().flat_map(at).collect(), left)
}

/// So many preemptions at those resources where each gains most. A resource gains less with each,
/// so the largest gains first are the worst.
pub(super) fn spread(mut gains: Vec<Run>, mut left: u64) -> u64 {
    gains.sort_by_key(|gain| std::cmp::Reverse(gain.length_ns));
    let mut sum: u64 = 0;
    for gain in gains {
        let taken = gain.count.min(left);
        left -= taken;
        sum = sum.saturating_add(taken.saturating_mul(gain.length_ns));
    }
    sum
}

/// What each further preemption gains at one resource: the next longest request of every pool
/// together.
pub(super) fn gains(pools: Vec<Vec<Run>>) -> Vec<Run> {
    let mut pools: Vec<std::vec::IntoIter<Run>> = pools.into_iter().map(Vec::into_iter).collect();
    let mut current: Vec<Option<Run>> = pools.iter_mut().map(Iterator::next).collect();
    let mut gains = Vec::new();
    while let Some(count) = current.iter().flatten().map(|run| run.count).min() {
        let length_ns = current.iter().flatten().fold(0, |sum: u64, run| sum.saturating_add(run.length_ns));
        gains.push(Run { length_ns, count });
        for (run, rest) in current.iter_mut().zip(&mut pools) {
            if let Some(some) = run {
                some.count -= count;
                if some.count == 0 {
                    *run = rest.next();
                }
            }
        }
    }
    gains
}
