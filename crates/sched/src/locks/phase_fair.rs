//! Phase-fair reader-writer locks: reader phases and writers take turns.
//!
//! Brandenburg and Anderson, Real-Time Systems 46, 2010; Brandenburg's thesis, 2011. A reader waits
//! for one writer and the reader phase before it; a writer for one writer of every other core, and
//! a reader phase for each of them and for itself: at most m - 1 for each own write, m being the
//! number of cores, counted up to the highest in use.

use super::Blocking;
use super::inflation::{Chosen, Own, charge, longest_of_each_core};
use super::pending::Window;
use super::sharing::{Resource, Sharing};

/// Spinning and arrival blocking, each request of a job at its worst.
pub(super) fn blocking(sharing: &Sharing, responses: &[u64]) -> Blocking {
    charge(sharing, responses, |window| {
        let mut own = Own::default();
        for one in &window.own().uses {
            let resource = &window.sharing.resources[one.resource];
            let all = delay(&window, resource, one.writes, one.reads);
            own.spin_ns = own.spin_ns.saturating_add(all);
            let alone = |writes, reads| {
                let only = (one.writes, one.reads) == (writes, reads);
                if only { all } else { delay(&window, resource, writes, reads) }
            };
            if one.writes > 0 {
                own.span_ns = own.span_ns.max(alone(1, 0).saturating_add(one.write_ns));
            }
            if one.reads > 0 {
                own.span_ns = own.span_ns.max(alone(0, 1).saturating_add(one.read_ns));
            }
        }
        own
    })
}

/// What so many own writes and reads wait for.
fn delay(window: &Window<'_>, resource: &Resource, writes: u64, reads: u64) -> u64 {
    let remote = longest_of_each_core(window, &resource.writes, writes.saturating_add(reads));
    let others = window.sharing.cores_in_use.saturating_sub(1);
    let phases = remote.count.saturating_add(writes).min(reads.saturating_add(writes.saturating_mul(others)));
    remote.length_ns.saturating_add(longest_reads(window, resource, phases))
}

/// The longest reads of other cores.
fn longest_reads(window: &Window<'_>, resource: &Resource, mut left: u64) -> u64 {
    let mut chosen = Chosen::default();
    let own = window.own().core;
    for run in &resource.reads {
        // A job of every task alone may be enough: nothing to divide then. (A window of no length
        // has no jobs.)
        if window.response() > 0 && run.count_elsewhere(own) >= left {
            chosen.add(left, run.length_ns);
            return chosen.length_ns;
        }
        for claim in run.claims.iter().filter(|claim| claim.core != own) {
            let taken = window.supply(claim).min(left);
            left -= taken;
            chosen.add(taken, claim.length_ns);
        }
        if left == 0 {
            break;
        }
    }
    chosen.length_ns
}
