//! Spin locks without any order: a request may wait for every other one that comes before it is
//! served.
//!
//! Wieder and Brandenburg, RTSS 2013, constraints 10, 11 and 24. How many that are is bounded by
//! the time that one request can wait: the least solution of a recurrence over all requests of
//! other cores, or, where none is found within the period, the response time.

use super::pending::Pending;
use super::sharing::Sharing;
use super::{Blocking, Semantics};

/// Steps of the recurrence before the response time serves as the bound.
const MOST_STEPS: u32 = 1_000_000;

/// Blocking; `preemptable` says whether a job can be preempted while it spins.
pub(super) fn blocking(
    sharing: &Sharing,
    responses: &[u64],
    preemptable: bool,
    semantics: Semantics,
) -> Blocking {
    with_wait(sharing, responses, preemptable, semantics, |pending, resource| {
        wait(pending, resource, preemptable)
    })
}

/// The same where one request waits for so long.
pub(super) fn with_wait(
    sharing: &Sharing,
    responses: &[u64],
    preemptable: bool,
    semantics: Semantics,
    wait: impl Fn(&Pending<'_>, usize) -> u64,
) -> Blocking {
    let mut pending = Pending::new(sharing, responses, semantics);
    let mut result = Blocking::default();
    for task in 0..sharing.tasks.len() {
        pending.enter(task);
        let spin = pending
            .requested()
            .iter()
            .map(|&resource| at_resource(&pending, resource, wait(&pending, resource)).0);
        result.spin.push(spin.fold(0, u64::saturating_add));
        let arrival = pending.blockers().map(|(resource, section)| {
            // Where spinning is preemptible, no task waits for a lower-priority job that spins.
            let met =
                if preemptable { 0 } else { at_resource(&pending, resource, wait(&pending, resource)).1 };
            section.saturating_add(met)
        });
        result.arrival.push(arrival.max().unwrap_or(0));
    }
    result
}

/// The delay of spinning at one resource, and what is left to delay one arrival.
fn at_resource(pending: &Pending<'_>, resource: usize, wait_ns: u64) -> (u64, u64) {
    let requests = pending.requests(resource);
    let (mut spin, mut arrival) = (0u64, 0u64);
    for claim in pending.remote(resource).flatten() {
        let each = pending.window.requests_in(claim, wait_ns);
        let met = pending.spin_supply(resource, claim).min(each.saturating_mul(requests));
        spin = spin.saturating_add(met.saturating_mul(claim.length_ns));
        let left = (pending.window.supply(claim) - met).min(each);
        arrival = arrival.saturating_add(left.saturating_mul(claim.length_ns));
    }
    (spin, arrival)
}

/// How long one request can wait. With preemption local jobs get in between, with all that they
/// wait for themselves.
pub(super) fn wait(pending: &Pending<'_>, resource: usize, preemptable: bool) -> u64 {
    let mut between: Vec<usize> = if preemptable { pending.requested().to_vec() } else { Vec::new() };
    let first: u64 = {
        let of = if preemptable { &between[..] } else { &[resource][..] };
        remote_requests(pending, of, |_| 1)
    };
    let first =
        first.saturating_add(if preemptable { pending.interference(pending.window.response()) } else { 0 });
    if !between.contains(&resource) {
        between.push(resource);
    }
    let next = |wait_ns: u64| {
        let remote = remote_requests(pending, &between, |task| pending.window.jobs_in(task, wait_ns));
        let local = if preemptable { pending.interference(wait_ns) } else { 0 };
        // One more than the waiting: then the request has got through.
        remote.saturating_add(local).saturating_add(1)
    };
    least_wait(pending, first, next)
}

/// The solution that iteration reaches from `first`, or the response time where that takes longer
/// than the period.
pub(super) fn least_wait(pending: &Pending<'_>, first: u64, next: impl Fn(u64) -> u64) -> u64 {
    let (mut wait_ns, mut steps) = (first, 0);
    while wait_ns <= pending.window.own().period_ns && steps < MOST_STEPS {
        let longer = next(wait_ns);
        // From nothing there is nothing to wait for.
        if longer == wait_ns || wait_ns == 0 {
            return wait_ns;
        }
        wait_ns = longer;
        steps += 1;
    }
    pending.window.response()
}

fn remote_requests(pending: &Pending<'_>, resources: &[usize], jobs: impl Fn(usize) -> u64) -> u64 {
    let claims = resources.iter().flat_map(|&resource| pending.remote(resource).flatten());
    claims.fold(0, |sum: u64, claim| {
        let requests = jobs(claim.task).saturating_mul(claim.count);
        sum.saturating_add(requests.saturating_mul(claim.length_ns))
    })
}
