//! A kernel event as the analysis sees it: no bytes, no formats, no names that differ between
//! kernels.
//!
//! [`crate::decode`] makes these from a trace; tests make them by hand.

use crate::attribute::delay::Blocking;
use crate::labels::LabelId;
use crate::prio::Prio;
use model::EventClass;

/// One event on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelEvent {
    /// CLOCK_MONOTONIC, ns.
    pub ts_ns: i64,
    /// The CPU that recorded it.
    pub cpu: u32,
    /// The task that was current, also in interrupts; 0 is idle.
    pub pid: i32,
    /// In what it was recorded.
    pub level: Level,
    /// Whether interrupts were off.
    pub irqs_off: bool,
    /// Which event: its place in the catalogue.
    pub event: u16,
    /// What it says.
    pub what: What,
}

/// When and where an event was recorded, and in what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    /// As in [`KernelEvent`].
    pub ts_ns: i64,
    pub cpu: u32,
    pub pid: i32,
    pub level: Level,
    pub irqs_off: bool,
}

impl At {
    /// The event that says this here.
    #[cold]
    pub(crate) fn says(self, what: What) -> KernelEvent {
        let Self { ts_ns, cpu, pid, level, irqs_off } = self;
        KernelEvent { ts_ns, cpu, pid, level, irqs_off, event: 0, what }
    }

    /// As [`KernelEvent::in_task`].
    #[inline(always)]
    pub(crate) fn in_task(self) -> bool {
        self.level == Level::Task
    }
}

/// The scheduler hands a CPU over, as [`What::Switch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) prev: Task,
    pub(crate) runnable: bool,
    pub(crate) next: Task,
}

impl Switch {
    #[cold]
    pub(crate) fn what(self) -> What {
        let Self { prev, runnable, next } = self;
        What::Switch { prev, runnable, next }
    }
}

/// A task is woken, as [`What::Wake`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wake {
    pub pid: i32,
    pub(crate) target: u32,
    pub(crate) done: bool,
}

impl Wake {
    #[cold]
    pub(crate) fn what(self) -> What {
        let Self { pid, target, done } = self;
        What::Wake { pid, target, done }
    }
}

impl KernelEvent {
    /// Without what it says.
    #[inline(always)]
    pub(crate) fn at(&self) -> At {
        let Self { ts_ns, cpu, pid, level, irqs_off, .. } = *self;
        At { ts_ns, cpu, pid, level, irqs_off }
    }

    /// What events are decoded into.
    pub const NOTHING: Self =
        Self { ts_ns: 0, cpu: 0, pid: 0, level: Level::Task, irqs_off: false, event: 0, what: What::Other };

    /// Whether it was recorded outside every interrupt: only then `pid` is who did it.
    pub fn in_task(&self) -> bool {
        self.level == Level::Task
    }
}

/// What a CPU is doing, as each event states for the moment that it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A task.
    Task,
    /// A softirq, inside a task or at the end of an interrupt.
    Softirq,
    /// A hard interrupt or an NMI.
    Hard,
}

/// A task as a switch names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    /// Its number; idle is 0.
    pub pid: i32,
    /// How it competes for the CPU.
    pub prio: Prio,
    /// Its name at that moment.
    pub comm: LabelId,
    /// Whether it is the thread that serves this CPU's softirqs (`ksoftirqd`; on PREEMPT_RT also
    /// `ktimers`).
    pub softirqd: bool,
}

impl Task {
    /// One of which only the number is known.
    pub fn unnamed(pid: i32, comm: LabelId) -> Self {
        Self { pid, prio: Prio::UNKNOWN, comm, softirqd: false }
    }
}

/// A way through the kernel ([`crate::stacks`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Way {
    /// What it began in: `system call write`, `kernel thread`, `interrupt`; `None` where that is
    /// not known.
    pub began: Option<LabelId>,
    /// The innermost function that is no helper.
    pub site: Option<LabelId>,
    /// Its functions, innermost first.
    pub frames: Option<LabelId>,
}

/// An idle state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleState {
    /// Its name, and how long it takes to leave.
    pub label: LabelId,
    /// The latter, ns, at most.
    pub exit_ns: i64,
}

/// A change of a CPU's frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// To what, and how long it takes.
    pub label: LabelId,
    /// The latter, ns, at most.
    pub most_ns: i64,
}

/// Where in the kernel a span runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// Hard interrupt: no switch can come between its ends.
    Hard,
    /// Task, or softirq of a kernel that runs those in tasks: a switch may take it off the CPU for
    /// a while.
    Preemptible,
}

/// Whom an IPI is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// One CPU.
    One(u32),
    /// All of a set, [`crate::labels::CpuSets`].
    Set(u32),
}

/// What a [`KernelEvent`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Something starts.
    Enter {
        /// Its class, unless what happens inside decides otherwise.
        class: EventClass,
        /// Where it runs.
        context: Context,
        /// What must agree between both ends: a pointer, an interrupt number; 0 where nothing must.
        key: u64,
        /// What runs.
        label: LabelId,
    },
    /// Something ends.
    Exit {
        /// The event that started it.
        of: u16,
        /// As in [`What::Enter`].
        key: u64,
        /// The class of what ended, where its start was not recorded.
        class: EventClass,
        /// What ran, where its start was not recorded.
        label: LabelId,
    },
    /// Something without an end of its own.
    Instant {
        /// Its class.
        class: EventClass,
        /// What ran.
        label: LabelId,
        /// How long it took until now, ns; 0 if the event does not report it.
        length_ns: u64,
    },
    /// The scheduler hands the CPU over.
    Switch {
        /// Who ran.
        prev: Task,
        /// Whether it would have run on.
        runnable: bool,
        /// Who runs from here on.
        next: Task,
    },
    /// A task is being woken, or has been.
    Wake {
        /// Who.
        pid: i32,
        /// Where it will run.
        target: u32,
        /// Whether it has been: by then the CPU may be another than the one that asked.
        done: bool,
    },
    /// A timer was armed.
    Armed {
        /// Its address.
        timer: u64,
        /// When it is to expire, at the earliest, by its own clock, ns; 0 where the event does not
        /// say in ns.
        expires_ns: i64,
    },
    /// A softirq was raised on this CPU.
    Raised {
        /// Its number.
        vector: u64,
    },
    /// A work item was queued.
    Queued {
        /// Its address.
        work: u64,
    },
    /// A function was queued for another CPU to call.
    CallQueued {
        /// Address of the request.
        csd: u64,
        /// The CPU that shall call it.
        target: u32,
        /// Where in the kernel that was requested; of irq_work the function.
        site: LabelId,
        /// Whether it is irq_work, of whose arrival the kernel has no event.
        irq_work: bool,
    },
    /// An IPI was sent.
    Sent {
        /// To whom.
        target: Target,
        /// What it will be counted as there.
        class: EventClass,
        /// Where in the kernel that was requested.
        site: LabelId,
    },
    /// Other CPUs are asked to flush their TLBs.
    Shootdown,
    /// A task moved between CPUs.
    Migrate {
        /// Who.
        pid: i32,
        /// From where.
        from: u32,
        /// To where.
        to: u32,
        /// Name of the task.
        label: LabelId,
    },
    /// A task competes for the CPU in another way from here on: it inherits, or has inherited.
    Prio {
        /// Who.
        pid: i32,
        /// How.
        prio: Prio,
    },
    /// The CPU goes to sleep; `None`: in a state whose exit latency is unknown.
    Idle(Option<IdleState>),
    /// The CPU is awake again.
    Awake,
    /// A CPU's frequency changes.
    Frequency {
        /// Whose.
        cpu: u32,
        /// To what; `None` if the time it takes is unknown.
        change: Option<Change>,
    },
    /// The function that a call-function IPI brought.
    Called {
        /// The function.
        label: LabelId,
        /// Address of the request.
        csd: u64,
    },
    /// Interrupts or preemption were turned off, a lock was found taken, or a probed function was
    /// entered.
    Blocked {
        /// Which of these.
        blocking: Blocking,
        /// The function that did so or was entered, or the lock.
        label: LabelId,
        /// Address of the lock, or the number of the probed function; else 0.
        lock: u64,
        /// Whether the task sleeps until it has the lock.
        sleeps: bool,
    },
    /// That is over.
    Unblocked {
        /// Which of these.
        blocking: Blocking,
        /// As in [`What::Blocked`].
        lock: u64,
    },
    /// The kernel's stack, recorded right behind an event of the same CPU.
    Stack {
        /// Whether the current task was giving the CPU away.
        at_switch: bool,
        /// The kernel code that it was in, and that could not be preempted there.
        code: Option<Way>,
        /// Whether an interrupt found it in user space, where nothing keeps it from giving the CPU
        /// away.
        in_user_space: bool,
        /// Whether the interrupt was that of high-resolution timers; others expire with the tick.
        high_resolution: bool,
        /// How the kernel came to that event.
        act: Way,
    },
    /// The stack of user space, recorded right behind an event of the same CPU; that of the kernel
    /// which follows it has it.
    UserStack,
    /// Nothing that spans are made of.
    Other,
}
