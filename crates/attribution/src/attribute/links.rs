//! From effects back to causes: join tables by what both ends name, and queues by order in time.
//!
//! *Exact* joins: a cross-CPU call by its request (`csd`); a work item and a timer by their
//! addresses; a task that is switched to by the wake-up that named it; a softirq by the raise on
//! the same CPU (its bit is cleared when it runs). *By order*: a reschedule IPI by the sends to the
//! same CPU since the last one, else by remote wake-ups; a TLB flush by the last shootdown. An IPI
//! takes the whole queue of its CPU at once (`flush_smp_call_function_queue`), so one IPI may serve
//! many senders.
//!
//! Sources: Linux kernel/smp.c, kernel/irq_work.c, kernel/sched/core.c (`ttwu_queue_wakelist`),
//! arch/x86/mm/tlb.c.

use super::cause::{Cause, Causes, Source};
use super::context::Contexts;
use crate::by_task::ByTask;
use crate::holes::Hole;
use crate::labels::{CpuSets, LabelId};
use crate::view::{At, KernelEvent, Target, Wake, Way, What};
use model::EventClass;
use rustc_hash::FxHashMap;

/// The most addresses kept of each kind. A kernel has fewer alive; more are stale, so all are
/// dropped together.
const MOST: usize = 1 << 16;
/// The most sends kept for one CPU.
const MOST_PENDING: usize = 64;

/// A requested wake-up.
#[derive(Debug, Clone, Copy)]
struct Waking {
    source: Source,
    /// Whether its task has run since.
    served: bool,
}

/// Something sent to a CPU that has not arrived.
#[derive(Debug, Clone, Copy)]
struct Pending {
    class: EventClass,
    source: Source,
}

/// What the last event of a CPU requested, until its stack is read.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Call(u64),
    Work(u64),
    Wake {
        pid: i32,
        target: u32,
    },
    /// `named`: after the function it runs, which says more than its stack.
    Sent {
        target: Target,
        named: bool,
    },
    Shootdown,
}

/// Requests whose effect has not been seen yet.
#[derive(Debug, Default)]
pub(crate) struct Links {
    contexts: Contexts,
    calls: FxHashMap<u64, Source>,
    works: FxHashMap<u64, Source>,
    timers: FxHashMap<u64, Source>,
    wakings: ByTask<Waking>,
    raised: FxHashMap<(u32, u64), Source>,
    shootdown: Option<Source>,
    /// The CPU that has just queued irq_work, and the target: the IPI for it comes next.
    announced: Option<(u32, u32)>,
    /// By CPU number: the last requester and request.
    asked: Vec<Option<(i32, Asked)>>,
    /// Ends of the open holes, ns.
    holes: Vec<i64>,
    /// By CPU number.
    pending: Vec<Vec<Pending>>,
    /// Remote wake-ups for a CPU since its last reschedule IPI, by CPU number.
    remote: Vec<Option<Source>>,
}

impl Links {
    /// For measured CPUs up to this number.
    pub(crate) fn new(highest: u32) -> Self {
        let size = highest as usize + 1;
        Self { pending: vec![Vec::new(); size], remote: vec![None; size], ..Self::default() }
    }

    /// Notes the request of an event. Call it after looking up the event's effects.
    #[inline(always)]
    pub(crate) fn note(&mut self, event: &KernelEvent, sets: &CpuSets) {
        match event.what {
            What::Switch { .. } => self.note_switch(event.at()),
            What::Wake { pid, target, done } => self.note_wake(event.at(), Wake { pid, target, done }),
            _ => self.note_other(event, sets),
        }
    }

    /// The same of a switch.
    #[inline(always)]
    pub(crate) fn note_switch(&mut self, at: At) {
        self.contexts.switched(at.cpu);
        self.asks_nothing(at.cpu);
    }

    /// The same of a wake-up.
    #[inline(always)]
    pub(crate) fn note_wake(&mut self, at: At, wake: Wake) {
        self.wake(at, wake);
        let Wake { pid, target, done } = wake;
        if done {
            self.asks_nothing(at.cpu);
        } else {
            self.asks(at, Some(Asked::Wake { pid, target }));
        }
    }

    /// Stores the last request on a CPU, or none.
    #[inline(always)]
    fn asks(&mut self, at: At, asked: Option<Asked>) {
        let asked = asked.map(|asked| (at.pid, asked));
        // A stack belongs to the event right before it.
        match self.asked.get_mut(at.cpu as usize) {
            Some(last) => *last = asked,
            None => self.new_cpu(at.cpu, asked),
        }
    }

    #[inline(always)]
    fn asks_nothing(&mut self, cpu: u32) {
        if let Some(last) = self.asked.get_mut(cpu as usize) {
            *last = None;
        }
    }

    #[cold]
    fn new_cpu(&mut self, cpu: u32, asked: Option<(i32, Asked)>) {
        self.asked.resize(cpu as usize + 1, None);
        self.asked[cpu as usize] = asked;
    }

    #[inline(never)]
    fn note_other(&mut self, event: &KernelEvent, sets: &CpuSets) {
        self.contexts.event(event);
        let asked = match event.what {
            What::Armed { timer, .. } => {
                let who = self.contexts.who_arms(event, timer);
                keep(&mut self.timers, timer, Source::new(event.cpu, who));
                None
            }
            What::Queued { work } => {
                let source = self.source(event, None);
                keep(&mut self.works, work, source);
                Some(Asked::Work(work))
            }
            What::CallQueued { csd, target, site, irq_work } => {
                let source = self.source(event, Some(site));
                if irq_work {
                    self.send(target, EventClass::IpiCall, source);
                    self.announced = Some((event.cpu, target));
                    Some(Asked::Sent { target: Target::One(target), named: true })
                } else {
                    keep(&mut self.calls, csd, source);
                    Some(Asked::Call(csd))
                }
            }
            What::Sent { target, class, site } => {
                self.sent(event, target, class, site, sets);
                Some(Asked::Sent { target, named: class == EventClass::IpiIrqwork })
            }
            What::Raised { vector } => {
                // The first raise is the cause: later ones find the bit set.
                let source = self.source(event, None);
                self.raised.entry((event.cpu, vector)).or_insert(source);
                None
            }
            What::Shootdown => {
                self.shootdown = Some(self.source(event, None));
                Some(Asked::Shootdown)
            }
            What::Stack { at_switch: false, act, .. } => return self.by_way(event, act, sets),
            // Between the event and the kernel's stack.
            What::UserStack => return,
            _ => None,
        };
        self.asks(event.at(), asked);
    }

    fn sent(
        &mut self,
        event: &KernelEvent,
        target: Target,
        class: EventClass,
        site: LabelId,
        sets: &CpuSets,
    ) {
        let source = self.source(event, Some(site));
        match target {
            // The IPI of irq_work that was named by what it runs.
            Target::One(cpu) if self.announced.take() == Some((event.cpu, cpu)) => {}
            Target::One(cpu) => self.send(cpu, class, source),
            Target::Set(set) => {
                let there = (0..self.pending.len() as u32).filter(|cpu| sets.has(set, *cpu));
                there.for_each(|cpu| self.send(cpu, class, source));
            }
        }
    }

    /// The stack of the last request.
    fn by_way(&mut self, event: &KernelEvent, way: Way, sets: &CpuSets) {
        let asked = self.asked.get_mut(event.cpu as usize).and_then(Option::take);
        let Some((_, asked)) = asked.filter(|(pid, _)| *pid == event.pid) else { return };
        let name = |source: &mut Source| {
            if source.cpu == event.cpu {
                *source = source.by_way(way);
            }
        };
        match asked {
            Asked::Call(csd) => self.calls.get_mut(&csd).into_iter().for_each(name),
            Asked::Work(work) => self.works.get_mut(&work).into_iter().for_each(name),
            Asked::Shootdown => self.shootdown.iter_mut().for_each(name),
            Asked::Wake { pid, target } => {
                self.wakings.get_mut(pid).into_iter().for_each(|waking| name(&mut waking.source));
                let remote = self.remote.get_mut(target as usize).filter(|_| event.cpu != target);
                remote.into_iter().flatten().for_each(name);
            }
            Asked::Sent { target, named } => {
                let is = |cpu: u32| match target {
                    Target::One(one) => one == cpu,
                    Target::Set(set) => sets.has(set, cpu),
                };
                let there = self.pending.iter_mut().enumerate().filter(|(cpu, _)| is(*cpu as u32));
                for one in there.filter_map(|(_, pending)| pending.last_mut()) {
                    let site = one.source.site;
                    name(&mut one.source);
                    one.source.site = if named { site } else { one.source.site };
                }
            }
        }
    }

    #[inline(always)]
    fn source(&self, event: &KernelEvent, site: Option<LabelId>) -> Source {
        Source { site, ..Source::new(event.cpu, self.contexts.who(event.at())) }
    }

    #[inline(always)]
    fn wake(&mut self, at: At, Wake { pid, target, done }: Wake) {
        let elsewhere = at.cpu != target;
        if done && !elsewhere {
            return;
        }
        let source = Source::new(at.cpu, self.contexts.who(at));
        if !done {
            if self.wakings.len() >= MOST {
                self.wakings.clear();
            }
            self.wakings.insert(pid, Waking { source, served: false });
        }
        if elsewhere && let Some(remote) = self.remote.get_mut(target as usize) {
            *remote = Some(source);
        }
    }

    fn send(&mut self, cpu: u32, class: EventClass, source: Source) {
        if let Some(pending) = self.pending.get_mut(cpu as usize) {
            if pending.len() == MOST_PENDING {
                pending.remove(0);
            }
            pending.push(Pending { class, source });
        }
    }

    /// The source of what begins here.
    pub(crate) fn of_entry(&mut self, cpu: u32, class: EventClass, key: u64, label: LabelId) -> Causes {
        match class {
            EventClass::Work => {
                let source = self.works.remove(&key);
                self.joined(source)
            }
            // The tick arms itself.
            EventClass::TimerHrtimer | EventClass::TimerWheel if key != 0 => {
                self.joined(self.timers.get(&key).copied())
            }
            EventClass::Softirq => {
                let source = self.raised.remove(&(cpu, key));
                self.joined(source)
            }
            EventClass::Irq => Causes::one(Cause::exact(Source::new(cpu, super::Who::Device(label)))),
            EventClass::IpiResched => self.resched(cpu),
            EventClass::IpiIrqwork => self.take(cpu, EventClass::IpiIrqwork),
            _ => Causes::default(),
        }
    }

    fn resched(&mut self, cpu: u32) -> Causes {
        let mut causes = self.take(cpu, EventClass::IpiResched);
        let remote = self.remote.get_mut(cpu as usize).and_then(Option::take);
        if let (true, Some(source)) = (causes.is_empty(), remote) {
            causes.add(Cause::order(source));
        }
        causes
    }

    fn take(&mut self, cpu: u32, class: EventClass) -> Causes {
        let mut causes = Causes::default();
        if let Some(pending) = self.pending.get_mut(cpu as usize) {
            pending.retain(|one| {
                let mine = one.class == class;
                if mine {
                    causes.add(Cause::order(one.source));
                }
                !mine
            });
        }
        causes
    }

    /// The source of a function that an IPI delivered.
    pub(crate) fn of_call(&mut self, csd: u64) -> Option<Cause> {
        self.calls.remove(&csd).map(|source| self.cause(source))
    }

    /// The source of a wake-up that `cpu` completes; `None` if `cpu` itself requested it.
    pub(crate) fn of_remote_wake(&self, cpu: u32, pid: i32) -> Option<Cause> {
        let waking = self.wakings.get(pid)?;
        (waking.source.cpu != cpu && !waking.served).then(|| self.cause(waking.source))
    }

    /// Ends a call-function IPI, which has served all earlier sends. Returns the senders, for use
    /// where nothing better is known.
    pub(crate) fn of_ipi_call(&mut self, cpu: u32) -> Causes {
        self.take(cpu, EventClass::IpiCall)
    }

    /// The source of a TLB flush that came by IPI.
    pub(crate) fn of_flush(&self, cpu: u32) -> Option<Cause> {
        self.shootdown.filter(|source| source.cpu != cpu).map(Cause::order)
    }

    /// The waker of the task that gets the CPU: at its first switch only, as a later one just
    /// resumes the task.
    #[inline(always)]
    pub(crate) fn of_switch(&mut self, next: i32) -> Option<Cause> {
        let waking = self.wakings.get_mut(next).filter(|waking| !waking.served)?;
        waking.served = true;
        let source = waking.source;
        Some(self.cause(source))
    }

    /// A cause by what both ends name. While events are missing, a name may have been reused:
    /// then the cause is known by order only.
    #[inline(always)]
    fn cause(&self, source: Source) -> Cause {
        if self.holes.is_empty() { Cause::exact(source) } else { Cause::order(source) }
    }

    fn joined(&self, source: Option<Source>) -> Causes {
        Causes::of(source.map(|source| self.cause(source)))
    }

    /// Who causes an event.
    pub(crate) fn doer(&self, event: &KernelEvent) -> Cause {
        Cause::exact(self.source(event, None))
    }

    /// Advances to the next event. At the end of a hole all requests are dropped: they may have
    /// been served in it.
    #[inline(always)]
    pub(crate) fn at(&mut self, ts_ns: i64) {
        if !self.holes.is_empty() {
            self.leave_holes(ts_ns);
        }
    }

    #[cold]
    fn leave_holes(&mut self, ts_ns: i64) {
        if self.holes.iter().any(|end_ns| *end_ns <= ts_ns) {
            self.holes.retain(|end_ns| *end_ns > ts_ns);
            self.forget();
        }
    }

    /// Events of a CPU are missing: its requests in the hole are unknown, and known ones may be
    /// out of date.
    pub(crate) fn lost(&mut self, hole: Hole) {
        self.contexts.lost(hole.cpu);
        self.raised.retain(|(of, _), _| *of != hole.cpu);
        self.holes.push(hole.t1_ns);
        self.forget();
    }

    fn forget(&mut self) {
        self.calls.clear();
        self.works.clear();
        self.timers.clear();
        self.wakings.clear();
        self.shootdown = None;
        self.asked.fill(None);
        self.announced = None;
        self.pending.iter_mut().for_each(Vec::clear);
        self.remote.fill(None);
    }
}

fn keep(table: &mut FxHashMap<u64, Source>, address: u64, source: Source) {
    if table.len() >= MOST {
        table.clear();
    }
    table.insert(address, source);
}
