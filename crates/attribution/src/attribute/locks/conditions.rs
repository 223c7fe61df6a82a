//! Conditions that are signalled by a thread that does not hold the mutex of those who wait for it.
//!
//! POSIX.1-2024, `pthread_cond_broadcast`: for predictable scheduling the mutex is locked by the
//! thread that signals. Else a thread in between may take it first, whatever its priority.
//!
//! Only waits that began with their mutex seen to be held count: there the probes saw its locking.

use super::shape::{FreeSignal, ThreadName};
use crate::labels::LabelId;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The most conditions, threads that wait for one, and pairs of condition and thread that are kept.
const MOST: usize = 4096;

/// An address, of a process where that is known.
pub(super) type Key = (Option<i32>, u64);

/// Who waits for a condition.
#[derive(Debug)]
struct Waits {
    mutex: Key,
    threads: BTreeSet<i32>,
}

/// Signals of one thread.
#[derive(Debug)]
struct Signals {
    mutex: u64,
    n: u64,
    first_ns: i64,
    waiters: BTreeSet<i32>,
    /// Where in the program, the first time that this is known.
    callers: Option<LabelId>,
}

#[derive(Debug, Default)]
pub(super) struct Conditions {
    waits: FxHashMap<Key, Waits>,
    free: FxHashMap<(Key, i32), Signals>,
    /// The signal that was the last event of a thread.
    last: FxHashMap<i32, Key>,
}

impl Conditions {
    /// A thread gives its mutex and waits.
    pub(super) fn begins(&mut self, tid: i32, condition: Key, mutex: Key) {
        if self.waits.len() >= MOST && !self.waits.contains_key(&condition) {
            return;
        }
        let of = self.waits.entry(condition).or_insert_with(|| Waits { mutex, threads: BTreeSet::new() });
        of.mutex = mutex;
        if of.threads.len() < MOST {
            of.threads.insert(tid);
        }
    }

    /// It does not wait any more.
    pub(super) fn ends(&mut self, tid: i32, condition: Key) {
        if let Some(of) = self.waits.get_mut(&condition) {
            of.threads.remove(&tid);
            if of.threads.is_empty() {
                self.waits.remove(&condition);
            }
        }
    }

    /// Events are missing: who waits is not known any more.
    pub(super) fn lost(&mut self) {
        self.waits.clear();
        self.last.clear();
    }

    /// A thread signals. `holds`: whether it holds a mutex.
    pub(super) fn signals(&mut self, ts_ns: i64, tid: i32, condition: Key, holds: impl FnOnce(&Key) -> bool) {
        let Some(of) = self.waits.get(&condition).filter(|of| !holds(&of.mutex)) else { return };
        let key = (condition, tid);
        if self.free.len() >= MOST && !self.free.contains_key(&key) {
            return;
        }
        let mutex = of.mutex.1;
        let all = self.free.entry(key).or_insert_with(|| Signals {
            mutex,
            n: 0,
            first_ns: ts_ns,
            waiters: BTreeSet::new(),
            callers: None,
        });
        self.last.insert(tid, condition);
        all.n += 1;
        all.waiters.extend(of.threads.iter().take(MOST.saturating_sub(all.waiters.len())));
    }

    /// A thread has another event: the next stack is of that one.
    pub(super) fn did_other(&mut self, tid: i32) {
        self.last.remove(&tid);
    }

    /// Where in the program a thread was at its last event.
    pub(super) fn came_from(&mut self, tid: i32, callers: LabelId) {
        let Some(condition) = self.last.remove(&tid) else { return };
        if let Some(of) = self.free.get_mut(&(condition, tid)) {
            of.callers.get_or_insert(callers);
        }
    }

    /// What is stored: most signals first. `thread`: its name; `text`: that of a label.
    pub(super) fn section(
        &self,
        thread: &dyn Fn(i32) -> ThreadName,
        text: &dyn Fn(LabelId) -> String,
    ) -> Vec<FreeSignal> {
        let mut all: Vec<_> = self.free.iter().collect();
        all.sort_by_key(|(key, of)| (Reverse(of.n), **key));
        let one = |(((tgid, condition), tid), of): (&(Key, i32), &Signals)| FreeSignal {
            condition: *condition,
            tgid: *tgid,
            mutex: of.mutex,
            thread: thread(*tid),
            n: of.n,
            first_ns: of.first_ns,
            waiters: of.waiters.iter().map(|tid| thread(*tid)).collect(),
            callers: of.callers.map(text),
        };
        all.into_iter().map(one).collect()
    }
}
