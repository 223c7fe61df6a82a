//! Taking the longest requests of one remote core: the optimum of one part of the FIFO programs.
//!
//! A remote core delays each of the `slots` requests that spin by one request of its own, and one
//! arrival by one more. Which requests those are is the adversary's choice: at most `spin_supply`
//! of a claim may meet a spinning job, at most `supply` in all. The sets that can be placed are
//! independent in the union of two matroids (the spinning, laminar; the one arrival, uniform), so
//! the longest first is optimal.

use super::pending::Pending;
use super::sharing::Claim;

/// The longest that one core delays `slots` spinning requests and, if requested, one arrival.
pub(super) fn total(
    pending: &Pending<'_>,
    resource: usize,
    claims: &[Claim],
    slots: u64,
    arrival: bool,
) -> u64 {
    let limits = |claim: &Claim| Limits {
        supply: pending.window.supply(claim),
        spinning: pending.spin_supply(resource, claim),
    };
    longest(claims, slots, arrival, limits)
}

/// How many requests of a claim there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// In all.
    pub(super) supply: u64,
    /// That may meet a spinning job; at most the supply.
    pub(super) spinning: u64,
}

/// The same for any limits of claims, which come longest first.
pub(super) fn longest(claims: &[Claim], slots: u64, arrival: bool, limits: impl Fn(&Claim) -> Limits) -> u64 {
    let mut left = slots.saturating_add(u64::from(arrival));
    let mut beyond = u64::from(arrival);
    let mut sum: u64 = 0;
    for claim in claims {
        if left == 0 {
            break;
        }
        let Limits { supply, spinning } = limits(claim);
        let taken = supply.min(spinning.saturating_add(beyond)).min(left);
        beyond -= taken.saturating_sub(spinning).min(beyond);
        left -= taken;
        sum = sum.saturating_add(taken.saturating_mul(claim.length_ns));
    }
    sum
}

/// Requests of equal length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) length_ns: u64,
    pub(super) count: u64,
}

/// What one core has left for spinning after its longest `slots` requests, longest first, `most`
/// requests at most.
pub(super) fn after(
    pending: &Pending<'_>,
    resource: usize,
    claims: &[Claim],
    slots: u64,
    most: u64,
) -> Vec<Run> {
    let (mut skip, mut left) = (slots, most);
    let mut runs = Vec::new();
    for claim in claims {
        if left == 0 {
            break;
        }
        let spinning = pending.spin_supply(resource, claim);
        let skipped = spinning.min(skip);
        skip -= skipped;
        let count = (spinning - skipped).min(left);
        left -= count;
        if count > 0 {
            runs.push(Run { length_ns: claim.length_ns, count });
        }
    }
    runs
}
