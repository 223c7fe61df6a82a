//! The stack of what runs on one CPU: task, softirq, interrupt, NMI, each inside the one before.
//!
//! Every moment belongs to the innermost frame, so the net times of a CPU's spans never add up to more than the window.

use super::frame::{Expired, Frame, Kind};
use super::{Joins, Span};
use crate::attribute::{Cause, Causes};
use crate::labels::LabelId;
use crate::view::Context;
use model::EventClass;

/// One measured CPU inside a window.
#[derive(Debug)]
pub(super) struct Cpu {
    pub(super) number: u32,
    /// Thread of the probe that measures here.
    pub(super) probe: i32,
    /// Who runs; unknown until the first event, and after a loss.
    pub(super) current: Option<i32>,
    /// Who leaves at the last switch, until something is heard of who comes: the scheduler tells of a switch before it makes it.
    pub(super) leaving: Option<i32>,
    /// Times that somebody else ran than who was switched to: a switch between them was not recorded.
    pub(super) breaks: u64,
    /// From when a task counts that is found running: the window's start, or unknown after a loss.
    running_since_ns: Option<i64>,
    stack: Vec<Frame>,
    /// A reschedule IPI that woke nobody in sight: the next switch tells whom it was for.
    undecided: Option<Span>,
    /// Who was woken for this CPU since the last switch; of very many the first.
    pub(super) woken: Vec<i32>,
    last_ns: i64,
    /// Where the window began, until something is seen to start: what ends before ran across the edge. With the time of instants
    /// since.
    edge: Option<(i64, u64)>,
    /// Handlers seen in the NMI that is going on: each handler of an NMI reports by itself.
    nmi_handlers: Vec<LabelId>,
}

/// What a frame needs to begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) event: u16,
    pub(super) key: u64,
    pub(super) class: EventClass,
    pub(super) context: Context,
    pub(super) label: LabelId,
    /// Who asked for it.
    pub(super) causes: Causes,
}

/// What an instant tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) class: EventClass,
    pub(super) label: LabelId,
    pub(super) length_ns: u64,
    pub(super) causes: Causes,
}

/// The name of a task that comes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name {
    /// From the switch to it.
    Known(LabelId),
    /// What to say unless the switch from it tells.
    Unknown(LabelId),
}

/// A CPU goes from one task to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandOver {
    /// Until when the one that ran did, at least.
    pub(super) left_ns: i64,
    /// From when the next one runs, at the latest.
    pub(super) came_ns: i64,
    pub(super) next: i32,
    pub(super) name: Name,
}

/// Tasks woken between two switches that are told apart.
const MOST_WOKEN: usize = 16;

impl Cpu {
    pub(super) fn new(number: u32, probe: i32, t0_ns: i64) -> Self {
        Self {
            number,
            probe,
            current: None,
            leaving: None,
            breaks: 0,
            running_since_ns: Some(t0_ns),
            stack: Vec::new(),
            undecided: None,
            woken: Vec::new(),
            last_ns: t0_ns,
            edge: Some((t0_ns, 0)),
            nmi_handlers: Vec::new(),
        }
    }

    /// Takes note of time and of the task that an event names as current.
    pub(super) fn arrive(&mut self, ts_ns: i64, pid: i32, unnamed: LabelId) {
        if self.current.is_none() {
            self.current = Some(pid);
            if pid != 0 && pid != self.probe {
                let since = self.running_since_ns.unwrap_or(ts_ns);
                self.push_run(since, Name::Unknown(unnamed), false, Causes::default());
            }
        }
        self.last_ns = self.last_ns.max(ts_ns);
    }

    fn push_run(&mut self, t0_ns: i64, name: Name, counts: bool, causes: Causes) {
        let (label, named) = match name {
            Name::Known(label) => (label, true),
            Name::Unknown(label) => (label, false),
        };
        let start = Start {
            event: u16::MAX,
            key: 0,
            class: EventClass::Switch,
            context: Context::Preemptible,
            label,
            causes,
        };
        self.stack.push(Frame { kind: Kind::Run, counts, named, ..open(start, t0_ns) });
    }

    pub(super) fn enter(&mut self, ts_ns: i64, start: Start, joins: &mut Joins, sink: &mut impl FnMut(Span)) {
        self.edge = None;
        if let Some(stale) = self.stale(&start) {
            self.cut(stale, joins, sink);
        }
        let mut frame = open(start, ts_ns);
        let around = self.stack.iter().rposition(|frame| !frame.absorbed).map(|at| &mut self.stack[at]);
        if let Some(around) = around
            && around.context == Context::Hard
        {
            match (around.kind, frame.kind) {
                (Kind::TimerInterrupt, Kind::Expiry) => frame.absorbed = true,
                // arm64 delivers IPIs as interrupts: `irq_handler_entry name=IPI`, and inside it `ipi_entry`.
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

    /// A frame whose end was never recorded: nothing starts again inside itself, in the same context.
    fn stale(&self, start: &Start) -> Option<usize> {
        let same = |frame: &Frame| frame.event == start.event && frame.kind != Kind::Run;
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

    pub(super) fn exit(&mut self, ts_ns: i64, start: Start, joins: &mut Joins, sink: &mut impl FnMut(Span)) {
        let found = self.stack.iter().rposition(|frame| {
            frame.event == start.event && frame.key == start.key && frame.kind != Kind::Run
        });
        if let Some(at) = found {
            self.cut(at + 1, joins, sink);
            self.pop(ts_ns, joins, sink);
        } else if let Some((edge, nested_ns)) = self.edge {
            // It ran when recording began: its time counts from there, its number does not.
            let Start { class, label, .. } = start;
            let net_ns = (ts_ns.saturating_sub(edge).max(0) as u64).saturating_sub(nested_ns);
            let (cpu, t0_ns, t1_ns, causes) = (self.number, edge, ts_ns, Causes::default());
            sink(Span { cpu, class, label, t0_ns, t1_ns, net_ns, counts: false, causes });
            self.nest(net_ns);
            self.edge = Some((ts_ns, 0));
        }
    }

    /// Ends the innermost frame.
    fn pop(&mut self, ts_ns: i64, joins: &mut Joins, sink: &mut impl FnMut(Span)) {
        let Some(frame) = self.stack.pop() else { return };
        let verdict = frame.verdict(joins.timers.is_own(frame.key, frame.label, self.probe));
        if frame.absorbed {
            self.absorb(&frame, verdict);
            return;
        }
        let causes = self.causes(&frame, joins);
        let length = ts_ns.saturating_sub(frame.t0_ns).max(0) as u64;
        self.nest(length);
        let (class, label) = verdict;
        let span = Span {
            cpu: self.number,
            class,
            t0_ns: frame.t0_ns,
            t1_ns: frame.t0_ns.max(ts_ns),
            net_ns: length.saturating_sub(frame.nested_ns),
            label,
            counts: frame.counts,
            causes,
        };
        // The wake-up of a sleeping probe by a remote CPU shows nothing inside the IPI where the waker itself has done the work.
        let silent = class == EventClass::IpiResched && !frame.woke_probe && !frame.woke_other;
        if silent && self.current.is_some_and(|pid| pid != self.probe) {
            self.settle(false, sink);
            self.undecided = Some(span);
        } else {
            sink(span);
        }
    }

    /// What is known of a frame's causes at its end.
    fn causes(&self, frame: &Frame, joins: &mut Joins) -> Causes {
        if frame.class != EventClass::IpiCall {
            return frame.causes;
        }
        let sent = joins.links.of_ipi_call(self.number);
        if frame.causes.is_empty() { sent } else { frame.causes }
    }

    fn absorb(&mut self, frame: &Frame, verdict: (EventClass, LabelId)) {
        self.nest(frame.nested_ns);
        let around = self.stack.iter_mut().rev().find(|frame| !frame.absorbed);
        if let Some(around) = around
            && frame.kind == Kind::Expiry
        {
            around.note_expiry(verdict, &frame.causes);
        }
    }

    fn nest(&mut self, ns: u64) {
        if let Some(around) = self.stack.last_mut() {
            around.nested_ns = around.nested_ns.saturating_add(ns);
        }
    }

    /// Ends frames from `at` upwards whose end was not recorded: they are counted, but how long they took is not known.
    fn cut(&mut self, at: usize, joins: &mut Joins, sink: &mut impl FnMut(Span)) {
        while self.stack.len() > at {
            let Some(frame) = self.stack.pop() else { return };
            let verdict = frame.verdict(joins.timers.is_own(frame.key, frame.label, self.probe));
            if frame.absorbed {
                self.absorb(&frame, verdict);
                continue;
            }
            self.nest(frame.nested_ns);
            let causes = self.causes(&frame, joins);
            let ((class, label), t0_ns) = (verdict, frame.t0_ns);
            sink(Span {
                cpu: self.number,
                class,
                t0_ns,
                t1_ns: t0_ns,
                net_ns: 0,
                label,
                counts: frame.counts,
                causes,
            });
        }
    }

    /// Gives who is running a name that was not known when it came.
    pub(super) fn name(&mut self, label: LabelId) {
        if let Some(run) = self.stack.first_mut().filter(|frame| frame.kind == Kind::Run && !frame.named) {
            (run.label, run.named) = (label, true);
        }
    }

    /// The scheduler hands over to `next`. Returns the frames of the task that left, to go on when it comes back.
    pub(super) fn switch(
        &mut self,
        HandOver { left_ns, came_ns, next, name }: HandOver,
        resumed: Vec<Frame>,
        joins: &mut Joins,
        sink: &mut impl FnMut(Span),
    ) -> Vec<Frame> {
        self.edge = None;
        self.settle(next == self.probe && self.woken.iter().all(|woken| *woken == self.probe), sink);
        self.woken.clear();
        if let Some(hard) = self.stack.iter().position(|frame| frame.context == Context::Hard) {
            self.cut(hard, joins, sink);
        }
        let parked: Vec<Frame> = self.stack.iter().filter(|frame| frame.kind != Kind::Run).copied().collect();
        while !self.stack.is_empty() {
            self.pop(left_ns, joins, sink);
        }
        self.leaving = self.current.replace(next);
        let causes = joins.links.of_switch(next);
        if next == 0 || next == self.probe {
            let (Name::Known(label) | Name::Unknown(label)) = name;
            let (cpu, class, at_ns) = (self.number, EventClass::SelfCaused, came_ns);
            sink(Span { cpu, class, t0_ns: at_ns, t1_ns: at_ns, net_ns: 0, label, counts: true, causes });
        } else {
            self.push_run(came_ns, name, true, causes);
        }
        let goes_on =
            |frame: Frame| Frame { t0_ns: came_ns, nested_ns: 0, counts: false, absorbed: false, ..frame };
        self.stack.extend(resumed.into_iter().map(goes_on));
        parked
    }

    /// Decides what a silent reschedule IPI was for.
    fn settle(&mut self, own: bool, sink: &mut impl FnMut(Span)) {
        if let Some(mut span) = self.undecided.take() {
            if own {
                span.class = EventClass::SelfCaused;
            }
            sink(span);
        }
    }

    /// A wake-up done on this CPU: whoever is running caused it.
    pub(super) fn woke(&mut self, pid: i32) {
        let own = pid == self.probe;
        for frame in self.stack.iter_mut().rev() {
            frame.woke_probe |= own;
            frame.woke_other |= !own;
            if frame.context == Context::Hard && !frame.absorbed {
                break;
            }
        }
    }

    /// A task is woken to run here; `here` where this CPU does the waking itself.
    pub(super) fn wanted(&mut self, pid: i32, here: bool, sink: &mut impl FnMut(Span)) {
        if self.woken.len() < MOST_WOKEN && !self.woken.contains(&pid) {
            self.woken.push(pid);
        }
        if pid == self.probe && here {
            // The probe's wake-up has another cause than the IPI that came before.
            self.settle(false, sink);
        }
    }

    /// The IPI that is going on.
    fn ipi(&mut self) -> Option<&mut Frame> {
        self.stack.iter_mut().rev().find(|frame| frame.kind == Kind::Ipi && !frame.absorbed)
    }

    /// The first function that an IPI brought names it; whoever asked for any of them has caused it.
    pub(super) fn called(&mut self, label: LabelId, cause: Option<Cause>) {
        if let Some(ipi) = self.ipi() {
            if !ipi.named {
                (ipi.label, ipi.named) = (label, true);
            }
            cause.into_iter().for_each(|cause| ipi.causes.add(cause));
        }
    }

    /// An IPI completes a wake-up that another CPU asked for.
    pub(super) fn woken_from_afar(&mut self, cause: Cause) {
        if let Some(ipi) = self.ipi() {
            ipi.causes.add(cause);
        }
    }

    /// Who asked for a TLB flush: whoever sent the IPI that brought it, else the last who asked for one.
    pub(super) fn flushed(&mut self, last: Option<Cause>) -> Causes {
        let last = last.map_or_else(Causes::default, Causes::one);
        let Some(ipi) = self.ipi() else { return last };
        if ipi.causes.is_empty() {
            ipi.causes = last;
        }
        ipi.causes
    }

    /// Something without an end of its own, told at `ts_ns`; the event before it was at `before_ns`.
    pub(super) fn instant(&mut self, before_ns: i64, ts_ns: i64, told: Told, sink: &mut impl FnMut(Span)) {
        let Told { class, label, length_ns, causes } = told;
        let counts = class != EventClass::Nmi || self.first_handler(label);
        let began = ts_ns.saturating_sub_unsigned(length_ns);
        // Its own length may be read from another clock: it cannot have begun before what was recorded before it.
        let t0_ns = began.max(before_ns).min(ts_ns);
        let net_ns = ts_ns.saturating_sub(t0_ns).max(0) as u64;
        self.nest(net_ns);
        if let Some((_, nested_ns)) = &mut self.edge {
            *nested_ns = nested_ns.saturating_add(net_ns);
        }
        sink(Span { cpu: self.number, class, t0_ns, t1_ns: ts_ns, net_ns, label, counts, causes });
    }

    /// Whether a handler is the first of its NMI. Handlers are asked in a fixed order: one that comes again belongs to the next.
    fn first_handler(&mut self, label: LabelId) -> bool {
        if self.nmi_handlers.contains(&label) {
            self.nmi_handlers.clear();
        }
        self.nmi_handlers.push(label);
        self.nmi_handlers.len() == 1
    }

    pub(super) fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// Events are missing here: nothing that was open can be relied on.
    pub(super) fn lost(&mut self, joins: &mut Joins, sink: &mut impl FnMut(Span)) {
        self.settle(false, sink);
        let run = usize::from(self.stack.first().is_some_and(|frame| frame.kind == Kind::Run));
        self.cut(run, joins, sink);
        // The task did run until the last event before the hole.
        self.pop(self.last_ns, joins, sink);
        self.current = None;
        self.running_since_ns = None;
        self.edge = None;
        self.woken.clear();
        self.leaving = None;
        self.nmi_handlers.clear();
    }

    /// The window ends: what is open is clipped to it.
    pub(super) fn finish(&mut self, t1_ns: i64, joins: &mut Joins, sink: &mut impl FnMut(Span)) {
        while !self.stack.is_empty() {
            self.pop(t1_ns, joins, sink);
        }
        self.settle(false, sink);
    }
}

fn open(start: Start, t0_ns: i64) -> Frame {
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
