//! The partitioned FMLP+: waiters suspend and queue in order of arrival; who holds a lock executes
//! above all that hold none, earlier requests first.
//!
//! Brandenburg's thesis, 2011, chapter 6, and "The FMLP+: an asymptotically optimal real-time
//! locking protocol for suspension-aware analysis", ECRTS 2014. Oracle: SchedCAT's
//! `part_fmlp_bounds` with preemption, equal under its own counting. Verdicts rest on the same but
//! for local sections: only a wait for another core lets tasks below begin one.
//!
//! A request is delayed by earlier ones only, and each task has one at a time. So each task of a
//! remote core delays it by at most one section, on any resource, and only if a task of that core
//! is ahead in its queue.

use super::pending::Window;
use super::sharing::{Sharing, Use};
use super::waiting::{is_global, longest_of, windows};
use super::{Blocking, Semantics};

pub(super) fn blocking(sharing: &Sharing, responses: &[u64], semantics: Semantics) -> Blocking {
    let mut result = Blocking::default();
    for window in windows(sharing, responses) {
        let ahead: Vec<Ahead> = (0..sharing.cores.len()).map(|core| ahead(&window, core as u32)).collect();
        let own_core = window.own().core as usize;
        let mut remote = 0u64;
        for (core, ahead) in ahead.iter().enumerate().filter(|(core, _)| *core != own_core) {
            let most = ahead.sections.min(ahead.requests);
            if most == 0 {
                continue;
            }
            remote = sharing.cores[core]
                .iter()
                .fold(remote, |sum, &other| sum.saturating_add(longest_of(&window, other, most, |_| true)));
        }
        let counts = |core: usize| core != own_core || semantics == Semantics::SchedCat;
        let sections = ahead.iter().enumerate().filter(|(core, _)| counts(*core));
        let sections = sections.fold(0, |sum: u64, (_, one)| sum.saturating_add(one.sections));
        let starts = suspensions(&window, semantics).min(sections).saturating_add(1);
        result.spin.push(remote);
        result.arrival.push(local(&window, starts, semantics));
    }
    result
}

/// Sections of tasks below: one of each for each time at which it may be under way, the arrival and
/// the end of each suspension. Of resources of the core alone only one is: its holder lets nobody
/// begin another.
fn local(window: &Window<'_>, starts: u64, semantics: Semantics) -> u64 {
    let sharing = window.sharing;
    let below = sharing.lower_users(window.task);
    let of_each = |first, counts: fn(&Sharing, &Use) -> bool| {
        below.iter().fold(first, |sum: u64, &other| {
            sum.saturating_add(longest_of(window, other, starts, |one| counts(sharing, one)))
        })
    };
    let all = of_each(0, |_, _| true);
    if semantics == Semantics::SchedCat {
        return all;
    }
    let uses = below.iter().flat_map(|&other| &sharing.tasks[other].uses);
    let alone = uses.filter(|one| !is_global(sharing, one)).map(Use::length_ns).max().unwrap_or(0);
    all.min(of_each(starts.saturating_mul(alone), is_global))
}

/// Requests that may suspend the job while tasks below it execute.
fn suspensions(window: &Window<'_>, semantics: Semantics) -> u64 {
    let uses = window.own().uses.iter();
    let waits = uses.filter(|one| semantics == Semantics::SchedCat || is_global(window.sharing, one));
    waits.fold(0, |sum: u64, one| sum.saturating_add(one.count()))
}

/// What tasks of one core have ahead of the job's requests.
struct Ahead {
    /// Sections on the resources that the job requests.
    sections: u64,
    /// Requests of the job for which there may be some.
    requests: u64,
}

fn ahead(window: &Window<'_>, core: u32) -> Ahead {
    let mut ahead = Ahead { sections: 0, requests: 0 };
    for own in &window.own().uses {
        let cores = &window.sharing.resources[own.resource].any.cores;
        let Ok(at) = cores.binary_search_by_key(&core, |one| one.core) else { continue };
        ahead.requests = ahead.requests.saturating_add(own.count());
        for claim in cores[at].claims.iter().filter(|claim| claim.task != window.task) {
            let sections = window.supply(claim).min(own.count());
            ahead.sections = ahead.sections.saturating_add(sections);
        }
    }
    ahead
}
