//! Inflation: how long one task's own requests wait, and what others on its core pay for one of
//! them.
//!
//! The counting of Brandenburg's thesis (2011). One limit is how many requests a remote task issues
//! while a job is pending, the other is how many each core puts before each request. The longest
//! requests within both are charged. A lower-priority job that spins or holds a lock is not
//! preempted, so its longest *span*, waiting and critical section, blocks an arrival.

use super::Blocking;
use super::pending::Window;
use super::sharing::{Claims, Sharing};

/// Requests chosen, and their length together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) count: u64,
    pub(super) length_ns: u64,
}

impl Chosen {
    pub(super) fn add(&mut self, count: u64, length_ns: u64) {
        self.count = self.count.saturating_add(count);
        self.length_ns = self.length_ns.saturating_add(count.saturating_mul(length_ns));
    }
}

/// The longest `each` requests of every other core.
pub(super) fn longest_of_each_core(window: &Window<'_>, claims: &Claims, each: u64) -> Chosen {
    let core = window.own().core;
    // A window of any length meets a job of every task.
    if window.response() > 0
        && let Some((count, length_ns)) = claims.surely_longest(each, core)
    {
        return Chosen { count, length_ns };
    }
    let mut chosen = Chosen::default();
    for claims in claims.remote(core) {
        let mut left = each;
        for claim in claims {
            if left == 0 {
                break;
            }
            let taken = window.supply(claim).min(left);
            left -= taken;
            chosen.add(taken, claim.length_ns);
        }
    }
    chosen
}

/// How long a task's requests wait, and the longest span of one of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Own {
    pub(super) spin_ns: u64,
    pub(super) span_ns: u64,
}

/// Every task by itself, then the longest span below each.
pub(super) fn charge(sharing: &Sharing, responses: &[u64], own: impl Fn(Window<'_>) -> Own) -> Blocking {
    let tasks = 0..sharing.tasks.len();
    let all: Vec<Own> = tasks.map(|task| own(Window { sharing, responses, task })).collect();
    let spans: Vec<u64> = all.iter().map(|one| one.span_ns).collect();
    Blocking { spin: all.iter().map(|one| one.spin_ns).collect(), arrival: sharing.longest_below(&spans) }
}
