//! A CPU switches from one task to another: which run begins, and whether that is an event.

use super::cpu::Cpu;
use super::frame::Frame;
use super::{Joins, Span};
use crate::attribute::Causes;
use crate::prio::Prio;
use crate::spans::run::{Counted, Run};
use crate::view::{Context, Level, Task};
use model::EventClass;

/// A CPU switches from one task to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandOver {
    /// The earliest end of the previous task's run.
    pub(super) left_ns: i64,
    /// The latest start of the next task's run.
    pub(super) came_ns: i64,
    /// Whether the previous task is runnable.
    pub(super) runnable: bool,
    /// The next task; unnamed unless a switch named it.
    pub(super) next: Task,
    pub(super) named: bool,
}

impl Cpu {
    /// The run of the current task ends.
    #[inline(always)]
    pub(super) fn end_run(&mut self, t1_ns: i64, sink: &mut impl FnMut(&Span)) {
        if let Some(run) = self.run.take() {
            sink(&run.span(self.number, self.on_task(), t1_ns, 0));
        }
    }

    /// The running task leaves, as the switch describes it: sets its name and priority where they
    /// were not known when it came, and a higher priority than it came with. It has taken that
    /// itself (`sched_setscheduler`), at a moment that no event tells; what waited for it meanwhile
    /// waited for the higher one, for with the lower one it would have been preempted.
    pub(super) fn name(&mut self, who: Task) {
        if let Some(run) = self.run.as_mut().filter(|run| !run.counted.named) {
            (run.label, run.counted.named) = (who.comm, true);
        }
        let Some(known) = self.current.as_mut().filter(|known| known.pid == who.pid) else { return };
        if !known.prio.is_known() {
            *known = who;
        } else if who.prio < known.prio {
            known.prio = who.prio;
            let class = self.run_class(who.prio);
            self.run.iter_mut().for_each(|run| run.counted.class = class);
        }
    }

    /// A task inherits a priority or returns it. Its run until now becomes a span of its own; from
    /// here on it may delay the probe, or no longer does.
    pub(super) fn has_prio(&mut self, at_ns: i64, pid: i32, prio: Prio, sink: &mut impl FnMut(&Span)) {
        let Some(task) = self.current.filter(|task| task.pid == pid && task.prio != prio) else { return };
        self.current = Some(Task { prio, ..task });
        let class = self.run_class(prio);
        // What is open inside it ends later: its time up to here is not the task's.
        let inside_ns = self.stack.first().map_or(0, |inner| at_ns.saturating_sub(inner.t0_ns).max(0) as u64);
        let Some(run) = &mut self.run else { return };
        sink(&run.span(self.number, task, at_ns, inside_ns));
        let counted = Counted { counts: false, class, ..run.counted };
        *run = Run { t0_ns: run.t0_ns.max(at_ns), nested_ns: 0, counted, ..*run };
    }

    /// The class of a run with this priority: harmless if it resumes and may not delay the probe.
    fn run_class(&self, prio: Prio) -> EventClass {
        let known = prio.is_known() && self.probe_prio.is_known();
        let harmless = self.goes_on && known && !prio.may_delay(self.probe_prio);
        if harmless { EventClass::SelfCaused } else { EventClass::Switch }
    }

    /// The scheduler hands over to `next`. Returns the frames of the task that left, to resume
    /// when it comes back.
    #[inline(always)]
    pub(super) fn switch(
        &mut self,
        HandOver { left_ns, came_ns, runnable, next, named }: HandOver,
        resumed: Vec<Frame>,
        joins: &mut Joins,
        sink: &mut impl FnMut(&Span),
    ) -> Vec<Frame> {
        self.edge = None;
        if self.is_undecided() {
            let own = next.pid == self.probe && self.woken.iter().all(|woken| *woken == self.probe);
            self.settle(own, sink);
        }
        self.woken.clear();
        let parked = if self.stack.is_empty() { Vec::new() } else { self.park(left_ns, joins, sink) };
        self.end_run(left_ns, sink);
        self.leaving = self.current.replace(next).map(|task| task.pid);
        let waits = self.leaves(runnable);
        let resumes = self.comes(next.pid);
        // A task that resumes was woken long ago, for another run.
        let cause = if resumes { None } else { joins.links.of_switch(next.pid) };
        // If the probe sleeps, a preempted task only resumes.
        let goes_on = resumes && !waits;
        self.goes_on = goes_on;
        if next.pid == self.probe {
            self.probe_prio = next.prio;
        }
        if next.pid == 0 || next.pid == self.probe || goes_on {
            let (cpu, class, at_ns, label) = (self.number, EventClass::SelfCaused, came_ns, next.comm);
            let (level, task, causes) = (Level::Task, next, Causes::of(cause));
            sink(&Span {
                cpu,
                class,
                t0_ns: at_ns,
                t1_ns: at_ns,
                net_ns: 0,
                label,
                level,
                task,
                counts: true,
                causes,
            });
        }
        if next.pid != 0 && next.pid != self.probe {
            let counted = Counted { named, counts: !goes_on, class: self.run_class(next.prio) };
            self.run = Some(Run::new(came_ns, next, counted, cause));
        }
        if !resumed.is_empty() {
            self.resume(resumed, came_ns);
        }
        parked
    }

    /// Ends the open frames of the task that leaves. Returns those to resume later.
    #[inline(never)]
    fn park(&mut self, left_ns: i64, joins: &mut Joins, sink: &mut impl FnMut(&Span)) -> Vec<Frame> {
        if let Some(hard) = self.stack.iter().position(|frame| frame.context == Context::Hard) {
            self.cut(hard, joins, sink);
        }
        let parked = self.stack.clone();
        self.end_frames(left_ns, joins, sink);
        parked
    }

    #[inline(never)]
    fn resume(&mut self, frames: Vec<Frame>, came_ns: i64) {
        let goes_on =
            |frame: Frame| Frame { t0_ns: came_ns, nested_ns: 0, counts: false, absorbed: false, ..frame };
        self.stack.extend(frames.into_iter().map(goes_on));
    }

    /// The current task leaves. Returns whether the probe waits for the CPU then.
    #[inline(always)]
    fn leaves(&mut self, runnable: bool) -> bool {
        if let Some(pid) = self.leaving.filter(|pid| runnable && *pid != 0) {
            self.preempted.add(pid);
        }
        self.preempted.has(self.probe)
    }

    /// A task comes. Returns whether it resumes after a preemption.
    fn comes(&mut self, pid: i32) -> bool {
        self.preempted.remove(pid)
    }
}
