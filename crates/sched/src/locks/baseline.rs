//! Whatever the lock: every request of another core may delay the job once.
//!
//! The constraints that Wieder and Brandenburg, RTSS 2013, share between all protocols (1 to 7),
//! alone.

use super::pending::Pending;
use super::sharing::Sharing;
use super::{Blocking, Semantics};

/// Blocking by all requests of other cores while the job is pending, and by one local section.
pub(super) fn blocking(sharing: &Sharing, responses: &[u64], semantics: Semantics) -> Blocking {
    let mut pending = Pending::new(sharing, responses, semantics);
    let mut result = Blocking::default();
    for task in 0..sharing.tasks.len() {
        pending.enter(task);
        let claims = (0..sharing.resources.len()).flat_map(|resource| pending.remote(resource).flatten());
        let all = claims.fold(0, |sum: u64, claim| {
            sum.saturating_add(pending.window.supply(claim).saturating_mul(claim.length_ns))
        });
        result.spin.push(all);
        result.arrival.push(pending.longest_section());
    }
    result
}
