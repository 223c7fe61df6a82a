//! Every locking of a program, where probes on its C library recorded them ([`model::locking`]): how
//! often each lock was taken, by whom, and how long it was held.
//!
//! A lock is held from the return of the function that took it to the call of the one that releases
//! it. A function that waits for a condition releases it in between. What has no begin or no end in
//! the recording has no length.

use super::conditions::{Conditions, Key};
use super::shape::{EveryLock, TakenBy, TakenLock, ThreadName};
use crate::attribute::figures::Sums;
use crate::attribute::watch::event::WatchEvent;
use crate::labels::LabelId;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The most locks, threads of one lock, and locks that a thread asks for at once.
const MOST: usize = 4096;
/// The most locks that are listed.
const LISTED: usize = 100;

/// The mutex of a thread that died was taken (`EOWNERDEAD`, include/uapi/asm-generic/errno.h).
const OWNER_DIED: i64 = 130;

/// A call that has not returned.
#[derive(Debug, Clone, Copy)]
struct Ask {
    key: Key,
    /// What it waits for.
    condition: Option<Key>,
}

/// A lock that is held.
#[derive(Debug, Clone, Copy)]
struct Hold {
    tid: i32,
    t0_ns: i64,
    /// Once for each time that its holder has taken it.
    depth: u32,
}

#[derive(Debug, Default)]
struct OfLock {
    taken: u64,
    refused: u64,
    total_ns: u64,
    held: Sums,
    by: FxHashMap<i32, OfThread>,
}

#[derive(Debug, Default)]
struct OfThread {
    taken: u64,
    total_ns: u64,
    held: Sums,
}

/// The lockings while the trace streams by.
#[derive(Debug, Default)]
pub(crate) struct Every {
    asks: FxHashMap<i32, Vec<Ask>>,
    holds: FxHashMap<Key, Hold>,
    locks: FxHashMap<Key, OfLock>,
    conditions: Conditions,
    unlisted: u64,
    unpaired: u64,
    any: bool,
}

impl Every {
    /// A thread calls a function that takes a lock. `condition`: the address of what it waits for
    /// first.
    pub(crate) fn asks(
        &mut self,
        event: &WatchEvent,
        process: Option<i32>,
        lock: u64,
        condition: Option<u64>,
    ) {
        self.saw(event.pid);
        let key = (process, lock);
        let condition = condition.map(|condition| (process, condition));
        if let Some(condition) = condition {
            if self.holds(event.pid, &key) {
                self.conditions.begins(event.pid, condition, key);
            }
            // Until it is taken again.
            self.ended(event, key, true);
        }
        let asks = self.asks.entry(event.pid).or_default();
        if asks.len() < MOST {
            asks.push(Ask { key, condition });
        }
    }

    /// That function returns.
    pub(crate) fn asked(&mut self, event: &WatchEvent, result: i64) {
        self.saw(event.pid);
        let Some(Ask { key, condition }) = self.asks.get_mut(&event.pid).and_then(Vec::pop) else {
            self.unpaired += 1;
            return;
        };
        if let Some(condition) = condition {
            self.conditions.ends(event.pid, condition);
        } else if result != 0 && result != OWNER_DIED {
            if let Some(lock) = self.lock(key) {
                lock.refused += 1;
            }
            return;
        }
        match self.holds.get_mut(&key) {
            // A C library may wait for a condition by its own functions that lock and unlock.
            Some(hold) if hold.tid == event.pid && condition.is_some() => {}
            Some(hold) if hold.tid == event.pid => {
                hold.depth += 1;
                self.taken(event.pid, key);
            }
            other => {
                // The end of the hold before is missing.
                self.unpaired += u64::from(other.is_some());
                self.holds.insert(key, Hold { tid: event.pid, t0_ns: event.ts_ns, depth: 1 });
                self.taken(event.pid, key);
            }
        }
    }

    /// A thread calls a function that releases a lock.
    pub(crate) fn releases(&mut self, event: &WatchEvent, process: Option<i32>, lock: u64) {
        self.saw(event.pid);
        self.ended(event, (process, lock), false);
    }

    /// A thread calls a function that signals a condition.
    pub(crate) fn signals(&mut self, event: &WatchEvent, process: Option<i32>, condition: u64) {
        self.saw(event.pid);
        let Self { conditions, holds, .. } = self;
        let has = |key: &Key| holds.get(key).is_some_and(|hold| hold.tid == event.pid);
        conditions.signals(event.ts_ns, event.pid, (process, condition), has);
    }

    fn saw(&mut self, tid: i32) {
        self.any = true;
        self.did_other(tid);
    }

    /// A thread has an event.
    pub(crate) fn did_other(&mut self, tid: i32) {
        self.conditions.did_other(tid);
    }

    /// Where in the program a thread was at its last event.
    pub(crate) fn came_from(&mut self, tid: i32, callers: LabelId) {
        self.conditions.came_from(tid, callers);
    }

    /// Events are missing.
    pub(crate) fn lost(&mut self) {
        self.conditions.lost();
        self.asks.clear();
        self.holds.clear();
    }

    fn holds(&self, tid: i32, key: &Key) -> bool {
        self.holds.get(key).is_some_and(|hold| hold.tid == tid)
    }

    fn ended(&mut self, event: &WatchEvent, key: Key, whole: bool) {
        let Some(hold) = self.holds.get_mut(&key).filter(|hold| hold.tid == event.pid) else {
            // Within the wait for a condition it was released already.
            let waits = self.asks.get(&event.pid).is_some_and(|asks| asks.iter().any(|ask| ask.key == key));
            self.unpaired += u64::from(!waits);
            return;
        };
        hold.depth -= 1;
        if hold.depth > 0 && !whole {
            return;
        }
        let held_ns = event.ts_ns.saturating_sub(hold.t0_ns);
        self.holds.remove(&key);
        let Some(lock) = self.lock(key) else { return };
        let ns = held_ns.max(0).cast_unsigned();
        lock.total_ns += ns;
        lock.held.add(held_ns);
        if let Some(by) = lock.by.get_mut(&event.pid) {
            by.total_ns += ns;
            by.held.add(held_ns);
        }
    }

    fn taken(&mut self, tid: i32, key: Key) {
        let Some(lock) = self.lock(key) else {
            self.unlisted += 1;
            return;
        };
        lock.taken += 1;
        if lock.by.len() < MOST || lock.by.contains_key(&tid) {
            lock.by.entry(tid).or_default().taken += 1;
        }
    }

    fn lock(&mut self, key: Key) -> Option<&mut OfLock> {
        if self.locks.len() >= MOST && !self.locks.contains_key(&key) {
            return None;
        }
        Some(self.locks.entry(key).or_default())
    }

    /// What is stored; `None` where no locking was recorded.
    pub(crate) fn section(
        &self,
        thread: &dyn Fn(i32) -> ThreadName,
        text: &dyn Fn(LabelId) -> String,
    ) -> Option<EveryLock> {
        if !self.any {
            return None;
        }
        let mut locks: Vec<(&Key, &OfLock)> = self.locks.iter().collect();
        locks.sort_by_key(|(key, lock)| (Reverse(lock.total_ns), Reverse(lock.taken), **key));
        let beyond = locks.iter().skip(LISTED).map(|(_, lock)| lock.taken).sum::<u64>();
        let one = |(key, lock): (&Key, &OfLock)| {
            let mut by: Vec<_> = lock.by.iter().collect();
            by.sort_by_key(|(tid, of)| (Reverse(of.total_ns), **tid));
            let of = |(tid, of): (&i32, &OfThread)| TakenBy {
                thread: thread(*tid),
                taken: of.taken,
                held: of.held.summary(),
            };
            TakenLock {
                word: key.1,
                tgid: key.0,
                taken: lock.taken,
                refused: lock.refused,
                held: lock.held.summary(),
                by: by.into_iter().map(of).collect(),
            }
        };
        Some(EveryLock {
            locks: locks.into_iter().take(LISTED).map(one).collect(),
            unlisted: self.unlisted + beyond,
            unpaired: self.unpaired,
            signals: self.conditions.section(thread, text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::watch::event::What;

    const LOCK: u64 = 0x10;
    const CONDITION: u64 = 0x80;

    fn at(ts_ns: i64, pid: i32) -> WatchEvent {
        WatchEvent { ts_ns, cpu: 0, pid, in_task: true, what: What::Other }
    }

    fn section(every: &Every) -> EveryLock {
        let name = |tid: i32| ThreadName { tid, comm: format!("t{tid}"), prio: None };
        every.section(&name, &|label| format!("label {label}")).unwrap()
    }

    fn take(every: &mut Every, ts_ns: i64, tid: i32) {
        every.asks(&at(ts_ns, tid), Some(1), LOCK, None);
        every.asked(&at(ts_ns + 1, tid), 0);
    }

    fn give(every: &mut Every, ts_ns: i64, tid: i32) {
        every.releases(&at(ts_ns, tid), Some(1), LOCK);
    }

    #[test]
    fn every_locking_is_counted_by_lock_and_thread_with_the_time_that_it_was_held() {
        let mut every = Every::default();
        take(&mut every, 0, 7);
        give(&mut every, 11, 7);
        // One thread asks while the other has it.
        every.asks(&at(20, 7), Some(1), LOCK, None);
        take(&mut every, 20, 8);
        give(&mut every, 51, 8);
        every.asked(&at(52, 7), 0);
        give(&mut every, 55, 7);
        let all = section(&every);
        let lock = &all.locks[0];
        assert_eq!((lock.taken, lock.refused, all.unpaired), (3, 0, 0));
        let held = lock.held.unwrap();
        assert_eq!((held.n, held.min_ns, held.max_ns), (3, 3, 30));
        let by: Vec<_> =
            lock.by.iter().map(|by| (by.thread.tid, by.taken, by.held.unwrap().max_ns)).collect();
        assert_eq!(by, [(8, 1, 30), (7, 2, 10)]);
    }

    #[test]
    fn a_lock_is_not_held_while_its_thread_waits_for_a_condition() {
        let mut every = Every::default();
        take(&mut every, 0, 7);
        every.asks(&at(11, 7), Some(1), LOCK, Some(CONDITION));
        take(&mut every, 20, 8);
        give(&mut every, 26, 8);
        // The time was over, and the lock is taken all the same (ETIMEDOUT).
        every.asked(&at(31, 7), 110);
        give(&mut every, 36, 7);
        let all = section(&every);
        assert_eq!((all.locks[0].taken, all.unpaired), (3, 0));
        assert_eq!(all.locks[0].held.unwrap().max_ns, 10);
    }

    #[test]
    fn a_library_that_waits_by_its_own_locking_is_not_counted_twice() {
        let mut every = Every::default();
        take(&mut every, 0, 7);
        every.asks(&at(11, 7), Some(1), LOCK, Some(CONDITION));
        give(&mut every, 12, 7);
        take(&mut every, 20, 7);
        every.asked(&at(22, 7), 0);
        give(&mut every, 31, 7);
        let all = section(&every);
        assert_eq!((all.locks[0].taken, all.locks[0].held.unwrap().n, all.unpaired), (2, 2, 0));
    }

    #[test]
    fn a_recursive_lock_is_held_until_its_last_release_and_a_refusal_is_no_locking() {
        let mut every = Every::default();
        take(&mut every, 0, 7);
        take(&mut every, 10, 7);
        every.asks(&at(12, 8), Some(1), LOCK, None);
        every.asked(&at(13, 8), 16);
        give(&mut every, 20, 7);
        give(&mut every, 41, 7);
        let all = section(&every);
        let lock = &all.locks[0];
        assert_eq!(
            (lock.taken, lock.refused, lock.held.unwrap().n, lock.held.unwrap().max_ns),
            (2, 1, 1, 40)
        );
    }

    #[test]
    fn a_signal_without_the_mutex_of_those_who_wait_is_counted_and_no_other() {
        let mut every = Every::default();
        let signal = |every: &mut Every, ts_ns, tid| every.signals(&at(ts_ns, tid), Some(1), CONDITION);
        let wait = |every: &mut Every, ts_ns| {
            take(every, ts_ns, 7);
            every.asks(&at(ts_ns + 2, 7), Some(1), LOCK, Some(CONDITION));
        };
        signal(&mut every, 0, 8);
        wait(&mut every, 1);
        take(&mut every, 5, 8);
        signal(&mut every, 7, 8);
        give(&mut every, 8, 8);
        assert_eq!(section(&every).signals, [], "nobody waited, and then the lock was held");
        signal(&mut every, 9, 8);
        // Another thread holds it.
        take(&mut every, 10, 9);
        signal(&mut every, 12, 8);
        give(&mut every, 13, 9);
        every.asked(&at(14, 7), 0);
        signal(&mut every, 15, 8);
        give(&mut every, 16, 7);
        let all = section(&every).signals;
        let of: Vec<_> = all.iter().map(|one| (one.thread.tid, one.mutex, one.n, one.first_ns)).collect();
        assert_eq!(of, [(8, LOCK, 2, 9)]);
        assert_eq!(all[0].waiters.iter().map(|one| one.tid).collect::<Vec<_>>(), [7]);
        // What was held is not known behind a loss, nor of a lock whose taking no probe saw.
        wait(&mut every, 20);
        every.lost();
        signal(&mut every, 23, 8);
        every.came_from(8, 5);
        every.asks(&at(25, 6), Some(1), LOCK, Some(CONDITION));
        signal(&mut every, 27, 8);
        assert_eq!(section(&every).signals[0].n, 2);
        // Where in the program: the stack is that of the last event.
        assert_eq!(section(&every).signals[0].callers, None);
        wait(&mut every, 30);
        signal(&mut every, 33, 8);
        every.asks(&at(34, 8), Some(1), LOCK + 8, None);
        every.came_from(8, 6);
        assert_eq!(section(&every).signals[0].callers, None);
        signal(&mut every, 35, 8);
        every.came_from(8, 7);
        assert_eq!(section(&every).signals[0].callers.as_deref(), Some("label 7"));
    }

    #[test]
    fn what_has_no_other_end_has_no_length() {
        let mut every = Every::default();
        give(&mut every, 5, 7);
        every.asked(&at(6, 7), 0);
        take(&mut every, 10, 7);
        every.lost();
        give(&mut every, 20, 7);
        let all = section(&every);
        assert_eq!((all.locks[0].taken, all.locks[0].held, all.unpaired), (1, None, 3));
        assert_eq!(
            Every::default()
                .section(&|tid| ThreadName { tid, comm: String::new(), prio: None }, &|_| String::new()),
            None
        );
    }
}
