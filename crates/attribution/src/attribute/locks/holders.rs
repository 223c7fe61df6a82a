//! Who held a lock while a thread waited for it, by those who released it and by its memory.

use super::shape::{Evidence, WaitEnd};
use super::wait::{Held, Unknown};

/// A release: whoever did it held the lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Release {
    pub(super) ts_ns: i64,
    /// The lock's address, and its process.
    pub(super) word: u64,
    pub(super) process: Option<i32>,
    pub(super) by: i32,
}

/// Who held a lock from the beginning of a wait to its end. `releases`: when, and by whom, in order
/// of time; `claims`: who held it at the beginning; `now`: who holds it at the end.
pub(super) fn holders(
    [t0_ns, t1_ns]: [i64; 2],
    end: WaitEnd,
    releases: &[(i64, i32)],
    claims: &[(i32, Evidence)],
    now: Option<i32>,
) -> (Vec<Held>, Option<Unknown>) {
    let mut all: Vec<Held> = Vec::new();
    let mut at_ns = t0_ns;
    for (ts_ns, tid) in releases {
        match all.last_mut() {
            Some(last) if last.tid == *tid => last.t1_ns = *ts_ns,
            _ => all.push(Held { tid: *tid, t0_ns: at_ns, t1_ns: *ts_ns, evidence: vec![Evidence::Order] }),
        }
        at_ns = *ts_ns;
    }
    if let Some(tid) = now {
        match all.last_mut() {
            Some(last) if last.tid == tid => last.t1_ns = t1_ns,
            _ => all.push(Held { tid, t0_ns: at_ns, t1_ns, evidence: Vec::new() }),
        }
        if let Some(last) = all.last_mut() {
            last.evidence.insert(0, Evidence::Memory);
        }
    }
    if let Some((memory, _)) = claims.first().copied() {
        match all.first_mut() {
            Some(first) if first.tid != memory => {
                return (Vec::new(), Some(Unknown::Disagree { memory, released: first.tid }));
            }
            Some(_) => {}
            None => all.push(Held { tid: memory, t0_ns, t1_ns, evidence: Vec::new() }),
        }
        let seen = claims.iter().filter(|(tid, _)| *tid == memory).map(|(_, evidence)| *evidence);
        all[0].evidence.splice(0..0, seen);
        all[0].evidence.dedup();
    }
    let unknown = all.is_empty().then_some(match end {
        WaitEnd::Released => Unknown::NotByRelease,
        _ => Unknown::NotReleased,
    });
    (all, unknown)
}
