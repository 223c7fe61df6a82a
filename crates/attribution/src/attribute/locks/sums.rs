//! Waits added up by lock and thread, and the worst of them one by one. Memory is bounded by the
//! numbers of both.

use super::explain::Explained;
use super::shape::{LockKind, WaitEnd};
use super::wait::LockWait;
use crate::attribute::figures::Sums;
use crate::labels::LabelId;
use rustc_hash::FxHashMap;

/// The most locks, and threads of one lock, that are listed.
const MOST: usize = 512;
/// The worst waits that are kept.
const WORST: usize = 8;

/// A lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) process: Option<i32>,
    pub(super) word: u64,
}

/// Waits for one lock.
#[derive(Debug)]
pub(super) struct OfLock {
    pub(super) kind: LockKind,
    pub(super) name: Option<LabelId>,
    pub(super) n: u64,
    pub(super) known: u64,
    pub(super) waited: Sums,
    pub(super) total_ns: u64,
    pub(super) waiters: FxHashMap<i32, OfWaiter>,
    /// By holder: waits.
    pub(super) holders: FxHashMap<i32, u64>,
}

/// Of one thread.
#[derive(Debug, Default)]
pub(super) struct OfWaiter {
    pub(super) waited: Sums,
    pub(super) total_ns: u64,
    pub(super) first_ns: Option<i64>,
    pub(super) lasting: u64,
    pub(super) inversions: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct LockSums {
    pub(super) locks: FxHashMap<Key, OfLock>,
    /// Waits for locks beyond the limit.
    pub(super) unlisted: u64,
    pub(super) worst: Vec<(LockWait, Explained)>,
    pub(super) inversions: u64,
}

impl LockSums {
    /// Takes a wait.
    pub(super) fn add(&mut self, wait: &LockWait, explained: Explained) {
        self.inversions += u64::from(explained.inversion_ns > 0);
        self.sum(wait, explained.inversion_ns > 0);
        let at = self.worst.partition_point(|other| rank(other) >= rank(&(wait, &explained)));
        if at < WORST {
            self.worst.insert(at, (wait.clone(), explained));
            self.worst.truncate(WORST);
        }
    }

    fn sum(&mut self, wait: &LockWait, inversion: bool) {
        let key = Key { process: wait.process, word: wait.word };
        if self.locks.len() >= MOST && !self.locks.contains_key(&key) {
            self.unlisted += 1;
            return;
        }
        let lock = self.locks.entry(key).or_insert_with(|| OfLock {
            kind: wait.kind,
            name: wait.name,
            n: 0,
            known: 0,
            waited: Sums::default(),
            total_ns: 0,
            waiters: FxHashMap::default(),
            holders: FxHashMap::default(),
        });
        lock.kind = lock.kind.min(wait.kind);
        lock.name = lock.name.or(wait.name);
        lock.n += 1;
        lock.known += u64::from(!wait.holders.is_empty());
        let mut tids: Vec<i32> = wait.holders.iter().map(|held| held.tid).collect();
        tids.sort_unstable();
        tids.dedup();
        for tid in tids {
            if lock.holders.len() < MOST || lock.holders.contains_key(&tid) {
                *lock.holders.entry(tid).or_default() += 1;
            }
        }
        let waited_ns = wait.t1_ns.saturating_sub(wait.t0_ns);
        let lasts = wait.end == WaitEnd::Lasts;
        lock.total_ns += waited_ns.max(0).cast_unsigned();
        if !lasts {
            lock.waited.add(waited_ns);
        }
        if lock.waiters.len() < MOST || lock.waiters.contains_key(&wait.tid) {
            let waiter = lock.waiters.entry(wait.tid).or_default();
            waiter.total_ns += waited_ns.max(0).cast_unsigned();
            waiter.first_ns.get_or_insert(wait.t0_ns);
            waiter.lasting += u64::from(lasts);
            waiter.inversions += u64::from(inversion);
            if !lasts {
                waiter.waited.add(waited_ns);
            }
        }
    }
}

/// What lasts goes first, then what was inversion longest, then what was longest.
fn rank(
    (wait, explained): &(impl std::borrow::Borrow<LockWait>, impl std::borrow::Borrow<Explained>),
) -> (bool, u64, i64) {
    let (wait, explained): (&LockWait, &Explained) = (wait.borrow(), explained.borrow());
    (wait.end == WaitEnd::Lasts, explained.inversion_ns, wait.t1_ns.saturating_sub(wait.t0_ns))
}
