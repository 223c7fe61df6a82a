//! Time in which the CPU or its timer did not run: a timer came late though nothing in the kernel
//! kept its interrupt off.
//!
//! User space runs with interrupts on. A timer that is due in user space waits for nothing, so what
//! delays its interrupt is outside the kernel: firmware, or a hypervisor that does not run the CPU
//! or does not fire its timer. That holds where
//! - the trace has the handlers of all interrupts, or an unseen one may have run;
//! - the timer is the one that the task armed, and expired in a hard interrupt on this CPU;
//! - the task is a real-time one: timers of others come late on purpose (timer slack, prctl(2));
//! - the stack behind the wake-up shows that it was the interrupt of high-resolution timers (others
//!   expire with the tick), and that it found user space.
//!
//! It lasts from the last moment the CPU was seen at work, or from the release, to the timer's
//! interrupt. Kernel code may return to user space with interrupts off, and a timer due meanwhile
//! finds user space, too: so short stretches do not count.
//!
//! Documentation/timers/hrtimers.rst; Linux kernel/entry/common.c (`irqentry_exit`).

use super::marks::{Mark, Marks};
use crate::attribute::blocking::Stretch;
use crate::attribute::cause::{Causes, Confidence};
use crate::attribute::delay::Blocking;
use crate::prio::Prio;
use crate::spans::Known;
use crate::view::{At, Context, KernelEvent, Level, What};

/// The shortest that is reported, ns: more than an exit to user space takes with interrupts off.
const SHORTEST_NS: i64 = 50_000;

/// What one CPU was seen to do before an interrupt that wakes the task.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    /// The last event outside interrupts and their exits, ns.
    at_work_ns: Option<i64>,
    /// Whether only an interrupt has been seen since: what runs outside it with interrupts off
    /// is its exit.
    interrupted: bool,
    /// When the last hard interrupt began, ns.
    entered_ns: i64,
    /// Whether the last event was the wake-up, in a hard interrupt.
    woken: bool,
}

impl Stopped {
    /// The next event of the CPU; `tid`: the task. Returns when the CPU was last at work, and
    /// when the interrupt came that found user space and woke the task, ns.
    pub(super) fn event(&mut self, event: &KernelEvent, tid: i32) -> Option<[i64; 2]> {
        let woken = std::mem::take(&mut self.woken);
        match event.what {
            What::Stack { at_switch: false, in_user_space: true, high_resolution: true, .. } if woken => {
                return self.at_work_ns.map(|at_work_ns| [at_work_ns, self.entered_ns]);
            }
            What::Wake { pid, done: true, .. } => self.woken = pid == tid && event.level == Level::Hard,
            What::Enter { context: Context::Hard, .. } => self.entered_ns = event.ts_ns,
            _ => {}
        }
        self.seen(event.at());
        None
    }

    /// The same of a switch, or of the wake-up of another task.
    #[inline(always)]
    pub(super) fn works(&mut self, at: At) {
        self.woken = false;
        self.seen(at);
    }

    #[inline(always)]
    fn seen(&mut self, at: At) {
        if at.level == Level::Hard {
            self.interrupted = true;
        } else if !(self.interrupted && at.irqs_off) {
            self.interrupted = false;
            self.at_work_ns = Some(at.ts_ns);
        }
    }

    /// Events are missing.
    pub(super) fn lost(&mut self) {
        *self = Self::default();
    }
}

/// The stretch of a sample in which the CPU did not execute, if proven; `own` is the CPU of the
/// task.
pub(super) fn stretch(marks: &Marks, own: u32, prio: Prio, known: Known) -> Option<Stretch> {
    let [at_work_ns, entered_ns] = marks.found_user_space?;
    let (Mark { at_ns, cpu, level, .. }, timer) = marks.expiry?;
    let shown = known.interrupts && timer == Confidence::Exact && (cpu, level) == (own, Level::Hard);
    let real_time = prio.is_known() && !prio.is_fair();
    let (t0_ns, t1_ns) = (at_work_ns.max(marks.release_ns), entered_ns.min(at_ns));
    let long = t1_ns.saturating_sub(t0_ns) >= SHORTEST_NS;
    (shown && real_time && long).then_some(Stretch {
        blocking: Blocking::NotExecuting,
        t0_ns,
        t1_ns,
        label: known.outside,
        causes: Causes::default(),
        sleeper: None,
        shut: true,
    })
}
