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
use super::lock_known::{At, Known};
use super::lock_shape::{JobWait, LockProtocol, LockUser, LockingThread, ObservedLock, ProgramLocks};
use super::lock_state::{Ask, Hold, Releasing, Sleep};
use super::lock_turns::Turns;
use crate::attribute::locks::{LockKind, lock_waited_for};
use crate::attribute::watch::event::{Leaves, What};
use model::locking::MutexKind;
use model::syscalls::{self, Syscall, Wait};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The most locks, and locks that a thread holds or asks for at once.
const MOST_LOCKS: usize = 4096;
const MOST_AT_ONCE: usize = 64;
/// Bytes of a mutex: a futex within is its own.
const MUTEX_BYTES: u64 = 40;
/// `EOWNERDEAD`: the lock was taken.
const OWNER_DIED: i64 = 130;

/// One thread.
#[derive(Debug, Default)]
struct OneThread {
    asks: Vec<Ask>,
    holds: Vec<Hold>,
    call: Option<(&'static Syscall, [u64; 3])>,
    /// It sleeps for a lock.
    sleep: Option<Sleep>,
    /// The CPU that it left to sleep.
    cpu: Option<u32>,
    /// Woken then, and not yet on a CPU; and sections of others meanwhile, for which one as urgent
    /// waits.
    woken_ns: Option<i64>,
    sections_ns: u64,
    jobs: LockJobs,
}

#[derive(Debug, Default)]
pub(super) struct Locks {
    known: Known,
    /// Switches that are missing so far.
    missing: u64,
    index: FxHashMap<(Option<i32>, u64), usize>,
    all: Vec<ObservedLock>,
    threads: BTreeMap<i32, OneThread>,
    turns: Turns,
    /// Threads that sleep for a lock.
    sleeping: Vec<i32>,
    /// Threads that were woken and have no CPU yet.
    woken: Vec<i32>,
    unpaired: u64,
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
                if let Some(since_ns) = self.turns.since(at.event.cpu, tid) {
                    self.sections(tid, at.event.cpu, [since_ns, ts_ns]);
                }
                self.ends_releases(tid, at.executed_ns(tid));
                self.thread(tid).call = None;
            }
            What::Waking { task, .. } => {
                self.wakes(task.0, ts_ns);
                if let Some(thread) = self.threads.get_mut(&tid).filter(|_| at.event.in_task) {
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

    /// A thread that sleeps is woken.
    fn wakes(&mut self, tid: i32, ts_ns: i64) {
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| thread.cpu.is_some()) else { return };
        if thread.woken_ns.replace(ts_ns).is_none() {
            self.woken.push(tid);
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
            None if self.all.len() == MOST_LOCKS => return None,
            None => {
                let (protocol, is_shared) = (LockProtocol::Unknown, false);
                self.all.push(ObservedLock { process, address, protocol, is_shared, users: Vec::new() });
                self.index.insert(key, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        let is_glibc = process.is_some_and(|process| self.known.glibc.contains(&process));
        if let Some(kind) = kind.filter(|_| is_glibc).and_then(MutexKind::of) {
            self.all[at].protocol = LockProtocol::of(kind);
            self.all[at].is_shared |= kind.shared;
        }
        Some(at)
    }

    fn user(&mut self, lock: usize, tid: i32) -> &mut LockUser {
        let users = &mut self.all[lock].users;
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
        let Self { threads, all, .. } = self;
        let thread = threads.entry(tid).or_default();
        thread.call = call;
        let inherits = call.is_some_and(|(call, arguments)| {
            lock_waited_for(call, arguments, false) == Some(LockKind::Inheriting)
        });
        if let Some(ask) = thread.asks.last().filter(|_| inherits)
            && all[ask.lock].protocol == LockProtocol::Unknown
        {
            // The kernel raises the holder's priority for this call, whatever C library makes it.
            all[ask.lock].protocol = LockProtocol::Inherits;
        }
        let called = thread.holds.iter_mut().filter(|one| one.releasing == Releasing::Called);
        for hold in called {
            let address = all[hold.lock].address;
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
        let Some(turn) = self.turns.switch(cpu, ts_ns, interrupts_ns, next) else { return };
        let Self { sleeping, threads, known, .. } = self;
        for tid in sleeping.iter() {
            let Some(sleep) = threads.get_mut(tid).and_then(|thread| thread.sleep.as_mut()) else { continue };
            if sleep.cpu == cpu && !known.is_as_urgent(turn.tid, *tid) {
                sleep.blocked_ns = sleep.blocked_ns.saturating_add(turn.had_ns);
            }
        }
        self.sections(turn.tid, cpu, [turn.from_ns, ts_ns]);
    }

    /// A task has had a CPU. What it executed of sections for which others wait is no dispatch of
    /// those that have been woken there, and are less urgent than these: it counts for itself.
    fn sections(&mut self, runner: i32, cpu: u32, [turn_ns, now_ns]: [i64; 2]) {
        let Self { sleeping, woken, threads, known, .. } = self;
        let held: Vec<usize> =
            threads.get(&runner).iter().flat_map(|one| &one.holds).map(|one| one.lock).collect();
        for tid in woken.iter().filter(|_| !held.is_empty()) {
            let at = threads.get(tid).and_then(|thread| thread.woken_ns.filter(|_| thread.cpu == Some(cpu)));
            let Some(from_ns) = at.map(|woken_ns| woken_ns.max(turn_ns)) else { continue };
            let is_for = |other: &i32| {
                let sleep = threads.get(other).and_then(|thread| thread.sleep);
                let waits =
                    sleep.is_some_and(|sleep| held.contains(&sleep.lock) && sleep.since_ns <= from_ns);
                waits && known.is_as_urgent(*other, *tid)
            };
            let section_ns = now_ns.saturating_sub(from_ns).max(0).unsigned_abs();
            if sleeping.iter().any(is_for)
                && let Some(thread) = threads.get_mut(tid)
            {
                thread.sections_ns = thread.sections_ns.saturating_add(section_ns);
                thread.woken_ns = Some(now_ns);
            }
        }
    }

    fn leaves(&mut self, at: At<'_>, tid: i32, sleeps: bool) {
        let (cpu, ts_ns) = (at.event.cpu, at.event.ts_ns);
        let executed_ns = at.executed_ns(tid);
        if self.known.separators.contains_key(&tid) {
            self.thread(tid);
        }
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
        thread.cpu = Some(cpu);
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
            let address = self.all[ask.lock].address;
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
            self.all[lock].protocol = LockProtocol::Inherits;
        }
        Some(lock)
    }

    fn comes(&mut self, tid: i32, ts_ns: i64, at: At<'_>) {
        let executed_ns = at.watch.place(tid).map(|place| at.program.executed_before_ns(place));
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let call = thread.call.map(|(call, _)| call.name).unwrap_or_default();
        thread.cpu = None;
        let sections_ns = std::mem::take(&mut thread.sections_ns);
        if thread.woken_ns.take().is_some() {
            thread.jobs.came(sections_ns);
            self.woken.retain(|one| *one != tid);
        }
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
        self.all.iter().position(is_it).filter(|_| self.known.every)
    }

    /// Events are missing.
    pub(super) fn lost(&mut self) {
        self.turns.lost();
        self.sleeping.clear();
        self.woken.clear();
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
        ProgramLocks { every: self.known.every, locks: self.all, threads, unpaired: self.unpaired }
    }
}
