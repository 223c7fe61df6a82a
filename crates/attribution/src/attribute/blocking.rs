//! What delays a wake-up though nothing else runs: interrupts off, preemption off, a lock that
//! another CPU holds.
//!
//! Each explains only what it can delay. With interrupts off no interrupt gets in, so the stretch
//! explains steps that wait for one. It must end before the interrupt comes, since interrupt entry
//! turns interrupts off as well. With preemption off there is no switch; the scheduler's own
//! stretch, in which it switches, does not count. Waiting for a spinning lock keeps the CPU busy in
//! any step, but an interrupt waits for it only if interrupts are off. Waiting for a sleeping lock
//! delays only the waiting task.
//!
//! The stack at the switch identifies kernel code that is not preempted. The stack after the
//! wake-up identifies a CPU that does not execute ([`super::path`]). A sleeping CPU serves nothing:
//! an interrupt or a switch waits until the CPU has left its idle state.
//!
//! A probed function explains the steps that interrupts or preemption off could: whether they were
//! off is not recorded, only that the CPU was in the function. A call ends for the path where the
//! CPU is given up inside.
//!
//! Events: `preemptirq:*` (kernels built with the latency tracers;
//! include/trace/events/preemptirq.h) and `lock:contention_*` (since 5.19;
//! include/trace/events/lock.h). They are two of the four parts of scheduling latency in the OSPERT
//! 2013 paper (§1).

use super::cause::{Cause, Causes, Source, Who};
use crate::attribute::delay::Blocking;
use crate::attribute::step::Step;
use crate::labels::LabelId;
use crate::view::{KernelEvent, Level, What};

/// Locks that one CPU waits for inside one another: a task's, a softirq's, an interrupt's.
const DEEPEST: usize = 8;

/// A stretch of time on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) blocking: Blocking,
    pub(super) t0_ns: i64,
    pub(super) t1_ns: i64,
    /// The function that turned it off, or the lock.
    pub(super) label: LabelId,
    /// Who turned it off. Who holds a lock has no event.
    pub(super) causes: Causes,
    /// The task that sleeps; `None` where the CPU is busy.
    pub(super) sleeper: Option<i32>,
    /// Whether no interrupt could come: interrupts were off, or it was in one.
    pub(super) shut: bool,
}

impl Stretch {
    /// Whether it explains time of a step that ends at `mark_ns` for the thread `tid`.
    /// `interrupt`: the step waits for an interrupt.
    pub(super) fn explains(&self, step: Step, interrupt: bool, mark_ns: i64, tid: i32) -> bool {
        match (self.blocking, self.sleeper) {
            (Blocking::InterruptsOff, _) => {
                matches!(step, Step::TimerLate | Step::IpiInFlight) && self.t1_ns <= mark_ns
            }
            (Blocking::PreemptionOff | Blocking::KernelCode, _) => {
                step == Step::Switch && self.t1_ns <= mark_ns
            }
            // Interrupts may be on again before it returns, and then one comes within it.
            (Blocking::ProbedFunction, _) => match step {
                Step::TimerLate | Step::IpiInFlight => true,
                step => step == Step::Switch && self.t1_ns <= mark_ns,
            },
            (Blocking::NotExecuting, _) => step == Step::TimerLate && self.t1_ns <= mark_ns,
            (Blocking::IdleExit, _) => {
                matches!(step, Step::TimerLate | Step::IpiInFlight | Step::WakeUp | Step::Switch)
                    && self.t1_ns <= mark_ns
            }
            // Whatever the CPU was to do.
            (Blocking::FrequencyChange, _) => step != Step::NeverSlept,
            (Blocking::Lock, None) => self.shut || !interrupt,
            (Blocking::Lock, Some(sleeper)) => step == Step::Return && sleeper == tid,
        }
    }
}

/// A stretch that has not ended.
#[derive(Debug, Clone, Copy)]
struct Open {
    stretch: Stretch,
    lock: u64,
    waiter: i32,
}

/// The open stretches of one CPU.
#[derive(Debug, Default)]
pub(super) struct Blockings {
    open: Vec<Open>,
}

impl Blockings {
    /// The next event of the CPU; passes on each stretch that ends with it.
    pub(super) fn event(&mut self, event: &KernelEvent, sink: &mut impl FnMut(Stretch)) {
        // Most traces have no events of these.
        if !self.open.is_empty() || matches!(event.what, What::Blocked { .. }) {
            self.changes(event, sink);
        }
    }

    #[inline(never)]
    fn changes(&mut self, event: &KernelEvent, sink: &mut impl FnMut(Stretch)) {
        match event.what {
            What::Blocked { blocking, label, lock, sleeps } => {
                self.end(event, blocking, lock, sink);
                // An interrupt implies preemption off: its span covers the time.
                let covered = match blocking {
                    Blocking::PreemptionOff => !event.in_task(),
                    Blocking::ProbedFunction => event.level == Level::Hard,
                    _ => false,
                };
                if covered {
                    return;
                }
                self.begin(event, blocking, label, lock, sleeps);
            }
            What::Unblocked { blocking, lock } => self.end(event, blocking, lock, sink),
            // A spinning task does not leave the CPU; a sleeping one's end may come on any CPU. A
            // probed function is left with its task.
            What::Switch { .. } => self.take(event.ts_ns, sink, |open| {
                let spins = open.stretch.blocking == Blocking::Lock && open.stretch.sleeper.is_none();
                spins || open.stretch.blocking == Blocking::ProbedFunction
            }),
            _ => {}
        }
    }

    fn begin(&mut self, event: &KernelEvent, blocking: Blocking, label: LabelId, lock: u64, sleeps: bool) {
        if self.open.len() == DEEPEST {
            self.open.remove(0);
        }
        let who = if event.in_task() { Who::Task(event.pid) } else { Who::SomeInterrupt };
        let by = Source::new(event.cpu, who);
        let causes =
            if blocking == Blocking::Lock { Causes::default() } else { Causes::one(Cause::exact(by)) };
        let (t0_ns, sleeper) = (event.ts_ns, sleeps.then_some(event.pid));
        let shut = event.irqs_off || event.level == Level::Hard;
        let stretch = Stretch { blocking, t0_ns, t1_ns: t0_ns, label, causes, sleeper, shut };
        self.open.push(Open { stretch, lock, waiter: event.pid });
    }

    fn end(&mut self, event: &KernelEvent, blocking: Blocking, lock: u64, sink: &mut impl FnMut(Stretch)) {
        self.take(event.ts_ns, sink, |open| {
            let pairs = matches!(blocking, Blocking::Lock | Blocking::ProbedFunction);
            let own = !pairs || (open.lock == lock && open.waiter == event.pid);
            open.stretch.blocking == blocking && own
        });
    }

    fn take(&mut self, t1_ns: i64, sink: &mut impl FnMut(Stretch), over: impl Fn(&Open) -> bool) {
        self.open.retain(|open| {
            let over = over(open);
            if over && t1_ns > open.stretch.t0_ns {
                sink(Stretch { t1_ns, ..open.stretch });
            }
            !over
        });
    }

    /// Whether a stretch is open.
    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        !self.open.is_empty()
    }

    /// Forgets the open stretches.
    pub(super) fn lost(&mut self) {
        self.open.clear();
    }
}
