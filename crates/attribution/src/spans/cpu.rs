//! The stack of what runs on one CPU: task, softirq, interrupt, NMI, each inside the one before.
//!
//! Every moment belongs to the innermost frame, so the net times of a CPU's spans never exceed the
//! window.

use super::frame::{Expired, Frame, Kind};
use super::preempted::Preempted;
use super::{Joins, Span};
use crate::attribute::Causes;
use crate::labels::LabelId;
use crate::prio::Prio;
use crate::spans::run::{Counted, Run};
use crate::view::{Context, Level, Task};
use model::EventClass;

/// One measured CPU inside a window.
#[derive(Debug)]
pub(super) struct Cpu {
    pub(super) number: u32,
    /// Thread of the probe that measures here.
    pub(super) probe: i32,
    /// The current task; unknown until the first event, and after a loss.
    pub(super) current: Option<Task>,
    /// Whether it resumes after a preemption, and the probe does not wait.
    pub(super) goes_on: bool,
    /// The task that left at the last switch, until an event names the next one: the scheduler
    /// records a switch before it switches.
    pub(super) leaving: Option<i32>,
    /// The probe's priority, once a switch has shown it.
    pub(super) probe_prio: Prio,
    pub(super) preempted: Preempted,
    /// Switches that were not recorded: another task ran than the last one switched to.
    pub(super) breaks: u64,
    /// Start of the run of a task found running: the window's start; unknown after a loss.
    pub(super) running_since_ns: Option<i64>,
    /// The run of a task that is neither the probe nor idle.
    pub(super) run: Option<Run>,
    /// The open frames in and above the task.
    pub(super) stack: Vec<Frame>,
    /// A reschedule IPI without a visible wake-up: the next switch shows its target.
    undecided: Option<Span>,
    /// The first tasks woken for this CPU since the last switch.
    pub(super) woken: Vec<i32>,
    last_ns: i64,
    /// The window's start, until something starts: what ends before that ran across the edge. With
    /// the time of instants since.
    pub(super) edge: Option<(i64, u64)>,
    /// Handlers seen in the open NMI: each handler of an NMI has its own event.
    nmi_handlers: Vec<LabelId>,
    /// Timers of others that expired in the open timer interrupt: events of their own if it is the
    /// tick.
    beside_tick: Vec<Span>,
}

/// What a frame needs to begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) event: u16,
    pub(super) key: u64,
    pub(super) class: EventClass,
    pub(super) context: Context,
    pub(super) label: LabelId,
    /// Its sources.
    pub(super) causes: Causes,
}

/// An event without an end.
#[derive(Debug, Clone, Copy)]
pub(super) struct InstantEvent {
    pub(super) class: EventClass,
    pub(super) label: LabelId,
    pub(super) length_ns: u64,
    pub(super) causes: Causes,
}

/// The most timers of others kept per interrupt.
const MOST_BESIDE: usize = 8;

impl Cpu {
    pub(super) fn new(number: u32, probe: i32, t0_ns: i64) -> Self {
        Self {
            number,
            probe,
            current: None,
            goes_on: false,
            leaving: None,
            probe_prio: Prio::UNKNOWN,
            preempted: Preempted::default(),
            breaks: 0,
            running_since_ns: Some(t0_ns),
            run: None,
            stack: Vec::new(),
            undecided: None,
            woken: Vec::new(),
            last_ns: t0_ns,
            edge: Some((t0_ns, 0)),
            nmi_handlers: Vec::new(),
            beside_tick: Vec::new(),
        }
    }

    /// Notes the time and the current task of an event.
    #[inline(always)]
    pub(super) fn arrive(&mut self, ts_ns: i64, who: Task) {
        if self.current.is_none() {
            self.found_running(ts_ns, who);
        }
        self.last_ns = self.last_ns.max(ts_ns);
    }

    #[cold]
    fn found_running(&mut self, ts_ns: i64, who: Task) {
        self.current = Some(who);
        if who.pid != 0 && who.pid != self.probe {
            let since = self.running_since_ns.unwrap_or(ts_ns);
            let counted = Counted { named: false, counts: false, class: EventClass::Switch };
            self.run = Some(Run::new(since, who, counted, None));
        }
    }

    /// The current task, as far as known.
    #[inline(always)]
    pub(super) fn current(&self) -> Option<Task> {
        self.current
    }

    /// The level of the frame at this place of the stack: all frames above an interrupt are in it.
    fn level(&self, at: usize, class: EventClass, context: Context) -> Level {
        let hard = |frame: &Frame| frame.context == Context::Hard;
        if context == Context::Hard || self.stack[..at].iter().any(hard) {
            return Level::Hard;
        }
        match class {
            EventClass::Nmi => Level::Hard,
            EventClass::Softirq
            | EventClass::TimerHrtimer
            | EventClass::TimerTick
            | EventClass::TimerWheel => Level::Softirq,
            _ if self.stack[..at].iter().any(|frame| frame.class == EventClass::Softirq) => Level::Softirq,
            _ => Level::Task,
        }
    }

    /// The task that is current now.
    #[inline(always)]
    pub(super) fn on_task(&self) -> Task {
        self.current.unwrap_or(Task::unnamed(0, LabelId::MAX))
    }

    pub(super) fn enter(
        &mut self,
        ts_ns: i64,
        start: Start,
        joins: &mut Joins,
        sink: &mut impl FnMut(&Span),
    ) {
        self.edge = None;
        if let Some(stale) = self.stale(&start) {
            self.cut(stale, joins, sink);
        }
        let mut frame = open(start, ts_ns);
        if frame.kind == Kind::TimerInterrupt {
            self.beside_tick.clear();
        }
        let around = self.stack.iter().rposition(|frame| !frame.absorbed).map(|at| &mut self.stack[at]);
        if let Some(around) = around
            && around.context == Context::Hard
        {
            match (around.kind, frame.kind) {
                (Kind::TimerInterrupt, Kind::Expiry) => frame.absorbed = true,
                // arm64 delivers IPIs as interrupts: `irq_handler_entry name=IPI`, inside it
                // `ipi_entry`.
                (Kind::Plain, Kind::Ipi | Kind::TimerInterrupt) if around.class == EventClass::Irq => {
                    (around.class, around.label, around.kind) = (frame.class, frame.label, frame.kind);
                    around.causes = frame.causes;
                    frame.absorbed = true;
                }
                (Kind::Plain, _)
                    if around.class == EventClass::Irq && start.class == EventClass::IpiIrqwork =>
                {
                    (around.class, around.label, around.causes) = (frame.class, frame.label, frame.causes);
                    frame.absorbed = true;
                }
                _ => {}
            }
        }
        self.stack.push(frame);
    }

    /// A frame whose end was never recorded: nothing nests in itself, in the same context.
    fn stale(&self, start: &Start) -> Option<usize> {
        let same = |frame: &Frame| frame.event == start.event;
        match start.context {
            Context::Hard => self.stack.iter().position(same),
            Context::Preemptible => {
                let level = self
                    .stack
                    .iter()
                    .rposition(|frame| frame.context == Context::Hard)
                    .map_or(0, |hard| hard + 1);
                self.stack[level..].iter().position(same).map(|at| level + at)
            }
        }
    }

    pub(super) fn exit(&mut self, ts_ns: i64, start: Start, joins: &mut Joins, sink: &mut impl FnMut(&Span)) {
        let found = self.stack.iter().rposition(|frame| frame.event == start.event && frame.key == start.key);
        if let Some(at) = found {
            self.cut(at + 1, joins, sink);
            self.pop(ts_ns, joins, sink);
        } else if let Some((edge, nested_ns)) = self.edge {
            // It ran when recording began: its time counts from there, the event does not.
            let Start { class, label, .. } = start;
            let net_ns = (ts_ns.saturating_sub(edge).max(0) as u64).saturating_sub(nested_ns);
            let (cpu, t0_ns, t1_ns, causes) = (self.number, edge, ts_ns, Causes::default());
            let task_s = matches!(class, EventClass::Softirq | EventClass::Work);
            let context = if task_s { Context::Preemptible } else { Context::Hard };
            let (level, task) = (self.level(self.stack.len(), class, context), self.on_task());
            sink(&Span { cpu, class, label, level, task, t0_ns, t1_ns, net_ns, counts: false, causes });
            self.nest(net_ns);
            self.edge = Some((ts_ns, 0));
        }
    }

    /// Ends the innermost frame.
    pub(super) fn pop(&mut self, ts_ns: i64, joins: &mut Joins, sink: &mut impl FnMut(&Span)) {
        let Some(frame) = self.stack.pop() else { return };
        let verdict = frame.verdict(joins.timers.is_own(frame.key, frame.label, self.probe));
        if frame.absorbed {
            self.absorb(&frame, verdict, ts_ns);
            return;
        }
        let causes = self.causes(&frame, joins);
        let length = ts_ns.saturating_sub(frame.t0_ns).max(0) as u64;
        self.nest(length);
        let (class, label) = verdict;
        let beside_ns = if class == EventClass::TimerTick { self.give_beside(sink) } else { 0 };
        let span = Span {
            cpu: self.number,
            class,
            t0_ns: frame.t0_ns,
            t1_ns: frame.t0_ns.max(ts_ns),
            net_ns: length.saturating_sub(frame.nested_ns).saturating_sub(beside_ns),
            label,
            level: self.level(self.stack.len(), frame.class, frame.context),
            task: self.on_task(),
            counts: frame.counts,
            causes,
        };
        // If the remote waker itself did the work, the IPI that wakes a sleeping probe shows no
        // wake-up inside.
        let silent = class == EventClass::IpiResched && !frame.woke_probe && !frame.woke_other;
        if silent && self.current.is_some_and(|task| task.pid != self.probe) {
            self.settle(false, sink);
            self.undecided = Some(span);
        } else {
            sink(&span);
        }
    }

    /// The known causes of a frame at its end.
    fn causes(&self, frame: &Frame, joins: &mut Joins) -> Causes {
        if frame.class != EventClass::IpiCall {
            return frame.causes;
        }
        let sent = joins.links.of_ipi_call(self.number);
        if frame.causes.is_empty() { sent } else { frame.causes }
    }

    fn absorb(&mut self, frame: &Frame, verdict: (EventClass, LabelId), t1_ns: i64) {
        self.nest(frame.nested_ns);
        let (cpu, task) = (self.number, self.on_task());
        let around = self.stack.iter_mut().rev().find(|frame| !frame.absorbed);
        if let Some(around) = around
            && frame.kind == Kind::Expiry
        {
            around.note_expiry(verdict, &frame.causes);
            let ((class, label), level, t0_ns) = (verdict, Level::Hard, frame.t0_ns);
            let net_ns = (t1_ns.saturating_sub(t0_ns).max(0) as u64).saturating_sub(frame.nested_ns);
            if class == EventClass::TimerHrtimer && self.beside_tick.len() < MOST_BESIDE {
                let (t1_ns, causes, counts) = (t0_ns.max(t1_ns), frame.causes, true);
                self.beside_tick.push(Span {
                    cpu,
                    class,
                    t0_ns,
                    t1_ns,
                    net_ns,
                    label,
                    level,
                    task,
                    counts,
                    causes,
                });
            }
        }
    }

    /// Emits the timers that expired in the tick's interrupt, each as an event with its source;
    /// returns their total time, ns.
    fn give_beside(&mut self, sink: &mut impl FnMut(&Span)) -> u64 {
        self.beside_tick
            .drain(..)
            .map(|span| {
                sink(&span);
                span.net_ns
            })
            .sum()
    }

    fn nest(&mut self, ns: u64) {
        let frame = self.stack.last_mut().map(|frame| &mut frame.nested_ns);
        let around = frame.or(self.run.as_mut().map(|run| &mut run.nested_ns));
        around.into_iter().for_each(|nested_ns| *nested_ns = nested_ns.saturating_add(ns));
    }

    /// Ends frames from `at` upwards whose end was not recorded: they count, but their duration is
    /// unknown.
    pub(super) fn cut(&mut self, at: usize, joins: &mut Joins, sink: &mut impl FnMut(&Span)) {
        while self.stack.len() > at {
            let Some(frame) = self.stack.pop() else { return };
            let verdict = frame.verdict(joins.timers.is_own(frame.key, frame.label, self.probe));
            if frame.absorbed {
                self.absorb(&frame, verdict, frame.t0_ns);
                continue;
            }
            self.nest(frame.nested_ns);
            let causes = self.causes(&frame, joins);
            let ((class, label), t0_ns) = (verdict, frame.t0_ns);
            sink(&Span {
                cpu: self.number,
                class,
                t0_ns,
                t1_ns: t0_ns,
                net_ns: 0,
                label,
                level: self.level(self.stack.len(), frame.class, frame.context),
                task: self.on_task(),
                counts: frame.counts,
                causes,
            });
        }
    }

    /// Whether the target of a silent reschedule IPI is not known yet.
    #[inline(always)]
    pub(super) fn is_undecided(&self) -> bool {
        self.undecided.is_some()
    }

    /// Decides the class of a silent reschedule IPI.
    #[inline(never)]
    pub(super) fn settle(&mut self, own: bool, sink: &mut impl FnMut(&Span)) {
        if let Some(mut span) = self.undecided.take() {
            if own {
                span.class = EventClass::SelfCaused;
            }
            sink(&span);
        }
    }

    /// An event without an end, recorded at `ts_ns`; the previous event was at `before_ns`.
    pub(super) fn instant(
        &mut self,
        before_ns: i64,
        ts_ns: i64,
        instant: InstantEvent,
        sink: &mut impl FnMut(&Span),
    ) {
        let InstantEvent { class, label, length_ns, causes } = instant;
        let counts = class != EventClass::Nmi || self.first_handler(label);
        let began = ts_ns.saturating_sub_unsigned(length_ns);
        // Its length may come from another clock: it cannot have begun before the previous event.
        let t0_ns = began.max(before_ns).min(ts_ns);
        let net_ns = ts_ns.saturating_sub(t0_ns).max(0) as u64;
        self.nest(net_ns);
        if let Some((_, nested_ns)) = &mut self.edge {
            *nested_ns = nested_ns.saturating_add(net_ns);
        }
        let context = if class == EventClass::Nmi { Context::Hard } else { Context::Preemptible };
        let (level, task) = (self.level(self.stack.len(), class, context), self.on_task());
        sink(&Span {
            cpu: self.number,
            class,
            t0_ns,
            t1_ns: ts_ns,
            net_ns,
            label,
            level,
            task,
            counts,
            causes,
        });
    }

    /// Whether a handler is the first of its NMI. Handlers run in a fixed order: a repeated one
    /// belongs to the next NMI.
    fn first_handler(&mut self, label: LabelId) -> bool {
        if self.nmi_handlers.contains(&label) {
            self.nmi_handlers.clear();
        }
        self.nmi_handlers.push(label);
        self.nmi_handlers.len() == 1
    }

    #[inline(always)]
    pub(super) fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// Events are missing here: no open frame is reliable.
    pub(super) fn lost(&mut self, joins: &mut Joins, sink: &mut impl FnMut(&Span)) {
        self.settle(false, sink);
        self.cut(0, joins, sink);
        // The task did run until the last event before the hole.
        self.end_run(self.last_ns, sink);
        self.current = None;
        self.running_since_ns = None;
        self.edge = None;
        self.woken.clear();
        self.preempted.clear();
        self.beside_tick.clear();
        self.leaving = None;
        self.nmi_handlers.clear();
    }

    /// The window ends: what is open is clipped to it.
    pub(super) fn finish(&mut self, t1_ns: i64, joins: &mut Joins, sink: &mut impl FnMut(&Span)) {
        self.end_frames(t1_ns, joins, sink);
        self.end_run(t1_ns, sink);
        self.settle(false, sink);
    }

    pub(super) fn end_frames(&mut self, t1_ns: i64, joins: &mut Joins, sink: &mut impl FnMut(&Span)) {
        while !self.stack.is_empty() {
            self.pop(t1_ns, joins, sink);
        }
    }
}

pub(super) fn open(start: Start, t0_ns: i64) -> Frame {
    Frame {
        event: start.event,
        key: start.key,
        class: start.class,
        context: start.context,
        kind: Kind::of(start.class, start.context),
        label: start.label,
        t0_ns,
        nested_ns: 0,
        absorbed: false,
        counts: true,
        named: false,
        woke_probe: false,
        woke_other: false,
        expired: Expired::default(),
        causes: start.causes,
    }
}
