//! All threads of a program while the trace streams by, including those created meanwhile. Memory
//! is bounded by the number of threads.

use super::chain::Chains;
use super::event::{WatchEvent, What};
use super::thread::{PreemptKey, State, Thread, Wake, Waker};
use super::waker::{By, Wakers};
use crate::by_cpu::ByCpu;
use crate::by_task::ByTask;
use crate::labels::LabelId;
use crate::names::Names;
use crate::prio::Prio;
use crate::some_tasks::SomeTasks;
use model::Cpus;
use model::syscalls::{self, Wait};
use std::collections::BTreeSet;

/// The most tasks of the machine whose names and last wakers are remembered.
const MOST: usize = 1 << 16;

/// The threads to watch beside the given ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Follow {
    /// Threads that these create.
    #[default]
    Made,
    /// None.
    Nobody,
    /// Every thread that has this name.
    Named(LabelId),
    /// Every thread under a real-time policy or with deadlines, except the kernel's stoppers.
    RealTime,
}

/// A wake-up after which a thread ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wakeup {
    /// The thread.
    pub tid: i32,
    /// The CPU that it ran on.
    pub cpu: u32,
    /// When it was to run, ns of the trace's clock: the timer's intended expiry, else when the
    /// wake-up was requested.
    pub release_ns: i64,
    /// When the CPU was handed to it.
    pub ran_ns: i64,
    /// Whether the trace lacks the request: then the release is when the thread was queued.
    pub unasked: bool,
}

/// What is known of a task of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Task {
    /// Its last waker.
    pub(super) woken_by: Option<By>,
    /// Its place among the threads that are watched.
    place: Option<usize>,
}

/// A program being watched.
pub struct Watch {
    pub(crate) threads: Vec<Thread>,
    /// All tasks seen, and those that are watched, by number.
    pub(super) tasks: ByTask<Task>,
    /// Those that are watched.
    pub(super) watched: SomeTasks,
    pub(crate) wakers: Wakers,
    pub(crate) chains: Chains,
    /// By CPU: the last waker there, and the task it woke.
    pub(super) last: ByCpu<(By, i32)>,
    /// By CPU: the task that runs there.
    pub(super) running: ByCpu<i32>,
    /// Switches missing between two others, whatever the kernel's loss counts.
    pub(crate) missing: u64,
    /// Threads that will appear, as seen elsewhere.
    pub(super) expected: BTreeSet<i32>,
    /// The CPUs whose switches are recorded; `None`: all.
    recorded: Option<Cpus>,
    pub(super) follow: Follow,
    /// The wake-ups of all threads, in the order of their ends; only if requested.
    pub(crate) wakeups: Option<Vec<Wakeup>>,
    /// Places of the threads that the last event may have woken or switched to.
    pub(crate) touched: Vec<usize>,
    arch: String,
    t0_ns: i64,
    pub(super) now_ns: i64,
}

impl Watch {
    /// Watches these threads from `t0_ns` on, each with number and first argument of the call that
    /// it was in.
    pub fn new(arch: &str, t0_ns: i64, tasks: impl IntoIterator<Item = (i32, Option<[u64; 2]>)>) -> Self {
        let mut watch = Self {
            threads: Vec::new(),
            tasks: ByTask::default(),
            watched: SomeTasks::default(),
            wakers: Wakers::default(),
            chains: Chains::default(),
            last: ByCpu::default(),
            running: ByCpu::default(),
            missing: 0,
            expected: BTreeSet::new(),
            recorded: None,
            follow: Follow::default(),
            wakeups: None,
            touched: Vec::new(),
            arch: arch.to_owned(),
            t0_ns,
            now_ns: t0_ns,
        };
        for (tid, call) in tasks {
            watch.add(tid, State::Before, t0_ns);
            if let Some([number, argument]) = call {
                watch.call(tid, number, argument);
            }
        }
        watch
    }

    /// Watches threads that the trace shows, and keeps each of their wake-ups.
    pub(crate) fn following(mut self, follow: Follow) -> Self {
        (self.follow, self.wakeups) = (follow, Some(Vec::new()));
        self
    }

    /// Sets the begin, which was not known before.
    pub(crate) fn begin(&mut self, t0_ns: i64) {
        (self.t0_ns, self.now_ns) = (t0_ns, t0_ns);
        self.threads.iter_mut().for_each(|thread| thread.begin(t0_ns));
    }

    /// For traces by another clock than CLOCK_MONOTONIC.
    pub(crate) fn by_another_clock(&mut self) {
        self.wakers.by_another_clock();
    }

    /// Threads first seen after recording had begun: watched even if the event of their creation
    /// is missing.
    pub fn expect(&mut self, tids: impl IntoIterator<Item = i32>) {
        self.expected.extend(tids);
    }

    /// Sets the CPUs whose switches are recorded. Other CPUs record only what targets these: what
    /// a thread does there is not known.
    pub fn recorded_on(&mut self, cpus: &Cpus) {
        self.recorded = Some(cpus.clone());
    }

    fn add(&mut self, tid: i32, state: State, ts_ns: i64) {
        // A number may be reused for another thread.
        self.tasks.entry(tid).place = Some(self.threads.len());
        self.watched.add(tid);
        self.threads.push(Thread::new(tid, state, ts_ns));
    }

    /// The place of a thread that is watched.
    #[inline]
    pub(crate) fn place(&self, tid: i32) -> Option<usize> {
        if self.watched.may_have(tid) { self.tasks.get(tid)?.place } else { None }
    }

    /// An event names a task. Begins to watch it if it is to be followed; returns its place if
    /// it is watched.
    fn meet(&mut self, (tid, name): (i32, LabelId), prio: Prio, ts_ns: i64) -> Option<usize> {
        let place = self.place(tid);
        if place.is_some() {
            return place;
        }
        let wanted = match self.follow {
            Follow::Made | Follow::Nobody => false,
            Follow::Named(wanted) => name == wanted,
            Follow::RealTime => prio.realtime().is_some() || prio == Prio::DEADLINE,
        };
        // There is one idle task per CPU.
        let is_met = wanted && tid > 0 && self.threads.len() < MOST;
        is_met.then(|| {
            self.add(tid, State::Lost, ts_ns);
            self.threads.len() - 1
        })
    }

    fn thread(&mut self, tid: i32) -> Option<&mut Thread> {
        let place = self.place(tid)?;
        self.threads.get_mut(place)
    }

    /// Takes the next event; `tasks`: the names so far, its own among them.
    pub(crate) fn event(&mut self, event: &WatchEvent, tasks: &Names) {
        self.now_ns = event.ts_ns;
        self.touched.clear();
        if event.in_task {
            self.seen(event);
        }
        match event.what {
            What::Switch { prev, leaves, next, prios } => {
                self.handed_over(event, prev.0, next.0);
                self.last.remove(event.cpu);
                let left = self.meet(prev, prios[0], event.ts_ns);
                let came = self.meet(next, prios[1], event.ts_ns);
                self.touched.extend(left.into_iter().chain(came));
                if let Some(left) = left {
                    let by = (next.0, PreemptKey { by: next.1, woken: self.waker(next.0, tasks) });
                    if let Some(thread) = self.threads.get_mut(left) {
                        thread.comm = Some(prev.1);
                        thread.has_prio(prios[0], leaves.waits());
                        thread.switch_out(event.ts_ns, leaves, by);
                    }
                }
                if let Some(came) = came {
                    self.switch_in(event, came, next.1);
                }
            }
            What::Waking { task, prio } => {
                let place = self.meet(task, prio, event.ts_ns);
                let (by, intended_ns) = self.wakers.who(event);
                self.last.insert(event.cpu, (by, task.0));
                self.is_woken(task.0, by);
                if let Some(place) = place {
                    self.touched.push(place);
                    let wake = self.wake(event, (by, intended_ns), false);
                    if let Some(thread) = self.threads.get_mut(place) {
                        thread.waking(wake);
                    }
                }
            }
            What::Woken { pid, new } => {
                // Unless the task is new, another CPU than the requesting one may record it.
                let by = if new { self.wakers.who(event) } else { (By::Unknown, None) };
                if let Some(place) = self.place(pid) {
                    self.touched.push(place);
                    let wake = self.wake(event, by, new);
                    if let Some(thread) = self.threads.get_mut(place) {
                        thread.woken(wake);
                    }
                }
            }
            What::Migrate { pid, .. } => {
                if let Some(thread) = self.thread(pid) {
                    thread.migrate();
                }
            }
            What::Fork { parent, child } if self.follow == Follow::Made && self.place(parent).is_some() => {
                self.add(child, State::Asleep, event.ts_ns);
            }
            What::Signal { signal, .. } => {
                // Its target may be the process; the thread that was woken for it is known.
                let by = self.wakers.who(event).0;
                if let Some((last, tid)) = self.last.get(event.cpu).copied()
                    && last == by
                    && let Some(thread) = self.thread(tid)
                {
                    thread.signal(by, signal);
                }
            }
            What::CallEnter { number, arguments } => self.call(event.pid, number, arguments[0]),
            What::CallExit { .. } => {
                if let Some(thread) = self.thread(event.pid) {
                    thread.call = None;
                }
            }
            _ => {}
        }
        self.wakers.event(event);
    }

    /// A task that does something runs.
    fn seen(&mut self, event: &WatchEvent) {
        if !self.expected.is_empty() && self.place(event.pid).is_none() && self.expected.remove(&event.pid) {
            self.add(event.pid, State::Before, self.t0_ns);
        }
        let Some(at) = self.place(event.pid) else { return };
        self.touched.push(at);
        let Self { threads, chains, recorded, .. } = self;
        let Some(thread) = threads.get_mut(at) else { return };
        if recorded.as_ref().is_some_and(|cpus| !cpus.contains(event.cpu)) {
            thread.out_of_sight(event.ts_ns, event.cpu);
            return;
        }
        let leaves = matches!(event.what, What::Switch { .. });
        if let Some(wake) = thread.seen(event.ts_ns, event.cpu, leaves) {
            let released_ns = wake.intended_ns.unwrap_or(wake.at_ns);
            let runs_ns = (!leaves).then_some(event.ts_ns);
            thread.place = chains.run(wake.before, event.pid, released_ns, runs_ns);
        }
    }

    /// Some kernels leave switches out of the trace: then the task that leaves is not the one
    /// that came.
    fn handed_over(&mut self, event: &WatchEvent, prev: i32, next: i32) {
        let before = self.running.insert(event.cpu, next);
        let Some(gone) = before.filter(|before| *before != prev) else { return };
        self.missing += 1;
        let Some(place) = self.place(gone) else { return };
        self.touched.push(place);
        if let Some(thread) = self.threads.get_mut(place)
            && thread.state == State::Running
            && thread.cpu == Some(event.cpu)
        {
            thread.lost(event.ts_ns, event.cpu);
        }
    }

    fn switch_in(&mut self, event: &WatchEvent, at: usize, name: LabelId) {
        let Self { threads, chains, wakeups, .. } = self;
        let Some(thread) = threads.get_mut(at) else { return };
        let tid = thread.tid;
        thread.comm = Some(name);
        if let Some(wake) = thread.switch_in(event.ts_ns, event.cpu) {
            let (release_ns, ran_ns) = (wake.intended_ns.unwrap_or(wake.at_ns), event.ts_ns);
            thread.place = chains.run(wake.before, tid, release_ns, Some(ran_ns));
            let unasked = wake.by == By::Unknown && !wake.start;
            let wakeup = Wakeup { tid, cpu: event.cpu, release_ns, ran_ns, unasked };
            wakeups.iter_mut().for_each(|wakeups| wakeups.push(wakeup));
        }
    }

    fn wake(&self, event: &WatchEvent, (by, intended_ns): (By, Option<i64>), start: bool) -> Wake {
        let before = match by {
            By::Thread(waker) => self.place(waker).and_then(|at| self.threads.get(at)?.place),
            _ => None,
        };
        Wake { at_ns: event.ts_ns, by, cpu: event.cpu, intended_ns, signal: None, before, start }
    }

    fn call(&mut self, tid: i32, number: u64, argument: u64) {
        let found = syscalls::by_number(&self.arch, number);
        if let Some(thread) = self.thread(tid) {
            let descriptor = |wait| if wait == Wait::Descriptor { argument } else { 0 };
            thread.call = found.map(|call| (call, descriptor(call.wait)));
        }
    }

    #[inline(always)]
    fn make_room(&mut self) {
        if self.tasks.len() >= MOST + self.threads.len() {
            self.tasks.retain(|task| task.place.is_some());
        }
    }

    /// A task is being woken.
    #[inline(always)]
    pub(super) fn is_woken(&mut self, pid: i32, by: By) {
        self.make_room();
        self.tasks.entry(pid).woken_by = Some(by);
    }

    /// The last waker of a task, by name.
    fn waker(&self, pid: i32, tasks: &Names) -> Option<Waker> {
        match self.tasks.get(pid)?.woken_by? {
            By::Timer { function } => Some(Waker::Named(function)),
            By::Interrupt(label) => Some(Waker::Named(label)),
            By::SomeInterrupt => Some(Waker::SomeInterrupt),
            By::Thread(pid) => tasks.of(pid).map(Waker::Named),
            By::Unknown => None,
        }
    }

    /// Events of this CPU are missing.
    pub fn lost(&mut self, cpu: u32) {
        self.wakers.lost(cpu);
        self.running.clear();
        self.last.clear();
        self.tasks.values_mut().for_each(|task| task.woken_by = None);
        self.touched.clear();
        self.touched.extend(0..self.threads.len());
        let now_ns = self.now_ns;
        self.threads.iter_mut().for_each(|thread| thread.lost(now_ns, cpu));
    }

    /// Recording ends.
    pub fn finish(&mut self, t1_ns: i64) {
        self.threads.iter_mut().for_each(|thread| thread.finish(t1_ns.max(self.now_ns)));
    }
}
