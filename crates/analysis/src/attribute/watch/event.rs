//! The events that a program is followed by, without bytes and formats; tests make them by hand.

use crate::labels::LabelId;
use crate::prio::Prio;

/// One event on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchEvent {
    /// CLOCK_MONOTONIC, ns.
    pub ts_ns: i64,
    /// The CPU that recorded it.
    pub cpu: u32,
    /// The task that was current, also in interrupts; 0 is idle.
    pub pid: i32,
    /// Whether it was recorded outside every interrupt: only then `pid` is who did it.
    pub in_task: bool,
    /// What it says.
    pub what: What,
}

/// Why a thread leaves the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// It could go on: it was preempted, or yielded.
    Runnable,
    /// It waits for something.
    Sleeps,
    /// It has ended.
    Ended,
}

/// What a [`WatchEvent`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The scheduler hands the CPU over.
    Switch {
        /// Who ran, and its name.
        prev: (i32, LabelId),
        /// Why it does not any more.
        leaves: Leaves,
        /// Who runs from here on, and its name.
        next: (i32, LabelId),
        /// How both compete for the CPU at that moment.
        prios: [Prio; 2],
    },
    /// Somebody wakes a task: on the CPU and in the context of who does so.
    Waking {
        /// Whom, and its name.
        task: (i32, LabelId),
        /// How it competes for a CPU.
        prio: Prio,
    },
    /// A task is in a run queue.
    Woken {
        /// Which.
        pid: i32,
        /// Whether for the first time.
        new: bool,
    },
    /// A task moved between CPUs.
    Migrate {
        /// Which.
        pid: i32,
        /// To where.
        to: u32,
    },
    /// A task or thread was made.
    Fork {
        /// By whom.
        parent: i32,
        /// Which.
        child: i32,
    },
    /// A high-resolution timer was armed.
    Armed {
        /// Its address.
        timer: u64,
        /// When it is to expire, at the earliest, by its own clock, ns (`softexpires`).
        expires_ns: i64,
    },
    /// It expires: its function is called.
    Expires {
        /// Its address.
        timer: u64,
        /// Its own clock when the interrupt looked at it, ns.
        now_ns: i64,
        /// Its function.
        function: LabelId,
    },
    /// Something else begins that may wake tasks: an interrupt handler, a softirq, a timer of the wheel.
    Enter(LabelId),
    /// What began last on this CPU ends.
    Exit,
    /// A signal was sent; after the wake-up that it brought about (`__send_signal_locked`).
    Signal {
        /// Its number.
        signal: i32,
        /// The task or process it is for.
        pid: i32,
    },
    /// A watched thread begins a system call.
    CallEnter {
        /// Its number.
        number: u64,
        /// Its first argument.
        argument: u64,
    },
    /// It ends it.
    CallExit,
    /// Nothing that matters here.
    Other,
}
