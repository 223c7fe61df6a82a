//! The locks of a program's threads while the trace streams by: how often a job asks for each, for
//! how long a thread executes while it holds one, and how long a job waits.
//!
//! A section begins when the function that locks returns, or, where the thread slept for the lock,
//! when it has the CPU again; it ends when the function that releases begins, or, where that calls
//! the kernel, when the thread that was woken gets the CPU or the call ends.
//!
//! Where only waits were recorded, what a futex call shows is a wait, and nothing else is known.

use super::follow::Activation;
use super::kind::Kind;
use super::lock_jobs::{LockJobs, Requests};
use super::lock_shape::{JobWait, LockProtocol, LockUser, LockingThread, ObservedLock, ProgramLocks};
use super::program::Program;
use crate::attribute::locks::{LockKind, lock_waited_for};
use crate::attribute::watch::event::{Leaves, WatchEvent, What};
use crate::attribute::watch::program::Watch;
use crate::prio::Prio;
use model::locking::MutexKind;
use model::syscalls::{self, Syscall, Wait};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The most locks, and locks that a thread holds or asks for at once.
const MOST_LOCKS: usize = 4096;
const MOST_AT_ONCE: usize = 64;
/// Bytes of a mutex: a futex within is its own.
const MUTEX_BYTES: u64 = 40;
/// `EOWNERDEAD`: the lock was taken.
const OWNER_DIED: i64 = 130;

/// What is known of the threads beside the trace.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) arch: String,
    /// Thread and process.
    pub(super) processes: BTreeMap<i32, i32>,
    /// Processes that use the GNU C library.
    pub(super) glibc: BTreeSet<i32>,
    /// Priorities, without what is inherited.
    pub(super) prios: BTreeMap<i32, Prio>,
    /// Whether every locking was recorded.
    pub(super) every: bool,
    /// What separates the jobs of a thread.
    pub(super) separators: BTreeMap<i32, Kind>,
}

impl Known {
    /// The process of a thread; of one that was never looked at, that of all others.
    fn process(&self, tid: i32) -> Option<i32> {
        let one = self.processes.values().next().copied();
        let only = one.filter(|one| self.processes.values().all(|other| other == one));
        self.processes.get(&tid).copied().or(only)
    }

    fn is_as_urgent(&self, tid: i32, as_tid: i32) -> bool {
        let (one, other) = (self.prios.get(&tid), self.prios.get(&as_tid));
        one.zip(other).is_some_and(|(one, other)| one <= other && !one.is_fair())
    }
}

/// A call that has not returned.
#[derive(Debug, Clone, Copy)]
struct Ask {
    lock: usize,
    for_condition: bool,
    /// What it had executed when it ran again with the lock.
    resumed_ns: Option<u64>,
}

/// A lock that a thread holds.
#[derive(Debug, Clone, Copy)]
struct Hold {
    lock: usize,
    depth: u32,
    /// What the thread had executed; `None` where that is not known.
    from_ns: Option<u64>,
    /// The same when it released it, and what of the release is still to come.
    to_ns: Option<u64>,
    releasing: Releasing,
    /// Switches missing before it.
    missing: u64,
    slept_since: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Releasing {
    No,
    /// The function has been called.
    Called,
    /// It has called the kernel.
    InKernel,
    /// Which has woken a thread.
    Woke,
}

/// A sleep until a lock is free.
#[derive(Debug, Clone, Copy)]
struct Sleep {
    since_ns: i64,
    cpu: u32,
    lock: usize,
    blocked_ns: u64,
}

/// One thread.
#[derive(Debug, Default)]
struct OneThread {
    asks: Vec<Ask>,
    holds: Vec<Hold>,
    call: Option<(&'static Syscall, [u64; 3])>,
    /// It sleeps for a lock.
    sleep: Option<Sleep>,
    jobs: LockJobs,
}

/// Who has a CPU since when, and how long interrupts had taken.
#[derive(Debug, Clone, Copy)]
struct OnCpu {
    tid: i32,
    since_ns: i64,
    interrupts_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Locks {
    known: Known,
    /// Switches that are missing so far.
    missing: u64,
    index: FxHashMap<(Option<i32>, u64), usize>,
    locks: Vec<ObservedLock>,
    threads: BTreeMap<i32, OneThread>,
    cpus: FxHashMap<u32, OnCpu>,
    /// Threads that sleep for a lock.
    sleeping: Vec<i32>,
    unpaired: u64,
}

/// An event, and what threads had done before it.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) event: &'a WatchEvent,
    pub(super) program: &'a Program,
    pub(super) watch: &'a Watch,
}

impl At<'_> {
    /// What the thread that runs has executed; `None` where it was not seen to come.
    fn executed_ns(&self, tid: i32) -> Option<u64> {
        self.program.executed_ns(self.watch.place(tid)?, self.event.ts_ns)
    }
}

impl Locks {
    pub(super) fn new(known: Known) -> Self {
        Self { known, ..Self::default() }
    }

    /// Takes an event, before the threads are followed through it.
    pub(super) fn event(&mut self, at: At<'_>) {
        let (tid, ts_ns) = (at.event.pid, at.event.ts_ns);
        self.missing = at.program.missing;
        match at.event.what {
            What::Asks { lock, condition, kind } => {
                if let Some(lock) = self.lock(tid, lock, kind) {
                    self.asks(at, lock, condition.is_some());
                }
            }
            What::Asked { result } => self.asked(at, result),
            What::Releases { lock } => {
                if let Some(lock) = self.lock(tid, lock, None) {
                    self.releases(tid, lock, at.executed_ns(tid), false);
                }
            }
            What::CallEnter { number, arguments } => {
                let call = syscalls::by_number(&self.known.arch, number);
                self.calls(tid, call.map(|call| (call, arguments)));
            }
            What::CallExit { .. } => {
                self.ends_releases(tid, at.executed_ns(tid));
                self.thread(tid).call = None;
            }
            What::Waking { .. } if at.event.in_task => {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    let in_kernel =
                        thread.holds.iter_mut().filter(|one| one.releasing == Releasing::InKernel);
                    in_kernel.for_each(|one| one.releasing = Releasing::Woke);
                }
            }
            What::Switch { prev, leaves, next, .. } => {
                self.on_cpu(at, next.0);
                self.leaves(at, prev.0, leaves == Leaves::Sleeps);
                self.comes(next.0, ts_ns, at);
            }
            _ => {}
        }
    }

    fn thread(&mut self, tid: i32) -> &mut OneThread {
        self.threads.entry(tid).or_default()
    }

    /// The place of a lock; `None` where there are too many.
    fn lock(&mut self, tid: i32, address: u64, kind: Option<u32>) -> Option<usize> {
        let process = self.known.process(tid);
        let key = (process, address);
        let at = match self.index.get(&key) {
            Some(at) => *at,
            None if self.locks.len() == MOST_LOCKS => return None,
            None => {
                let (protocol, is_shared) = (LockProtocol::Unknown, false);
                self.locks.push(ObservedLock { process, address, protocol, is_shared, users: Vec::new() });
                self.index.insert(key, self.locks.len() - 1);
                self.locks.len() - 1
            }
        };
        let is_glibc = process.is_some_and(|process| self.known.glibc.contains(&process));
        if let Some(kind) = kind.filter(|_| is_glibc).and_then(MutexKind::of) {
            self.locks[at].protocol = LockProtocol::of(kind);
            self.locks[at].is_shared |= kind.shared;
        }
        Some(at)
    }

    fn user(&mut self, lock: usize, tid: i32) -> &mut LockUser {
        let users = &mut self.locks[lock].users;
        let at = users.partition_point(|one| one.tid < tid);
        if users.get(at).is_none_or(|one| one.tid != tid) {
            users.insert(at, LockUser { tid, ..LockUser::default() });
        }
        &mut users[at]
    }

    fn asks(&mut self, at: At<'_>, lock: usize, for_condition: bool) {
        let tid = at.event.pid;
        self.ends_releases(tid, None);
        if for_condition {
            self.releases(tid, lock, at.executed_ns(tid), true);
        }
        let held: Vec<usize> = self
            .thread(tid)
            .holds
            .iter()
            .filter(|one| one.releasing == Releasing::No && one.lock != lock)
            .map(|one| one.lock)
            .collect();
        let within = &mut self.user(lock, tid).within;
        within.extend(held);
        within.sort_unstable();
        within.dedup();
        let asks = &mut self.thread(tid).asks;
        if asks.len() < MOST_AT_ONCE {
            asks.push(Ask { lock, for_condition, resumed_ns: None });
        }
    }

    fn asked(&mut self, at: At<'_>, result: i64) {
        let (tid, ts_ns, executed_ns) = (at.event.pid, at.event.ts_ns, at.executed_ns(at.event.pid));
        let missing = self.missing;
        self.ends_releases(tid, None);
        let thread = self.threads.entry(tid).or_default();
        let Some(Ask { lock, for_condition, resumed_ns }) = thread.asks.pop() else {
            self.unpaired += 1;
            return;
        };
        if !for_condition && result != 0 && result != OWNER_DIED {
            return;
        }
        if let Some(hold) = thread.holds.iter_mut().find(|one| one.lock == lock) {
            // A C library may wait for a condition by its own functions that lock and unlock.
            hold.depth += u32::from(!for_condition);
            return;
        }
        let from_ns = resumed_ns.or(executed_ns);
        let hold = Hold {
            lock,
            depth: 1,
            from_ns,
            to_ns: None,
            releasing: Releasing::No,
            missing,
            slept_since: None,
        };
        if thread.holds.len() < MOST_AT_ONCE {
            thread.holds.push(hold);
        }
        thread.jobs.gets(ts_ns, lock);
        self.user(lock, tid).taken += 1;
    }

    /// A function is called that releases a lock: `whole`, however often it was taken.
    fn releases(&mut self, tid: i32, lock: usize, executed_ns: Option<u64>, whole: bool) {
        self.ends_releases(tid, None);
        let thread = self.threads.entry(tid).or_default();
        let waits = thread.asks.iter().any(|ask| ask.lock == lock);
        let Some(hold) = thread.holds.iter_mut().find(|one| one.lock == lock) else {
            self.unpaired += u64::from(!waits);
            return;
        };
        hold.depth -= 1;
        if hold.depth == 0 || whole {
            (hold.to_ns, hold.releasing) = (executed_ns, Releasing::Called);
        }
    }

    fn calls(&mut self, tid: i32, call: Option<(&'static Syscall, [u64; 3])>) {
        let futex = call.filter(|(call, _)| call.wait == Wait::Futex).map(|(_, arguments)| arguments[0]);
        let Self { threads, locks, .. } = self;
        let thread = threads.entry(tid).or_default();
        thread.call = call;
        let called = thread.holds.iter_mut().filter(|one| one.releasing == Releasing::Called);
        for hold in called {
            let address = locks[hold.lock].address;
            if futex.is_some_and(|word| (address..address + MUTEX_BYTES).contains(&word)) {
                hold.releasing = Releasing::InKernel;
            }
        }
        if thread.holds.iter().any(|one| one.releasing == Releasing::Called) {
            self.ends_releases(tid, None);
        }
    }

    /// What a thread was about to release is released. `executed_ns`: where it had called the
    /// kernel for that, what it has executed by now.
    fn ends_releases(&mut self, tid: i32, executed_ns: Option<u64>) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if thread.holds.iter().all(|one| one.releasing == Releasing::No) {
            return;
        }
        let (ended, still): (Vec<Hold>, Vec<Hold>) =
            thread.holds.iter().partition(|one| one.releasing != Releasing::No);
        thread.holds = still;
        for mut hold in ended {
            if hold.releasing != Releasing::Called && executed_ns.is_some() {
                hold.to_ns = executed_ns;
            }
            self.ends(tid, hold);
        }
    }

    fn ends(&mut self, tid: i32, hold: Hold) {
        let is_whole = hold.missing == self.missing;
        let user = self.user(hold.lock, tid);
        if let Some((from_ns, to_ns)) = hold.from_ns.zip(hold.to_ns).filter(|_| is_whole) {
            user.held_ns = user.held_ns.max(to_ns.saturating_sub(from_ns));
            user.measured += 1;
        }
    }

    /// A CPU is handed to somebody: who had it until now, while others waited for locks there.
    fn on_cpu(&mut self, at: At<'_>, next: i32) {
        let (cpu, ts_ns) = (at.event.cpu, at.event.ts_ns);
        let interrupts_ns = at.program.interrupts.total_ns(cpu, ts_ns);
        let before = self.cpus.insert(cpu, OnCpu { tid: next, since_ns: ts_ns, interrupts_ns });
        let Some(before) = before else { return };
        let passed_ns = ts_ns.saturating_sub(before.since_ns).max(0).unsigned_abs();
        let had_ns = passed_ns.saturating_sub(interrupts_ns.saturating_sub(before.interrupts_ns));
        let Self { sleeping, threads, known, .. } = self;
        for tid in sleeping {
            let Some(sleep) = threads.get_mut(tid).and_then(|thread| thread.sleep.as_mut()) else { continue };
            if sleep.cpu == cpu && !known.is_as_urgent(before.tid, *tid) {
                sleep.blocked_ns = sleep.blocked_ns.saturating_add(had_ns);
            }
        }
    }

    fn leaves(&mut self, at: At<'_>, tid: i32, sleeps: bool) {
        let (cpu, ts_ns) = (at.event.cpu, at.event.ts_ns);
        let executed_ns = at.executed_ns(tid);
        let Some(thread) = self.threads.get(&tid) else { return };
        // Who was woken has the CPU, or waits for another one's.
        if thread.holds.iter().any(|one| one.releasing == Releasing::Woke) {
            self.ends_releases(tid, executed_ns);
        }
        if !sleeps {
            return;
        }
        let lock = self.waits_for(tid);
        let thread = self.thread(tid);
        for hold in &mut thread.holds {
            hold.slept_since = Some(ts_ns);
        }
        if let Some(lock) = lock {
            thread.sleep = Some(Sleep { since_ns: ts_ns, cpu, lock, blocked_ns: 0 });
            self.sleeping.push(tid);
        }
    }

    /// The lock that a thread sleeps for.
    fn waits_for(&mut self, tid: i32) -> Option<usize> {
        let thread = self.threads.get(&tid)?;
        let call = thread.call;
        if let Some(ask) = thread.asks.last().copied() {
            let address = self.locks[ask.lock].address;
            let of_lock = |(call, arguments): (&Syscall, [u64; 3])| {
                call.wait == Wait::Futex && (address..address + MUTEX_BYTES).contains(&arguments[0])
            };
            return (!ask.for_condition || call.is_some_and(of_lock)).then_some(ask.lock);
        }
        // By another function than those that are probed: a suspension.
        let (call, arguments) = call.filter(|_| !self.known.every)?;
        let process = self.known.process(tid);
        let is_glibc = process.is_some_and(|process| self.known.glibc.contains(&process));
        let kind = lock_waited_for(call, arguments, is_glibc)?;
        let lock = self.lock(tid, arguments[0], None)?;
        if kind == LockKind::Inheriting {
            self.locks[lock].protocol = LockProtocol::Inherits;
        }
        Some(lock)
    }

    fn comes(&mut self, tid: i32, ts_ns: i64, at: At<'_>) {
        let executed_ns = at.watch.place(tid).map(|place| at.program.executed_before_ns(place));
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let call = thread.call.map(|(call, _)| call.name).unwrap_or_default();
        let mut slept: Vec<(usize, u64)> = Vec::new();
        for hold in &mut thread.holds {
            if let Some(since_ns) = hold.slept_since.take() {
                slept.push((hold.lock, ts_ns.saturating_sub(since_ns).max(0).unsigned_abs()));
            }
        }
        let sleep = thread.sleep.take();
        if let Some(Sleep { since_ns, lock, blocked_ns, .. }) = sleep {
            let waited_ns = ts_ns.saturating_sub(since_ns).max(0).unsigned_abs();
            thread.jobs.waited(since_ns, JobWait { woken_ns: ts_ns, waited_ns, blocked_ns });
            thread.asks.iter_mut().for_each(|ask| ask.resumed_ns = executed_ns);
            self.sleeping.retain(|one| *one != tid);
            self.user(lock, tid).waits += 1;
        }
        for (lock, ns) in slept {
            let user = self.user(lock, tid);
            if ns > user.slept_ns {
                (user.slept_ns, user.slept_in) = (ns, call.to_owned());
            }
        }
    }

    /// Takes an activation of a thread, which has ended with the last event.
    pub(super) fn activation(&mut self, tid: i32, activation: &Activation) {
        let Some(separator) = self.known.separators.get(&tid).copied() else { return };
        let lock = activation.kind.and_then(|kind| self.lock_in(tid, kind));
        let jobs = &mut self.threads.entry(tid).or_default().jobs;
        let ended = jobs.activation(separator, activation, lock.is_some());
        if let Some(lock) = lock.filter(|_| ended.waited_alone) {
            self.user(lock, tid).waits += 1;
        }
        ended.requests.into_iter().for_each(|requests| self.requested(tid, &requests));
    }

    /// A job of a thread has ended.
    fn requested(&mut self, tid: i32, requests: &Requests) {
        for (lock, n) in requests {
            let user = self.user(*lock, tid);
            user.requests = user.requests.max(*n);
        }
    }

    /// The lock whose futex a thread waited for in a call.
    fn lock_in(&self, tid: i32, kind: Kind) -> Option<usize> {
        let Kind::Call { wait: Wait::Futex, which, .. } = kind else { return None };
        let (word, process) = (which << 3, self.known.process(tid));
        let is_it = |lock: &ObservedLock| {
            lock.process == process && (lock.address..lock.address + MUTEX_BYTES).contains(&word)
        };
        self.locks.iter().position(is_it).filter(|_| self.known.every)
    }

    /// Events are missing.
    pub(super) fn lost(&mut self) {
        self.cpus.clear();
        self.sleeping.clear();
        for thread in self.threads.values_mut() {
            let jobs = std::mem::take(&mut thread.jobs).lost();
            *thread = OneThread { jobs, ..OneThread::default() };
        }
    }

    /// What was found.
    pub(super) fn finish(mut self) -> ProgramLocks {
        let tids: Vec<i32> = self.threads.keys().copied().collect();
        for tid in tids {
            self.ends_releases(tid, None);
            let Some(thread) = self.threads.get_mut(&tid) else { continue };
            self.unpaired += thread.holds.len() as u64;
            let open = thread.jobs.finish();
            open.into_iter().for_each(|requests| self.requested(tid, &requests));
        }
        for (tid, kind) in self.known.separators.clone() {
            if let Some(lock) = self.lock_in(tid, kind) {
                self.user(lock, tid).separates = true;
            }
        }
        let has_jobs = |(tid, thread): (i32, OneThread)| {
            self.known.separators.contains_key(&tid).then_some(LockingThread { tid, ..thread.jobs.sums })
        };
        let threads = self.threads.into_iter().filter_map(has_jobs);
        let threads = threads.filter(|one| one.lockings > 0 || one.waiting > 0 || one.jobs > 0).collect();
        ProgramLocks { every: self.known.every, locks: self.locks, threads, unpaired: self.unpaired }
    }
}
