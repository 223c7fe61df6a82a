//! Task-fair locks: served in order of arrival, readers next to each other together.
//!
//! Brandenburg and Anderson, Real-Time Systems 46, 2010; Brandenburg's thesis, 2011. A request
//! waits for one request of every other core at most, of whatever kind; reads hurt only where a
//! write stands between them, so with few writes there are few reader phases. The mutex is the same
//! lock with every request exclusive.

use super::Blocking;
use super::inflation::{Chosen, Own, charge, longest_of_each_core};
use super::pending::Window;
use super::sharing::{Sharing, Use};

/// Reader-writer locks.
pub(super) fn reader_writer(sharing: &Sharing, responses: &[u64]) -> Blocking {
    charge(sharing, responses, |window| {
        let mut own = Own::default();
        for one in &window.own().uses {
            let all = Waiting { writes: one.writes, reads: one.reads };
            let spin = bound(&window, one, all).min(exclusive(&window, one, one.count()));
            own.spin_ns = own.spin_ns.saturating_add(spin);
            own.span_ns = own.span_ns.max(span(&window, one));
        }
        own
    })
}

/// Mutual exclusion.
pub(super) fn mutex(sharing: &Sharing, responses: &[u64]) -> Blocking {
    charge(sharing, responses, |window| mutex_over(&window, window.own().uses.iter()))
}

/// How long a task waits at some of its resources under mutual exclusion.
pub(super) fn mutex_over<'a>(window: &Window<'_>, uses: impl Iterator<Item = &'a Use>) -> Own {
    let mut own = Own::default();
    for one in uses {
        own.spin_ns = own.spin_ns.saturating_add(exclusive(window, one, one.count()));
        own.span_ns = own.span_ns.max(exclusive(window, one, 1).saturating_add(one.length_ns()));
    }
    own
}

fn exclusive(window: &Window<'_>, one: &Use, requests: u64) -> u64 {
    longest_of_each_core(window, &window.sharing.resources[one.resource].any, requests).length_ns
}

/// Own requests of one resource that wait.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    writes: u64,
    reads: u64,
}

fn span(window: &Window<'_>, one: &Use) -> u64 {
    let resource = &window.sharing.resources[one.resource];
    let writes = longest_of_each_core(window, &resource.writes, 1);
    // Phases between the writes that all requests meet: more than one request meets, and what
    // SchedCAT counts.
    let all = longest_of_each_core(window, &resource.writes, one.count()).count;
    let mut longest = 0;
    if one.writes > 0 {
        let reads = reads(window, one, Waiting { writes: 1, reads: 0 }, all);
        longest = reads.saturating_add(one.write_ns);
    }
    if one.reads > 0 {
        let reads = reads(window, one, Waiting { writes: 0, reads: 1 }, all);
        longest = longest.max(reads.saturating_add(one.read_ns));
    }
    let as_mutex = exclusive(window, one, 1).saturating_add(one.length_ns());
    writes.length_ns.saturating_add(longest).min(as_mutex)
}

fn bound(window: &Window<'_>, one: &Use, waiting: Waiting) -> u64 {
    let requests = waiting.writes.saturating_add(waiting.reads);
    let resource = &window.sharing.resources[one.resource];
    let writes = longest_of_each_core(window, &resource.writes, requests);
    writes.length_ns.saturating_add(reads(window, one, waiting, writes.count))
}

/// Reader phases: one before each write, own and remote; of one core no more than one for each
/// request that waits.
fn reads(window: &Window<'_>, one: &Use, waiting: Waiting, writes: u64) -> u64 {
    let each = waiting.writes.saturating_add(waiting.reads);
    let mut left = writes.saturating_add(waiting.writes);
    let mut of_core = vec![each; window.sharing.cores.len()];
    let mut chosen = Chosen::default();
    let own = window.own().core;
    for claim in window.sharing.resources[one.resource].reads.iter().flat_map(|run| &run.claims) {
        if claim.core == own {
            continue;
        }
        let room = &mut of_core[claim.core as usize];
        let taken = window.supply(claim).min(*room).min(left);
        *room -= taken;
        left -= taken;
        chosen.add(taken, claim.length_ns);
    }
    chosen.length_ns
}
