//! What may hold up a step: decided by what the step waits for, never by who happened to be
//! current.
//!
//! - An interrupt is held up by other interrupts, NMIs, and stretches with interrupts off. A task cannot hold it up by running, nor can a
//!   softirq: both run with interrupts on.
//! - A softirq at the end of an interrupt waits for interrupts and for the softirqs before it.
//! - A thread waits for interrupts, for tasks that go before it, and for softirqs: where those are served in threads (PREEMPT_RT), only
//!   if the thread goes before it.
//!
//! Linux kernel/softirq.c, kernel/sched/core.c (`__schedule`), Documentation/locking/locktypes.rst
//! (PREEMPT_RT).

use super::Step;
use crate::prio::Prio;
use crate::spans::Span;
use crate::view::Level;

/// What has to come to its turn before a step ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waits {
    /// A hard interrupt on the CPU.
    Interrupt,
    /// Softirqs at the end of an interrupt.
    Softirq,
    /// A thread.
    Thread { pid: i32, prio: Prio },
}

impl Waits {
    /// Whether a span may take time from a step that begins at `from_ns`. `rt`: the kernel serves
    /// softirqs in threads.
    pub(super) fn held_up_by(self, span: &Span, step: Step, from_ns: i64, rt: bool) -> bool {
        // What these steps wait for has begun: they are inside it, and only what interrupts it
        // holds it up.
        if matches!(step, Step::TimerHandler | Step::WakeUp) && span.t0_ns < from_ns {
            return false;
        }
        match self {
            Self::Interrupt => span.level == Level::Hard,
            Self::Softirq => span.level != Level::Task,
            Self::Thread { pid, prio } => {
                let anyway = if rt { Level::Hard } else { Level::Softirq };
                span.level >= anyway || (span.task.pid != pid && span.task.prio.may_delay(prio))
            }
        }
    }

    /// Whether it is this thread.
    pub(super) fn is_thread(self, tid: i32) -> bool {
        matches!(self, Self::Thread { pid, .. } if pid == tid)
    }

    /// Whether it is a thread: with preemption off it waits, an interrupt does not.
    pub(super) fn is_interrupt(self) -> bool {
        matches!(self, Self::Interrupt)
    }
}
