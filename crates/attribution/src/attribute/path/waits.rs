//! What may delay a step: decided by what the step waits for, never by the task that was current.
//!
//! - Other interrupts, NMIs, and stretches with interrupts off delay an interrupt. A running task
//!   cannot delay it, nor can a softirq: both run with interrupts on.
//! - A softirq at the end of an interrupt waits for interrupts and for the softirqs before it.
//! - A thread waits for interrupts, for tasks with precedence, and for softirqs: where threads
//!   serve those (PREEMPT_RT), only if the serving thread has precedence.
//!
//! Linux kernel/softirq.c, kernel/sched/core.c (`__schedule`), Documentation/locking/locktypes.rst
//! (PREEMPT_RT).

use crate::attribute::step::Step;
use crate::prio::Prio;
use crate::spans::Span;
use crate::view::Level;

/// What has to get the CPU before a step ends.
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
        // These steps run inside what they wait for: only what interrupts that delays them.
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

    /// Whether it is an interrupt, which does not wait with preemption off as a thread does.
    pub(super) fn is_interrupt(self) -> bool {
        matches!(self, Self::Interrupt)
    }
}
