//! Waits for locks of the kernel while the trace streams by: from the beginning of the contention
//! to the wake-up, and who held the lock meanwhile.
//!
//! Who holds it stands in its memory, which is read whenever a watched thread begins to wait or
//! waits on; and whoever releases it wakes the next waiter (Linux kernel/locking/mutex.c
//! `__mutex_unlock_slowpath`, rwsem.c `rwsem_wake`, rtmutex.c `mark_wakeup_next_waiter`). Without
//! the memory that shows the owner of a mutex alone: a semaphore's next waiter may also be woken by
//! a reader that has just come.

use super::holders::{Release, holders};
use super::past::InCall;
use super::shape::{Evidence, LockKind, WaitEnd};
use super::wait::{Held, LockWait, Unknown};
use crate::attribute::watch::event::{Owner, WatchEvent};
use crate::labels::LabelId;
use crate::prio::Prio;
use model::kernel_locks::OwnedKind;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The most releases, and looks at the memory in one wait, that are remembered.
const MOST: usize = 1 << 12;
const LOOKS: usize = 64;

/// A lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelLock {
    pub(super) lock: u64,
    pub(super) kind: OwnedKind,
    pub(super) name: Option<LabelId>,
}

/// A wait that has not ended.
#[derive(Debug, Clone)]
struct Open {
    of: KernelLock,
    t0_ns: i64,
    slept: bool,
    prio: Prio,
    woken: Option<(i64, Option<i32>)>,
    boosted: bool,
    /// Where in the program its task was.
    callers: Option<LabelId>,
    /// The owner in its memory, when that was looked at and had changed.
    seen: Vec<(i64, Owner)>,
    /// It changed more often than is remembered.
    has_more: bool,
}

/// All tasks that wait for a lock of the kernel on CPUs that are recorded.
#[derive(Debug, Default)]
pub(super) struct KernelLocks {
    open: FxHashMap<i32, Open>,
    releases: VecDeque<Release>,
    forgotten_ns: Option<i64>,
    /// Whether owners were recorded.
    pub(super) owners: bool,
}

impl KernelLocks {
    /// A task begins to wait, or waits on.
    pub(super) fn contends(&mut self, event: &WatchEvent, of: KernelLock) {
        let open = self.open.entry(event.pid).or_insert_with(|| Open::new(of, event.ts_ns));
        // The end of the one before is missing.
        if open.of.lock != of.lock {
            *open = Open::new(of, event.ts_ns);
        }
    }

    /// The owner in its memory.
    pub(super) fn owner(&mut self, event: &WatchEvent, of: KernelLock, owner: Owner) {
        self.owners = true;
        self.contends(event, of);
        let Some(open) = self.open.get_mut(&event.pid) else { return };
        open.of.name = open.of.name.or(of.name);
        let is_new = open.seen.last().is_none_or(|(_, last)| *last != owner);
        if is_new && open.seen.len() < LOOKS {
            open.seen.push((event.ts_ns, owner));
        } else if is_new {
            open.has_more = true;
        }
    }

    /// Where in the program a task is.
    pub(super) fn came_from(&mut self, tid: i32, callers: LabelId) {
        if let Some(open) = self.open.get_mut(&tid) {
            open.callers.get_or_insert(callers);
        }
    }

    /// A task leaves its CPU to sleep.
    pub(super) fn sleeps(&mut self, tid: i32, prio: Prio) {
        if let Some(open) = self.open.get_mut(&tid) {
            (open.slept, open.prio, open.woken) = (true, prio, None);
        }
    }

    /// A task is woken.
    pub(super) fn woken(&mut self, event: &WatchEvent, tid: i32) {
        let Some(open) = self.open.get_mut(&tid) else { return };
        let by = (event.in_task && event.pid != 0).then_some(event.pid);
        open.woken = Some((event.ts_ns, by));
        let Some(by) = by else { return };
        if self.releases.len() == MOST {
            self.forgotten_ns = self.releases.pop_front().map(|one| one.ts_ns).or(self.forgotten_ns);
        }
        self.releases.push_back(Release { ts_ns: event.ts_ns, word: open.of.lock, process: None, by });
    }

    /// A waiter has the owner's priority raised.
    pub(super) fn boosts(&mut self, tid: i32) {
        if let Some(open) = self.open.get_mut(&tid) {
            open.boosted = true;
        }
    }

    /// A task has its lock, or gives up. `call`: the system call that it is in.
    pub(super) fn ends(
        &mut self,
        event: &WatchEvent,
        lock: u64,
        result: i64,
        call: Option<InCall>,
    ) -> Option<LockWait> {
        let open = self.open.remove(&event.pid).filter(|open| open.of.lock == lock)?;
        let end = if result == 0 { WaitEnd::Released } else { WaitEnd::Interrupted };
        // From its wake-up on it waits for a CPU; what did not sleep waited for the lock to the
        // end.
        let (t1_ns, by) = open.woken.filter(|_| open.slept).unwrap_or((event.ts_ns, None));
        Some(self.wait(event.pid, &open, [open.t0_ns, t1_ns], end, by, call))
    }

    fn wait(
        &self,
        tid: i32,
        open: &Open,
        time: [i64; 2],
        end: WaitEnd,
        by: Option<i32>,
        call: Option<InCall>,
    ) -> LockWait {
        let Open { of: KernelLock { lock, kind, name }, prio, boosted, .. } = *open;
        let found = if open.has_more || self.forgotten_ns.is_some_and(|ts_ns| ts_ns >= time[0]) {
            Err(Unknown::Forgotten)
        } else {
            self.holders(open, time, end, by)
        };
        let (holders, unknown) = found.map_or_else(|why| (Vec::new(), Some(why)), |held| (held, None));
        let kind = match kind {
            OwnedKind::Mutex => LockKind::KernelMutex,
            OwnedKind::RwSemaphore | OwnedKind::RwBase => LockKind::KernelSemaphore,
            OwnedKind::RtMutex => LockKind::KernelRtMutex,
        };
        let [t0_ns, t1_ns] = time;
        let inherited = boosted;
        LockWait {
            tid,
            process: None,
            prio,
            word: lock,
            kind,
            name,
            call: call.map(|call| call.call.name),
            callers: open.callers.or(call.and_then(|call| call.callers)),
            t0_ns,
            t1_ns,
            end,
            holders,
            unknown,
            inherited,
        }
    }

    /// From one look at the memory to the next, by that look and by who released the lock.
    fn holders(
        &self,
        open: &Open,
        [t0_ns, t1_ns]: [i64; 2],
        end: WaitEnd,
        by: Option<i32>,
    ) -> Result<Vec<Held>, Unknown> {
        let mut all: Vec<Held> = Vec::new();
        let looks: Vec<(i64, Option<Owner>)> = match &open.seen[..] {
            // The mutex is released by whoever wakes the next one.
            [] if open.of.kind == OwnedKind::Mutex => vec![(t0_ns, None)],
            [] => return Err(Unknown::NotShown),
            seen => seen.iter().map(|(ts_ns, owner)| (*ts_ns, Some(*owner))).collect(),
        };
        for (at, (from_ns, owner)) in looks.iter().enumerate() {
            let from_ns = if at == 0 { t0_ns } else { *from_ns };
            let is_last = at + 1 == looks.len();
            let until_ns = looks.get(at + 1).map_or(t1_ns, |(ts_ns, _)| (*ts_ns).min(t1_ns));
            // It was looked at once more on the way to the lock.
            if from_ns > until_ns || (from_ns == until_ns && at > 0) {
                continue;
            }
            let claims = match owner {
                Some(Owner::Task(tid)) => vec![(*tid, Evidence::Memory)],
                Some(Owner::Readers) => return Err(Unknown::Readers),
                Some(Owner::Nobody) | None => Vec::new(),
            };
            // What ends the wait releases the lock, or is a signal.
            let released = is_last && end == WaitEnd::Released;
            let mut releases: Vec<(i64, i32)> = self
                .releases
                .iter()
                .filter(|one| one.word == open.of.lock && (from_ns..=until_ns).contains(&one.ts_ns))
                .filter(|one| !is_last || one.ts_ns < until_ns)
                .map(|one| (one.ts_ns, one.by))
                .collect();
            if let (true, Some(by)) = (released, by) {
                releases.push((until_ns, by));
            }
            if claims.is_empty() && (open.of.kind != OwnedKind::Mutex || releases.is_empty()) {
                // For a moment nobody has it, unless that is all that was seen.
                if is_last && all.is_empty() {
                    return Err(if open.seen.is_empty() { Unknown::NotByRelease } else { Unknown::NotShown });
                }
                continue;
            }
            let (held, unknown) = holders([from_ns, until_ns], end, &releases, &claims, None);
            if let Some(unknown) = unknown {
                return Err(unknown);
            }
            all.extend(held);
        }
        Ok(all)
    }

    /// A task is seen to do something else: the end of its wait, if it was in one, is missing.
    /// Whether it slept in that.
    pub(super) fn missed(&mut self, tid: i32) -> bool {
        self.open.remove(&tid).is_some_and(|open| open.slept)
    }

    /// Since when the first of the waits that have not ended lasts, of tasks of which that is
    /// wanted.
    pub(super) fn first_ns(&self, is_wanted: impl Fn(i32) -> bool) -> Option<i64> {
        self.open.iter().filter(|(tid, _)| is_wanted(**tid)).map(|(_, open)| open.t0_ns).min()
    }

    /// Forgets what no wait can need any more.
    pub(super) fn trim(&mut self) {
        let from_ns = self.first_ns(|_| true).unwrap_or(i64::MAX);
        while self.releases.front().is_some_and(|one| one.ts_ns < from_ns) {
            self.releases.pop_front();
        }
    }

    /// Events are missing. How many waits of tasks, of which that is wanted, nothing is known of.
    pub(super) fn lost(&mut self, is_wanted: impl Fn(i32) -> bool) -> u64 {
        self.releases.clear();
        self.open.drain().filter(|(tid, open)| open.slept && is_wanted(*tid)).count() as u64
    }

    /// Waits that last when the recording ends.
    pub(super) fn lasting(&self, t1_ns: i64) -> Vec<LockWait> {
        let lasts = |(_, open): &(&i32, &Open)| open.slept && open.woken.is_none();
        let mut all: Vec<_> = self.open.iter().filter(lasts).collect();
        all.sort_by_key(|(tid, _)| **tid);
        all.into_iter()
            .map(|(tid, open)| self.wait(*tid, open, [open.t0_ns, t1_ns], WaitEnd::Lasts, None, None))
            .collect()
    }
}

impl Open {
    fn new(of: KernelLock, t0_ns: i64) -> Self {
        Self {
            of,
            t0_ns,
            slept: false,
            prio: Prio::UNKNOWN,
            woken: None,
            boosted: false,
            callers: None,
            seen: Vec::new(),
            has_more: false,
        }
    }
}
