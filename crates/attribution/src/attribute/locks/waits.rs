//! The waits for locks while the trace streams by: from the call to the wake-up, and who held the
//! lock meanwhile.
//!
//! Two things show a holder: the owner in the lock's memory when the wait begins, and who wakes the
//! waiter, since whoever releases a lock held it. Where they disagree, the owner is not known.

use super::every::Every;
use super::explain::{Explained, explain};
use super::futex::FutexCall;
use super::holders::{Release, holders};
use super::kernel::{KernelLock, KernelLocks};
use super::log::{Change, Runner};
use super::past::{InCall, Lasting, Past};
use super::shape::{Evidence, LockKind, WaitEnd};
use super::wait::{LockWait, Unknown};
use crate::attribute::watch::event::{WatchEvent, What};
use crate::labels::LabelId;
use crate::prio::Prio;
use model::syscalls::{self, Wait};
use model::watch::LockWords;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

/// The most releases that are remembered for waits that have not ended.
const MOST: usize = 1 << 12;
/// `ETIMEDOUT`; and `EINTR` with what restarts a call: include/linux/errno.h.
const TIMED_OUT: i64 = -110;
const INTERRUPTED: [i64; 5] = [-4, -512, -513, -514, -516];

/// A wait that has not ended.
#[derive(Debug, Clone)]
struct Open {
    call: FutexCall,
    t0_ns: i64,
    slept: bool,
    prio: Prio,
    /// When it was woken last, and by which thread.
    woken: Option<(i64, Option<i32>)>,
    /// Whose priority the kernel raised for it, the lock's owner first.
    boosted: Option<i32>,
    /// The lock's owner when the recording ended.
    owner_now: Option<i32>,
    /// Whether the thread has not slept before.
    is_start: bool,
}

impl Open {
    fn lasting(&self) -> Lasting {
        let owner = self.owner_now.or(self.call.owner).or(self.boosted);
        Lasting { word: self.call.word, t0_ns: self.t0_ns, owner }
    }
}

/// The locks of a program while its trace streams by.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    arch: String,
    /// Threads that make calls, or have been seen otherwise; with their processes.
    threads: FxHashMap<i32, Option<i32>>,
    /// Processes that use glibc.
    glibc: FxHashSet<i32>,
    pub(super) past: Past,
    open: BTreeMap<i32, Open>,
    releases: VecDeque<Release>,
    /// Threads that have slept, or were there before.
    slept: FxHashSet<i32>,
    /// The last release that found no room.
    forgotten_ns: Option<i64>,
    pub(super) sums: super::sums::LockSums,
    /// Waits that events are missing from.
    pub(super) withheld: u64,
    /// Whether memory of locks was recorded.
    pub(super) memory: bool,
    /// Every locking, where that was recorded.
    pub(super) every: Every,
    /// Those of the kernel.
    pub(super) kernel: KernelLocks,
}

impl Locks {
    /// `threads`: those known, with their processes; `glibc`: the processes that use that C library.
    pub(crate) fn new(
        arch: &str,
        threads: impl IntoIterator<Item = (i32, i32)>,
        glibc: impl IntoIterator<Item = i32>,
    ) -> Self {
        Self {
            arch: arch.to_owned(),
            threads: threads.into_iter().map(|(tid, tgid)| (tid, Some(tgid))).collect(),
            glibc: glibc.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Takes the next event.
    pub(crate) fn event(&mut self, event: &WatchEvent) {
        match event.what {
            What::Switch { prev, leaves, next, prios } => {
                let [prev, next] =
                    [(prev.0, prios[0]), (next.0, prios[1])].map(|(tid, prio)| Runner { tid, prio });
                self.past.log.add(event.ts_ns, Change::Switch { cpu: event.cpu, prev, leaves, next });
                if leaves.waits() {
                    self.kernel.sleeps(prev.tid, prev.prio);
                    self.sleeps(prev);
                }
            }
            What::Waking { task: (tid, _), .. } => {
                self.past.log.add(event.ts_ns, Change::Woken { tid });
                self.kernel.woken(event, tid);
                self.woken(event, tid);
            }
            What::Boost { pid, raised } if raised && event.in_task => {
                self.kernel.boosts(event.pid);
                if let Some(open) = self.open.get_mut(&event.pid) {
                    open.boosted.get_or_insert(pid);
                }
            }
            What::CallEnter { number, arguments } => self.enter(event, number, arguments),
            What::Callers(callers) => {
                self.kernel.came_from(event.pid, callers);
                self.past.came_from(event.pid, callers);
                self.every.came_from(event.pid, callers);
            }
            What::LockWords(words) => self.words(event.pid, words),
            What::CallExit { result } => self.exit(event, result),
            What::Asks { lock, condition, .. } => {
                self.every.asks(event, self.process(event.pid), lock, condition);
            }
            What::Asked { result } => self.every.asked(event, result),
            What::Releases { lock } => self.every.releases(event, self.process(event.pid), lock),
            What::Signals { condition } => {
                self.every.signals(event, self.process(event.pid), condition);
            }
            What::Contends { lock, kind, name } => {
                self.kernel.contends(event, KernelLock { lock, kind, name });
                self.trim(event.ts_ns);
            }
            What::KernelOwner { lock, kind, name, owner } => {
                // Only watched threads have their locks looked at.
                self.threads.entry(event.pid).or_insert(None);
                self.kernel.owner(event, KernelLock { lock, kind, name }, owner);
                self.trim(event.ts_ns);
            }
            What::Contended { lock, result } => {
                let call = self.past.in_call(event.pid).copied();
                if let Some(wait) = self.kernel.ends(event, lock, result, call) {
                    self.closed(wait);
                }
                self.trim(event.ts_ns);
            }
            _ => {}
        }
    }

    /// A wait for a lock of the kernel has ended, or the recording has. Those of other tasks only
    /// show what the holders of other locks waited for.
    fn closed(&mut self, wait: LockWait) {
        if self.threads.contains_key(&wait.tid) {
            let explained =
                if wait.holders.is_empty() { Explained::default() } else { explain(&self.past, &wait) };
            self.sums.add(&wait, explained);
        }
        self.past.closed(wait);
    }

    /// A thread begins or ends a call: it waits for no lock of the kernel any more.
    fn is_elsewhere(&mut self, tid: i32) {
        self.withheld += u64::from(self.kernel.missed(tid));
        self.every.did_other(tid);
    }

    fn enter(&mut self, event: &WatchEvent, number: u64, arguments: [u64; 3]) {
        self.is_elsewhere(event.pid);
        let process = *self.threads.entry(event.pid).or_insert(None);
        // Should the end of an earlier call be missing.
        self.open.remove(&event.pid);
        let Some(call) = syscalls::by_number(&self.arch, number) else { return };
        self.past.enter(event.pid, InCall { call, t0_ns: event.ts_ns, word: arguments[0], callers: None });
        let glibc = process.is_some_and(|process| self.glibc.contains(&process));
        let Some(call) = FutexCall::of(call, arguments, glibc) else { return };
        let open = Open {
            call,
            t0_ns: event.ts_ns,
            slept: false,
            prio: Prio::UNKNOWN,
            woken: None,
            boosted: None,
            owner_now: None,
            is_start: !self.slept.contains(&event.pid),
        };
        self.open.insert(event.pid, open);
        self.trim(event.ts_ns);
    }

    fn words(&mut self, tid: i32, words: [u32; 5]) {
        self.memory = true;
        let Self { open, threads, .. } = self;
        if let Some(open) = open.get_mut(&tid) {
            open.call = open.call.with_words(words, |tid| threads.contains_key(&tid));
        }
    }

    /// Threads that were there before.
    pub(crate) fn were_there(mut self, tids: impl IntoIterator<Item = i32>) -> Self {
        self.slept.extend(tids);
        self
    }

    /// The memory of a lock that a thread still waits for; perhaps since before `t0_ns`, when the
    /// recording began.
    pub(crate) fn at_the_end(&mut self, memory: &LockWords, t0_ns: i64) {
        let Self { open, threads, past, slept, .. } = self;
        if !open.contains_key(&memory.tid) && slept.contains(&memory.tid) {
            let call = FutexCall { word: memory.word, kind: LockKind::Unknown, owner: None };
            let wait = Open {
                call,
                t0_ns,
                slept: true,
                prio: Prio::UNKNOWN,
                woken: None,
                boosted: None,
                owner_now: None,
                is_start: false,
            };
            open.insert(memory.tid, wait);
        }
        let Some(open) = open.get_mut(&memory.tid).filter(|open| open.call.word == memory.word) else {
            return;
        };
        let call = open.call.with_words(memory.words, |tid| threads.contains_key(&tid));
        // It may have changed hands since the wait began.
        open.owner_now = call.owner;
        open.call.kind = call.kind;
        if open.slept && call.kind.is_lock() {
            past.sleeps(memory.tid, open.lasting());
        }
    }

    fn sleeps(&mut self, prev: Runner) {
        self.slept.insert(prev.tid);
        let Some(open) = self.open.get_mut(&prev.tid) else { return };
        (open.slept, open.prio, open.woken) = (true, prev.prio, None);
        if open.call.kind.is_lock() {
            self.past.sleeps(prev.tid, open.lasting());
        }
    }

    fn woken(&mut self, event: &WatchEvent, tid: i32) {
        let Some(call) = self.open.get(&tid).map(|open| open.call) else { return };
        let process = self.process(tid);
        // Whoever sends a signal, or ends the process, wakes the waiter too, and releases nothing.
        let releases = self.past.in_call(event.pid).is_some_and(|now| {
            now.call.wait == Wait::Futex && (now.word == call.word || self.process(event.pid) != process)
        });
        let by = (event.in_task && releases && call.kind.is_lock()).then_some(event.pid);
        if let Some(open) = self.open.get_mut(&tid) {
            open.woken = Some((event.ts_ns, by));
        }
        if let Some(by) = by {
            if self.releases.len() == MOST {
                self.forgotten_ns = self.releases.pop_front().map(|one| one.ts_ns).or(self.forgotten_ns);
            }
            self.releases.push_back(Release { ts_ns: event.ts_ns, word: call.word, process, by });
        }
    }

    fn process(&self, tid: i32) -> Option<i32> {
        self.threads.get(&tid).copied().flatten()
    }

    fn exit(&mut self, event: &WatchEvent, result: i64) {
        let tid = event.pid;
        self.is_elsewhere(tid);
        let callers = self.past.in_call(tid).and_then(|call| call.callers);
        self.past.exit(tid, event.ts_ns);
        let Some(open) = self.open.remove(&tid) else { return };
        let end = match result {
            TIMED_OUT => WaitEnd::TimedOut,
            other if INTERRUPTED.contains(&other) => WaitEnd::Interrupted,
            _ => WaitEnd::Released,
        };
        // The C library holds a new thread back by a lock of its own until it is set up.
        let is_start = open.is_start && open.call.kind == LockKind::ByValue;
        match open.woken {
            _ if is_start || !open.call.kind.is_lock() => {}
            Some((woken_ns, by)) if open.slept => self.close((tid, callers), &open, woken_ns, end, by),
            // It waited on a CPU that is not recorded.
            _ if result == 0 && open.call.kind != LockKind::Inheriting => self.withheld += 1,
            _ => {}
        }
        self.trim(event.ts_ns);
    }

    /// `callers`: where in the program its call was made.
    fn close(
        &mut self,
        (tid, callers): (i32, Option<LabelId>),
        open: &Open,
        t1_ns: i64,
        end: WaitEnd,
        by: Option<i32>,
    ) {
        let Open { call: FutexCall { word, kind, owner }, t0_ns, prio, boosted, owner_now, .. } = *open;
        let process = self.process(tid);
        let mut wait = LockWait {
            tid,
            process,
            prio,
            word,
            kind,
            name: None,
            call: None,
            callers,
            t0_ns,
            t1_ns,
            end,
            holders: Vec::new(),
            unknown: None,
            inherited: boosted.is_some(),
        };
        let mut releases: Vec<(i64, i32)> = self
            .releases
            .iter()
            .filter(|one| one.word == word && one.process == process && (t0_ns..=t1_ns).contains(&one.ts_ns))
            .map(|one| (one.ts_ns, one.by))
            .collect();
        if let (WaitEnd::Released, Some(by)) = (end, by) {
            // The last one is its own, also where whoever woke it is not watched.
            releases.retain(|(ts_ns, _)| *ts_ns < t1_ns);
            releases.push((t1_ns, by));
        }
        // Who released this lock among those that are forgotten held it for a while, too.
        let is_forgotten = self.forgotten_ns.is_some_and(|ts_ns| ts_ns >= t0_ns);
        let claims = [(owner, Evidence::Memory), (boosted, Evidence::Boost)];
        let claims = claims.into_iter().filter_map(|(tid, evidence)| Some((tid?, evidence)));
        (wait.holders, wait.unknown) =
            holders([t0_ns, t1_ns], end, &releases, &claims.collect::<Vec<_>>(), owner_now);
        if is_forgotten {
            (wait.holders, wait.unknown) = (Vec::new(), Some(Unknown::Forgotten));
        }
        let explained =
            if wait.holders.is_empty() { Explained::default() } else { explain(&self.past, &wait) };
        self.sums.add(&wait, explained);
        self.past.closed(wait);
    }

    /// Forgets what no wait can need any more.
    fn trim(&mut self, now_ns: i64) {
        let lasting = self.open.values().filter(|open| open.call.kind.is_lock() || !open.slept);
        let of_kernel = self.kernel.first_ns(|tid| self.threads.contains_key(&tid));
        let from_ns = lasting.map(|open| open.t0_ns).chain(of_kernel).min();
        self.kernel.trim();
        self.past.keep_from(from_ns, now_ns);
        let from_ns = from_ns.unwrap_or(i64::MAX);
        while self.releases.front().is_some_and(|one| one.ts_ns < from_ns) {
            self.releases.pop_front();
        }
    }

    /// Events are missing.
    pub(crate) fn lost(&mut self, now_ns: i64) {
        self.withheld +=
            self.open.values().filter(|open| open.slept && open.call.kind.is_lock()).count() as u64;
        self.open.clear();
        self.withheld += self.kernel.lost(|tid| self.threads.contains_key(&tid));
        self.every.lost();
        self.releases.clear();
        self.past.lost(now_ns);
    }

    /// The recording ends.
    pub(crate) fn finish(&mut self, t1_ns: i64) {
        let open: Vec<(i32, Open)> = self.open.iter().map(|(tid, open)| (*tid, open.clone())).collect();
        for (tid, open) in open {
            if open.slept && open.woken.is_none() && open.call.kind.is_lock() {
                let callers = self.past.in_call(tid).and_then(|call| call.callers);
                self.close((tid, callers), &open, t1_ns, WaitEnd::Lasts, None);
            }
        }
        self.kernel.lasting(t1_ns).into_iter().for_each(|wait| self.closed(wait));
    }
}
