//! The events used to follow a program, without bytes and formats; tests make them by hand.

use crate::labels::LabelId;
use crate::prio::Prio;
use model::kernel_locks::OwnedKind;

/// One event on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchEvent {
    /// CLOCK_MONOTONIC, ns.
    pub ts_ns: i64,
    /// The CPU that recorded it.
    pub cpu: u32,
    /// The task that was current, also in interrupts; 0 is idle.
    pub pid: i32,
    /// Whether it was recorded outside any interrupt: only then `pid` caused it.
    pub in_task: bool,
    /// Its content.
    pub what: What,
}

/// Why a thread leaves the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// It is runnable: it was preempted, or yielded.
    Runnable,
    /// It waits for something.
    Sleeps,
    /// It waits for something inside the kernel, and no signal would end that: a lock of the kernel
    /// (under `PREEMPT_RT` most spinlocks are), a page, a disk.
    Blocks,
    /// It has ended.
    Ended,
}

impl Leaves {
    /// Whether it waits.
    pub fn waits(self) -> bool {
        matches!(self, Self::Sleeps | Self::Blocks)
    }
}

/// Who owns a lock, by its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A task.
    Task(i32),
    /// Any number of readers: the memory shows no more than the last to come, who may have gone.
    Readers,
    /// None: it is about to change hands.
    Nobody,
}

/// The content of a [`WatchEvent`].
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
    /// A task is being woken: on the CPU and in the context of the waker.
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
    /// Anything else that may wake tasks begins: an interrupt handler, a softirq, a wheel timer.
    Enter(LabelId),
    /// What began last on this CPU ends.
    Exit,
    /// A signal was sent; comes after the wake-up that it caused (`__send_signal_locked`).
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
        /// Its first arguments.
        arguments: [u64; 3],
    },
    /// It ends it.
    CallExit {
        /// What it returns: below zero an error.
        result: i64,
    },
    /// The words at the address of the futex call that the thread has begun, that of the futex
    /// first.
    LockWords([u32; 5]),
    /// The thread calls a function that takes a lock, or one that waits for a condition: that one
    /// releases the lock first, and takes it again.
    Asks {
        /// Address of the lock.
        lock: u64,
        /// Address of the condition that it waits for.
        condition: Option<u64>,
        /// The word that is the kind of a mutex of the GNU C library, where it was recorded.
        kind: Option<u32>,
    },
    /// That function returns.
    Asked {
        /// What it returns: 0, or an error number.
        result: i64,
    },
    /// The thread calls a function that releases a lock.
    Releases {
        /// Address of the lock.
        lock: u64,
    },
    /// The thread calls a function that signals a condition.
    Signals {
        /// Address of the condition.
        condition: u64,
    },
    /// The task takes a signal.
    Delivered {
        /// Its number.
        signal: i32,
        /// Whether a function of the program handles it.
        handled: bool,
    },
    /// Where the task was in the program at its event before: functions, innermost first.
    Callers(LabelId),
    /// A page that the task used was not there.
    PageFault {
        /// The address.
        address: u64,
    },
    /// The priority of a task changes because of a lock that it holds.
    Boost {
        /// Which.
        pid: i32,
        /// Whether it goes before more tasks than until now.
        raised: bool,
    },
    /// The task begins to wait for a lock of the kernel that has an owner.
    Contends {
        /// Its address.
        lock: u64,
        /// What it is.
        kind: OwnedKind,
        /// Its name, where it has one of its own.
        name: Option<LabelId>,
    },
    /// The owner in that lock's memory, as a watched thread begins to wait, or waits on.
    KernelOwner {
        /// Its address.
        lock: u64,
        /// What it is.
        kind: OwnedKind,
        /// Its name, where it has one of its own.
        name: Option<LabelId>,
        /// Who owns it.
        owner: Owner,
    },
    /// The task has the lock of the kernel that it waited for, or waits no longer.
    Contended {
        /// Its address.
        lock: u64,
        /// 0: it has it; below zero an error.
        result: i64,
    },
    /// Nothing that matters here.
    Other,
}
