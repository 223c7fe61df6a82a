//! The multiprocessor stack resource policy by inflation: local resources under ceilings, global
//! ones behind FIFO spin locks.
//!
//! Classic: each request waits for the longest request of every other core, however rarely that is
//! issued (Gai, Lipari and Di Natale, RTSS 2001). Holistic: for those that can be issued while the
//! job is pending (Brandenburg's thesis, 2011).

use super::Blocking;
use super::inflation::charge;
use super::pending::Window;
use super::sharing::{Sharing, Use};
use super::task_fair::mutex_over;

/// With what other cores can request while a job is pending.
pub(super) fn holistic(sharing: &Sharing, responses: &[u64]) -> Blocking {
    let is_global = |one: &&Use| sharing.resources[one.resource].is_global();
    let blocking = charge(sharing, responses, |window: Window<'_>| {
        mutex_over(&window, window.own().uses.iter().filter(is_global))
    });
    with_local_sections(sharing, blocking)
}

/// With the longest request of every other core.
pub(super) fn classic(sharing: &Sharing) -> Blocking {
    let waits = |one: &Use, core: u32| {
        let others = sharing.resources[one.resource].any.remote(core);
        others.fold(0, |sum: u64, claims| sum.saturating_add(claims[0].length_ns))
    };
    let (mut spin, mut spans) = (Vec::new(), Vec::new());
    for task in &sharing.tasks {
        let (mut total, mut span) = (0u64, 0u64);
        for one in task.uses.iter().filter(|one| sharing.resources[one.resource].is_global()) {
            let wait = waits(one, task.core);
            total = total.saturating_add(one.count().saturating_mul(wait));
            span = span.max(wait.saturating_add(one.length_ns()));
        }
        spin.push(total);
        spans.push(span);
    }
    with_local_sections(sharing, Blocking { spin, arrival: sharing.longest_below(&spans) })
}

/// Requests that stay on one core block those at or below their ceiling.
fn with_local_sections(sharing: &Sharing, mut blocking: Blocking) -> Blocking {
    for (task, arrival) in blocking.arrival.iter_mut().enumerate() {
        let uses = sharing.lower_users(task).iter().flat_map(|&local| &sharing.tasks[local].uses);
        for one in uses {
            let is_global = sharing.resources[one.resource].is_global();
            if !is_global && sharing.blocks_on_arrival(one.resource, task) {
                *arrival = (*arrival).max(one.length_ns());
            }
        }
    }
    blocking
}
