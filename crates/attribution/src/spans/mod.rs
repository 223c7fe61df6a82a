//! Kernel events → spans: what ran on a measured CPU, its start and end, and its time without
//! interruptions.
//!
//! Works on the merged stream, in memory that grows with CPUs and open spans only. The rules
//! (classes of `model::EventClass`):
//! - The local timer's interrupt is one event. It is `timer.tick` if the tick's function expired
//!   inside, `self` if only the probe's own timer did, `timer.hrtimer` otherwise. The expiries
//!   inside are not counted again, except timers of others in the tick's interrupt: their source
//!   did not arm the tick.
//! - A timer is the probe's own if its expiry woke only the probe, or if the probe armed it to
//!   sleep.
//! - An IPI that woke only the probe is `self`. A reschedule IPI without a visible wake-up is
//!   `self` if the probe was not running and the next switch is to the probe, with no other reason:
//!   no local wake-up of it, no other task woken.
//! - A switch to the probe or to idle is `self`; a switch to another task is `switch`, and lasts
//!   until the next switch.
//! - A preempted task that resumes has no waker. While the probe sleeps it is no event either: the
//!   switch back to it is `self`, and so is its time if it may not delay the probe.
//! - What a switch interrupts (a workqueue item that sleeps) resumes as a second span that does not
//!   count as an event.
//! - A page fault counts only while the probe is current: those of other tasks on the CPU belong to
//!   them.
//! - A migration counts only on a measured CPU that gains or loses the task.
//! - An inferred switch that was not recorded counts as one ([`omitted`]).
//!
//! Times are lower bounds: the kernel's entry and exit code lies outside its tracepoints.

mod cpu;
mod frame;
mod hand_over;
mod omitted;
mod preempted;
mod run;
mod woken;

use crate::attribute::Causes;
use crate::attribute::links::Links;
use crate::holes::Hole;
use crate::labels::{CpuSets, LabelId};
use crate::view::{At, KernelEvent, Level, Switch, Task, Wake, What};
use cpu::{Cpu, InstantEvent, Start};
use frame::Frame;
use hand_over::HandOver;
use model::EventClass;
use model::cpus::MAX_CPU;
use rustc_hash::FxHashMap;

/// Something that ran on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The CPU.
    pub cpu: u32,
    /// Its class; `self` for what the probe causes.
    pub class: EventClass,
    /// CLOCK_MONOTONIC, ns.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC, ns; not before `t0_ns`.
    pub t1_ns: i64,
    /// Its length without the spans inside it.
    pub net_ns: u64,
    /// What ran.
    pub label: LabelId,
    /// The level it ran at.
    pub level: Level,
    /// The task that was current: of a [`Level::Task`] span the one that ran it.
    pub task: Task,
    /// Whether it is an event; false where one resumes after an interruption or began before the
    /// window.
    pub counts: bool,
    /// Its sources, as far as known.
    pub causes: Causes,
}

/// A CPU that is measured, and the thread that measures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredCpu {
    /// The CPU.
    pub cpu: u32,
    /// Thread id of the probe.
    pub tid: i32,
}

/// What the rules need to know of the traced kernel: labels of texts, and how it serves softirqs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The function of timers that wake a sleeper (`hrtimer_wakeup`); `None` where functions cannot
    /// be named: then any timer that the probe armed counts as its sleep.
    pub sleeper: Option<LabelId>,
    /// For a task that was running when recording began.
    pub unnamed: LabelId,
    /// What a function-call IPI runs that completes a wake-up which another CPU requested, by its
    /// name in kernel/sched/core.c: on kernels without an event for the function, too.
    pub remote_wake: LabelId,
    /// For a task of which no switch was recorded.
    pub unseen: LabelId,
    /// For time in which the scheduler passed over a ready task.
    pub out_of_budget: LabelId,
    /// For a system call without a known name.
    pub system_call: LabelId,
    /// For what is outside the kernel: firmware or a hypervisor.
    pub outside: LabelId,
    /// Whether the trace has the handlers of all interrupts, as far as the kernel has events of
    /// them.
    pub interrupts: bool,
    /// Whether it is a PREEMPT_RT kernel, which serves softirqs and most interrupts in threads;
    /// false where functions cannot be named.
    pub rt: bool,
}

/// The timers that probes have armed.
#[derive(Debug)]
struct Timers {
    armed: FxHashMap<u64, i32>,
    pub sleeper: Option<LabelId>,
}

impl Timers {
    fn is_own(&self, timer: u64, function: LabelId, probe: i32) -> bool {
        self.armed.get(&timer) == Some(&probe) && self.sleeper.is_none_or(|sleeper| sleeper == function)
    }
}

/// Joins events with earlier ones.
#[derive(Debug)]
struct Joins {
    timers: Timers,
    links: Links,
}

/// Builds the spans of one window.
#[derive(Debug)]
pub struct SpanBuilder {
    t1_ns: i64,
    cpus: Vec<Cpu>,
    /// Place of each CPU in `cpus`, by CPU number.
    places: Vec<Option<usize>>,
    /// Frames of tasks that are off their CPU, by pid.
    parked: FxHashMap<i32, Vec<Frame>>,
    joins: Joins,
    known: Known,
}

impl SpanBuilder {
    /// For the window from `t0_ns` to `t1_ns`. CPUs beyond `model::cpus::MAX_CPU` do not exist.
    pub fn new(t0_ns: i64, t1_ns: i64, measured: &[MeasuredCpu], known: Known) -> Self {
        let cpus: Vec<Cpu> =
            measured.iter().filter(|m| m.cpu <= MAX_CPU).map(|m| Cpu::new(m.cpu, m.tid, t0_ns)).collect();
        let size = cpus.iter().map(|cpu| cpu.number as usize + 1).max().unwrap_or(0);
        let mut places = vec![None; size];
        for (place, cpu) in cpus.iter().enumerate() {
            places[cpu.number as usize] = Some(place);
        }
        let timers = Timers { armed: FxHashMap::default(), sleeper: known.sleeper };
        let joins = Joins { timers, links: Links::new(size.saturating_sub(1) as u32) };
        Self { t1_ns, cpus, places, parked: FxHashMap::default(), joins, known }
    }

    #[inline(always)]
    fn place(&self, cpu: u32) -> Option<usize> {
        self.places.get(cpu as usize).copied().flatten()
    }

    /// Takes the next event of the merged stream; events of other CPUs matter as causes. Spans come
    /// out when they end, so nearly in order of their ends. `sets`: the CPU sets of the stream.
    #[inline]
    pub fn event(&mut self, event: &KernelEvent, sets: &CpuSets, sink: &mut impl FnMut(&Span)) {
        match event.what {
            What::Switch { prev, runnable, next } => {
                self.switch(event.at(), Switch { prev, runnable, next }, sink);
            }
            What::Wake { pid, target, done } => self.wake(event.at(), Wake { pid, target, done }, sink),
            _ => self.other(event, sets, sink),
        }
    }

    /// The same of a switch.
    #[inline(always)]
    pub(crate) fn switch(&mut self, at: At, switch: Switch, sink: &mut impl FnMut(&Span)) {
        // A damaged trace may name any CPU, and tables grow with their numbers.
        if at.cpu > MAX_CPU {
            return;
        }
        self.joins.links.at(at.ts_ns);
        if let Some(place) = self.place(at.cpu) {
            let Switch { prev, runnable, next } = switch;
            self.arrive(place, at.ts_ns, (prev, true), sink);
            if let Some(state) = self.cpus.get_mut(place) {
                state.name(prev);
            }
            let (left_ns, came_ns) = (at.ts_ns, at.ts_ns);
            self.hand_over(place, prev.pid, HandOver { left_ns, came_ns, runnable, next, named: true }, sink);
        }
        self.joins.links.note_switch(at);
    }

    /// The same of a wake-up.
    #[inline(always)]
    pub(crate) fn wake(&mut self, at: At, wake: Wake, sink: &mut impl FnMut(&Span)) {
        if at.cpu > MAX_CPU {
            return;
        }
        self.joins.links.at(at.ts_ns);
        let here = self.place(at.cpu);
        let target = if at.cpu == wake.target { here } else { self.place(wake.target) };
        if let Some(state) = here.and_then(|place| self.cpus.get_mut(place)) {
            state.woke(wake.pid);
        }
        if let Some(state) = target.and_then(|place| self.cpus.get_mut(place)) {
            state.wanted(wake.pid, at.cpu == wake.target, sink);
        }
        if let Some(place) = here {
            self.arrive(place, at.ts_ns, (Task::unnamed(at.pid, self.known.unnamed), false), sink);
            // Only wake-ups inside an IPI matter.
            if wake.done && !self.cpus[place].is_plain() {
                self.woken_from_afar(place, at.cpu, wake.pid);
            }
        }
        self.joins.links.note_wake(at, wake);
    }

    #[inline(never)]
    fn woken_from_afar(&mut self, place: usize, cpu: u32, pid: i32) {
        let cause = self.joins.links.of_remote_wake(cpu, pid);
        let label = self.known.remote_wake;
        cause.into_iter().for_each(|cause| self.cpus[place].woken_from_afar(label, cause));
    }

    #[inline(never)]
    fn other(&mut self, event: &KernelEvent, sets: &CpuSets, sink: &mut impl FnMut(&Span)) {
        if event.cpu > MAX_CPU {
            return;
        }
        self.joins.links.at(event.ts_ns);
        match event.what {
            What::Armed { timer, .. } => self.armed(event, timer),
            What::Migrate { pid: moved, from, to, label } => {
                self.migrate(event, moved, [from, to], label, sink);
            }
            What::Prio { pid, prio } => {
                self.cpus.iter_mut().for_each(|cpu| cpu.has_prio(event.ts_ns, pid, prio, sink));
            }
            _ => {}
        }
        if let Some(place) = self.place(event.cpu) {
            let before_ns = self.cpus[place].last_ns();
            let who = Task::unnamed(event.pid, self.known.unnamed);
            self.arrive(place, event.ts_ns, (who, false), sink);
            self.on_measured(event, place, before_ns, sink);
        }
        self.joins.links.note(event, sets);
    }

    /// Notes the time and the current task of an event, and whether it is a switch.
    #[inline(always)]
    fn arrive(
        &mut self,
        place: usize,
        ts_ns: i64,
        (who, is_switch): (Task, bool),
        sink: &mut impl FnMut(&Span),
    ) {
        let Some(state) = self.cpus.get_mut(place) else { return };
        let before_ns = state.last_ns();
        state.arrive(ts_ns, who);
        let unseen = self.known.unseen;
        if let Some((from, to)) = state.omitted([before_ns, ts_ns], who.pid, is_switch, unseen) {
            self.omitted(place, from, to, sink);
        }
    }

    #[inline(never)]
    fn omitted(&mut self, place: usize, from: i32, to: HandOver, sink: &mut impl FnMut(&Span)) {
        self.hand_over(place, from, to, sink);
    }

    #[inline(always)]
    fn hand_over(&mut self, place: usize, from: i32, to: HandOver, sink: &mut impl FnMut(&Span)) {
        let Self { cpus, joins, parked, .. } = self;
        // Parked frames are rare.
        let resumed = if parked.is_empty() { None } else { parked.remove(&to.next.pid) };
        let resumed = resumed.unwrap_or_default();
        let left = cpus[place].switch(to, resumed, joins, sink);
        // Idle is a different task on every CPU, all with the same number.
        if from != 0 && !left.is_empty() {
            parked.insert(from, left);
        }
    }

    #[inline(never)]
    fn on_measured(
        &mut self,
        event: &KernelEvent,
        place: usize,
        before_ns: i64,
        sink: &mut impl FnMut(&Span),
    ) {
        let KernelEvent { ts_ns, cpu, pid, .. } = *event;
        let Self { cpus, joins, .. } = self;
        let state = &mut cpus[place];
        match event.what {
            What::Enter { class, context, key, label } => {
                let causes = joins.links.of_entry(cpu, class, key, label);
                let start = Start { event: event.event, key, class, context, label, causes };
                state.enter(ts_ns, start, joins, sink);
            }
            What::Exit { of, key, class, label } => {
                let (context, causes) = (crate::view::Context::Hard, Causes::default());
                state.exit(ts_ns, Start { event: of, key, class, context, label, causes }, joins, sink);
            }
            // Faults of another task, or of idle, are its own: the probe only pays the switch.
            What::Instant { class: EventClass::Exception, .. } if pid != state.probe => {}
            What::Instant { class, label, length_ns } => {
                let causes = match class {
                    EventClass::Tlb => state.flushed(joins.links.of_flush(cpu)),
                    EventClass::Exception => Causes::one(joins.links.doer(event)),
                    _ => Causes::default(),
                };
                state.instant(before_ns, ts_ns, InstantEvent { class, label, length_ns, causes }, sink);
            }
            What::Called { label, csd } => state.called(label, joins.links.of_call(csd)),
            _ => {}
        }
    }

    #[inline(never)]
    fn armed(&mut self, event: &KernelEvent, timer: u64) {
        // In an interrupt, the current task did not arm the timer.
        if event.in_task() && self.cpus.iter().any(|cpu| cpu.probe == event.pid) {
            self.joins.timers.armed.insert(timer, event.pid);
        } else {
            self.joins.timers.armed.remove(&timer);
        }
    }

    #[inline(never)]
    fn migrate(
        &self,
        event: &KernelEvent,
        moved: i32,
        ends: [u32; 2],
        label: LabelId,
        sink: &mut impl FnMut(&Span),
    ) {
        let (t0_ns, causes) = (event.ts_ns, Causes::one(self.joins.links.doer(event)));
        let touched = self.cpus.iter().filter(|cpu| ends[0] != ends[1] && ends.contains(&cpu.number));
        for cpu in touched {
            let class = if moved == cpu.probe { EventClass::SelfCaused } else { EventClass::Migrate };
            let task = cpu.current().unwrap_or(Task::unnamed(0, self.known.unnamed));
            let (cpu, t1_ns, level) = (cpu.number, t0_ns, Level::Task);
            sink(&Span { cpu, class, t0_ns, t1_ns, net_ns: 0, label, level, task, counts: true, causes });
        }
    }

    /// Events of a CPU are missing from here on: its own spans are cut, earlier causes are not
    /// reliable, and causes seen meanwhile are known by order at best.
    pub fn lost(&mut self, hole: Hole, sink: &mut impl FnMut(&Span)) {
        if hole.cpu > MAX_CPU {
            return;
        }
        if let Some(place) = self.place(hole.cpu) {
            self.cpus[place].lost(&mut self.joins, sink);
        }
        self.joins.links.lost(hole);
    }

    /// The number of switches that were not recorded, by CPU: each switch must leave the task that
    /// the one before went to. Some kernels leave switches out without counting them as lost.
    pub fn breaks(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.cpus.iter().map(|cpu| (cpu.number, cpu.breaks))
    }

    /// Sets the end of the window, which was not known before.
    pub(crate) fn until(&mut self, t1_ns: i64) {
        self.t1_ns = t1_ns;
    }

    /// Ends the window.
    pub fn finish(mut self, sink: &mut impl FnMut(&Span)) {
        for cpu in &mut self.cpus {
            cpu.finish(self.t1_ns, &mut self.joins, sink);
        }
    }
}

#[cfg(test)]
mod causes_tests;
#[cfg(test)]
mod tests;
