//! A CPU goes from one task to another: whose run begins, and whether that is an event.

use super::cpu::{Cpu, Start, open};
use super::frame::{Frame, Kind};
use super::{Joins, Span};
use crate::attribute::Causes;
use crate::prio::Prio;
use crate::view::{Context, Level, Task};
use model::EventClass;

/// A CPU goes from one task to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandOver {
    /// Until when the one that ran did, at least.
    pub(super) left_ns: i64,
    /// From when the next one runs, at the latest.
    pub(super) came_ns: i64,
    /// Whether the one that ran would have run on.
    pub(super) runnable: bool,
    /// Who runs then; unnamed unless a switch told it.
    pub(super) next: Task,
    pub(super) named: bool,
}

/// How a task's run is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// Whether its name is from a switch to it.
    pub(super) named: bool,
    pub(super) counts: bool,
    pub(super) class: EventClass,
}

impl Cpu {
    pub(super) fn push_run(
        &mut self,
        t0_ns: i64,
        who: Task,
        Run { named, counts, class }: Run,
        causes: Causes,
    ) {
        let context = Context::Preemptible;
        let start = Start { event: u16::MAX, key: 0, class, context, label: who.comm, causes };
        self.stack.push(Frame { kind: Kind::Run, counts, named, ..open(start, t0_ns) });
    }

    /// Gives who is running a name and a priority that were not known when it came.
    pub(super) fn name(&mut self, who: Task) {
        if let Some(run) = self.stack.first_mut().filter(|frame| frame.kind == Kind::Run && !frame.named) {
            (run.label, run.named) = (who.comm, true);
        }
        self.current = self.current.map(|known| if known.prio.is_known() { known } else { who });
    }

    /// A task inherits a priority, or gives it back: what ran before that is a span of its own, and
    /// what runs from here on may be in the probe's way, or no more.
    pub(super) fn has_prio(&mut self, at_ns: i64, pid: i32, prio: Prio, sink: &mut impl FnMut(Span)) {
        let Some(task) = self.current.filter(|task| task.pid == pid && task.prio != prio) else { return };
        self.current = Some(Task { prio, ..task });
        let class = self.run_class(prio);
        // What is open inside it ends later: its time up to here is none of the task's.
        let inside_ns = self.stack.get(1).map_or(0, |inner| at_ns.saturating_sub(inner.t0_ns).max(0) as u64);
        let Some(run) = self.stack.first_mut().filter(|frame| frame.kind == Kind::Run) else { return };
        let Frame { t0_ns, label, counts, causes, .. } = *run;
        let length_ns = at_ns.saturating_sub(t0_ns).max(0) as u64;
        sink(Span {
            cpu: self.number,
            class: run.class,
            t0_ns,
            t1_ns: t0_ns.max(at_ns),
            net_ns: length_ns.saturating_sub(run.nested_ns).saturating_sub(inside_ns),
            label,
            level: Level::Task,
            task,
            counts,
            causes,
        });
        *run = Frame { t0_ns: t0_ns.max(at_ns), nested_ns: 0, counts: false, class, ..*run };
    }

    /// What a task of this priority is to the probe that runs where it was preempted, or was
    /// called.
    fn run_class(&self, prio: Prio) -> EventClass {
        let known = prio.is_known() && self.probe_prio.is_known();
        let harmless = self.goes_on && known && !prio.may_delay(self.probe_prio);
        if harmless { EventClass::SelfCaused } else { EventClass::Switch }
    }

    /// The scheduler hands over to `next`. Returns the frames of the task that left, to go on when
    /// it comes back.
    pub(super) fn switch(
        &mut self,
        HandOver { left_ns, came_ns, runnable, next, named }: HandOver,
        resumed: Vec<Frame>,
        joins: &mut Joins,
        sink: &mut impl FnMut(Span),
    ) -> Vec<Frame> {
        self.edge = None;
        self.settle(next.pid == self.probe && self.woken.iter().all(|woken| *woken == self.probe), sink);
        self.woken.clear();
        if let Some(hard) = self.stack.iter().position(|frame| frame.context == Context::Hard) {
            self.cut(hard, joins, sink);
        }
        let parked: Vec<Frame> = self.stack.iter().filter(|frame| frame.kind != Kind::Run).copied().collect();
        while !self.stack.is_empty() {
            self.pop(left_ns, joins, sink);
        }
        self.leaving = self.current.replace(next).map(|task| task.pid);
        let waits = self.leaves(runnable);
        let resumes = self.comes(next.pid);
        // A task that goes on was woken long ago, and not for this.
        let causes = if resumes { Causes::default() } else { joins.links.of_switch(next.pid) };
        // Beside a probe that sleeps, what was preempted only takes up again what it was doing.
        let goes_on = resumes && !waits;
        self.goes_on = goes_on;
        if next.pid == self.probe {
            self.probe_prio = next.prio;
        }
        if next.pid == 0 || next.pid == self.probe || goes_on {
            let (cpu, class, at_ns, label) = (self.number, EventClass::SelfCaused, came_ns, next.comm);
            let (level, task) = (Level::Task, next);
            sink(Span {
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
            let class = self.run_class(next.prio);
            self.push_run(came_ns, next, Run { named, counts: !goes_on, class }, causes);
        }
        let goes_on =
            |frame: Frame| Frame { t0_ns: came_ns, nested_ns: 0, counts: false, absorbed: false, ..frame };
        self.stack.extend(resumed.into_iter().map(goes_on));
        parked
    }

    /// The current task leaves. Whether the probe waits for the CPU, then.
    fn leaves(&mut self, runnable: bool) -> bool {
        if let Some(pid) = self.leaving.filter(|pid| runnable && *pid != 0) {
            self.preempted.add(pid);
        }
        self.preempted.has(self.probe)
    }

    /// A task comes. Whether it goes on where it was preempted.
    fn comes(&mut self, pid: i32) -> bool {
        self.preempted.remove(pid)
    }
}
