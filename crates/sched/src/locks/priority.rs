//! Priority-ordered spin locks: waiting requests are served by their locking priority, ties in any
//! order or first come, first served.
//!
//! Wieder and Brandenburg, RTSS 2013, constraints 12 to 19, 24 and 25. Of the local requests for a
//! resource take the lowest locking priority. Requests of other cores ahead of it may overtake for
//! as long as one request can wait; those behind it only hold the lock already when the request is
//! issued: one on the whole machine for each request, and for each preemption where spinning can be
//! preempted. Equal ones are ahead, or under FIFO ties one a core for each request.
//!
//! A request may compete for two places that tasks share (as one behind, or as a tie, while
//! spinning and on arrival). Then both are charged: a little above the optimum, never below it.
//! SchedCAT's own numbers for these protocols differ: see
//! [`Semantics::SchedCat`](super::Semantics).

use super::Blocking;
use super::fifo::spread;
use super::longest::Run;
use super::pending::Pending;
use super::sharing::{Claim, Sharing};
use super::unordered::{least_wait, wait};

/// Which of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    /// Ties are served first come, first served.
    pub(super) fifo_ties: bool,
    /// A job can be preempted while it spins.
    pub(super) preemptable: bool,
}

/// Spinning and arrival blocking.
pub(super) fn blocking(sharing: &Sharing, responses: &[u64], order: Order) -> Blocking {
    let mut pending = Pending::new(sharing, responses, super::Semantics::Sound);
    let mut result = Blocking::default();
    for task in 0..sharing.tasks.len() {
        pending.enter(task);
        let local = At { pending: &pending, order };
        result.spin.push(local.spin());
        result.arrival.push(local.arrival());
    }
    result
}

/// What a claim of another core can do to a local request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Ahead,
    Tied,
    Behind,
}

struct At<'a> {
    pending: &'a Pending<'a>,
    order: Order,
}

impl At<'_> {
    fn place(&self, claim: &Claim, rank: u32) -> Place {
        let other = self.pending.window.sharing.tasks[claim.task].lock_priority;
        if other > rank {
            Place::Behind
        } else if other == rank && self.order.fifo_ties {
            Place::Tied
        } else {
            Place::Ahead
        }
    }

    /// The lowest locking priority among some tasks.
    fn lowest(&self, tasks: impl Iterator<Item = usize>) -> u32 {
        tasks.map(|task| self.pending.window.sharing.tasks[task].lock_priority).max().unwrap_or(u32::MAX)
    }

    fn spin(&self) -> u64 {
        let requeues = self.order.preemptable && !self.pending.requested().is_empty();
        let extra = if requeues { self.pending.preemptions() } else { 0 };
        let (mut sum, mut gains) = (0u64, Vec::new());
        for &resource in self.pending.requested() {
            let requests = self.pending.requests(resource);
            let (ahead, pools) = self.delays(resource);
            sum = sum.saturating_add(ahead);
            let mut rest = Vec::new();
            for pool in pools {
                let (taken, left) = split(pool, requests);
                sum = sum.saturating_add(taken);
                rest.push(left);
            }
            gains.extend(super::fifo::gains(rest));
        }
        sum.saturating_add(spread(gains, extra))
    }

    /// What requests ahead cost while spinning for a resource, and the pools of which each request
    /// and preemption meets one.
    fn delays(&self, resource: usize) -> (u64, Vec<Vec<Run>>) {
        let pending = self.pending;
        let rank = self.lowest(pending.requesters(resource));
        let wait_ns = self.wait(resource, rank);
        let requests = pending.requests(resource);
        let (mut ahead, mut pools, mut behind) = (0u64, Vec::new(), Vec::new());
        for claims in pending.remote(resource) {
            let mut tied = Vec::new();
            for claim in claims {
                let count = self.met(resource, claim, wait_ns, requests);
                let run = Run { length_ns: claim.length_ns, count };
                match self.place(claim, rank) {
                    Place::Ahead => ahead = ahead.saturating_add(count.saturating_mul(claim.length_ns)),
                    Place::Tied => tied.push(run),
                    Place::Behind => behind.push(run),
                }
            }
            pools.push(tied);
        }
        behind.sort_by_key(|run| std::cmp::Reverse(run.length_ns));
        pools.push(behind);
        (ahead, pools)
    }

    /// Requests of a claim while all local requests wait.
    fn met(&self, resource: usize, claim: &Claim, wait_ns: u64, requests: u64) -> u64 {
        let each = self.pending.window.requests_in(claim, wait_ns);
        self.pending.spin_supply(resource, claim).min(each.saturating_mul(requests))
    }

    fn arrival(&self) -> u64 {
        let blockers = self.pending.blockers().map(|(resource, section)| {
            let met = if self.order.preemptable { 0 } else { self.met_on_arrival(resource) };
            section.saturating_add(met)
        });
        blockers.max().unwrap_or(0)
    }

    /// The delay of one request of a local lower-priority job, beside what spinning has used up.
    fn met_on_arrival(&self, resource: usize) -> u64 {
        let pending = self.pending;
        let rank = self.lowest(pending.lower_requesters(resource));
        let wait_ns = self.wait(resource, rank);
        let spinning = (pending.requests(resource) > 0).then(|| {
            let rank = self.lowest(pending.requesters(resource));
            (rank, self.wait(resource, rank))
        });
        let (mut sum, mut behind) = (0u64, 0);
        for claims in pending.remote(resource) {
            let mut tied = 0;
            for claim in claims {
                let used = match spinning {
                    Some((rank, wait_ns)) if self.place(claim, rank) == Place::Ahead => {
                        self.met(resource, claim, wait_ns, pending.requests(resource))
                    }
                    _ => 0,
                };
                let left =
                    (pending.window.supply(claim) - used).min(pending.window.requests_in(claim, wait_ns));
                let once = if left > 0 { claim.length_ns } else { 0 };
                match self.place(claim, rank) {
                    Place::Ahead => sum = sum.saturating_add(left.saturating_mul(claim.length_ns)),
                    Place::Tied => tied = once.max(tied),
                    Place::Behind => behind = once.max(behind),
                }
            }
            sum = sum.saturating_add(tied);
        }
        sum.saturating_add(behind)
    }

    /// How long a request of this rank can wait: for one behind it, for ties, and for all that
    /// comes ahead meanwhile.
    fn wait(&self, resource: usize, rank: u32) -> u64 {
        let pending = self.pending;
        if self.order.preemptable {
            return wait(pending, resource, true);
        }
        let longest = |claims: &[Claim], place| {
            let some = claims.iter().filter(|claim| self.place(claim, rank) == place);
            some.map(|claim| claim.length_ns).max().unwrap_or(0)
        };
        let behind = pending.remote(resource).map(|claims| longest(claims, Place::Behind)).max().unwrap_or(0);
        let tied = pending.remote(resource).map(|claims| longest(claims, Place::Tied));
        let fixed = tied.fold(behind, u64::saturating_add);
        let next = |wait_ns: u64| {
            let ahead = pending.remote(resource).flatten();
            let ahead = ahead.filter(|claim| self.place(claim, rank) == Place::Ahead);
            ahead.fold(fixed.saturating_add(1), |sum: u64, claim| {
                let requests = pending.window.requests_in(claim, wait_ns);
                sum.saturating_add(requests.saturating_mul(claim.length_ns))
            })
        };
        // Not from 0: there the recurrence would seem solved.
        least_wait(pending, fixed.saturating_add(1), next)
    }
}

/// The longest `most` of a pool together, and what is left of it.
fn split(pool: Vec<Run>, most: u64) -> (u64, Vec<Run>) {
    let (mut left, mut sum) = (most, 0u64);
    let mut rest = Vec::new();
    for run in pool {
        let taken = run.count.min(left);
        left -= taken;
        sum = sum.saturating_add(taken.saturating_mul(run.length_ns));
        if run.count > taken {
            rest.push(Run { count: run.count - taken, ..run });
        }
    }
    (sum, rest)
}
