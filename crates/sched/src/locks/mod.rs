//! Locks between cores: how long a job waits for them, and how long local holders block it.
//!
//! Tasks are pinned to cores and spin or suspend while they wait. Each protocol is a bound in a file of its
//! own; all count from the same tables ([`Sharing`]), for given response times. `fixpoint` joins
//! them with response times.
//!
//! | file | protocol | source |
//! |---|---|---|
//! | `fifo` | first come, first served: ticket and MCS locks, MSRP; spinning with or without preemption | Wieder and Brandenburg, "On spin locks in AUTOSAR: blocking analysis of FIFO, unordered, and priority-ordered spin locks", RTSS 2013 |
//! | `unordered` | whoever comes: test-and-set locks | the same |
//! | `priority` | by locking priority; ties in any order, or first come, first served | the same |
//! | `baseline` | nothing assumed of the order | the same |
//! | `phase_fair` | readers and writers in turn | Brandenburg and Anderson, "Spin-based reader-writer synchronization for multiprocessor real-time systems", Real-Time Systems 46, 2010 |
//! | `task_fair` | readers and writers in order of arrival; the same for mutual exclusion | the same; Devi, Leontyev and Anderson, ECRTS 2006 |
//! | `msrp` | MSRP by inflation: holistic, and as first published | Brandenburg's thesis, 2011; Gai, Lipari and Di Natale, RTSS 2001 |
//! | `edf` | MSRP under EDF: classic, and for whole intervals (`msrp-lp`) | Biondi and Brandenburg, ECRTS 2016 |
//! | `pip` | priority inheritance (Linux's rt_mutex), waiters suspend | Sha, Rajkumar and Lehoczky, IEEE Transactions on Computers 39, 1990 |
//! | `one_core` | the same where no resource is used by two cores, with all that `fp-rta` counts | the same; Rajkumar, "Synchronization in real-time systems", 1991 |
//! | `mpcp` | the same by priority, holders above all tasks | Lakshmanan, de Niz and Rajkumar, RTSS 2009 |
//! | `fmlp_plus` | the same first come, first served | Brandenburg, ECRTS 2014 |
//! | `omlp` | donated priorities, waiters suspend: mutex, and readers and writers in turn | Brandenburg and Anderson, Design Automation for Embedded Systems 17, 2013 |
//! | `global_omlp` | the same with any task on any core, holders inherit | Brandenburg and Anderson, RTSS 2010 |
//! | `dpcp` | agents execute sections on the core of a resource | Rajkumar, Sha and Lehoczky, RTSS 1988 |
//!
//! The bounds of RTSS 2013 are integer programs; here each is solved by its own structure, exactly
//! and without a solver. For a fixed choice of the one resource that may block on arrival a program
//! falls apart into resources and remote cores, and in each a matroid is left, in which taking the
//! longest requests first is optimal (Edmonds 1971).
//!
//! `local` says how a resource is held that only one core uses: a spin lock without preemption,
//! like any other.

mod answer;
mod baseline;
mod dpcp;
mod edf;
mod fifo;
mod fixpoint;
mod fmlp_plus;
mod global_omlp;
mod inflation;
mod local;
mod longest;
mod mpcp;
mod msrp;
mod omlp;
mod one_core;
mod pending;
mod phase_fair;
mod pip;
mod priority;
mod sharing;
mod suspending;
mod task_fair;
mod unordered;
mod waiting;

pub(crate) use fixpoint::response_times_with_locks;
pub use fixpoint::{analyze_with_locks, block_once};
pub use global_omlp::block_once_globally;
pub use local::{LocalLocks, Locks};
pub(crate) use one_core::{is_known as is_on_one_core_each, without_locks};
pub use sharing::Sharing;

/// A locking protocol together with its analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// FIFO spin locks, no preemption while spinning.
    FifoNp,
    /// FIFO spin locks; who is preempted while it spins queues anew.
    FifoP,
    /// Locks served by locking priority, ties in any order, no preemption while spinning.
    Priority,
    /// The same with preemption while spinning.
    PriorityP,
    /// Locks served by locking priority, ties first come, first served, no preemption while
    /// spinning.
    PriorityFifo,
    /// The same with preemption while spinning.
    PriorityFifoP,
    /// Locks without any order, no preemption while spinning.
    Unordered,
    /// Locks without any order, preemption while spinning.
    UnorderedP,
    /// Any lock: all that other cores can request.
    Baseline,
    /// Phase-fair reader-writer locks.
    PhaseFair,
    /// The same, all blocking charged as execution.
    PhaseFairOblivious,
    /// Task-fair reader-writer locks.
    TaskFair,
    /// Task-fair mutual exclusion.
    TaskFairMutex,
    /// MSRP by inflation with what other tasks can request.
    MsrpHolistic,
    /// MSRP by inflation as first published.
    MsrpClassic,
    /// MSRP under EDF, blocking counted for whole intervals.
    MsrpLp,
    /// Priority inheritance, waiters suspend: `PTHREAD_PRIO_INHERIT`.
    Pip,
    /// Multiprocessor priority ceiling protocol, waiters suspend.
    Mpcp,
    /// Partitioned FMLP+: FIFO, waiters suspend.
    FmlpPlus,
    /// Distributed priority ceiling protocol: sections on the core of a resource.
    Dpcp,
    /// OMLP: FIFO with donated priorities, waiters suspend.
    Omlp,
    /// The same for readers and writers in turn.
    OmlpRw,
}

/// How a bound enters the response time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charge {
    /// Once, including the spinning of local higher-priority jobs; their costs stay plain.
    Blocking,
    /// Spinning, or waiting, inflates the cost; arrival blocking stays blocking.
    SpinInflates,
    /// Both inflate the cost.
    AllInflates,
    /// Both once, like blocking; who may wait for another core interferes as a suspending task.
    Suspension,
}

impl Protocol {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 22] = [
        Self::FifoNp,
        Self::FifoP,
        Self::Priority,
        Self::PriorityP,
        Self::PriorityFifo,
        Self::PriorityFifoP,
        Self::Unordered,
        Self::UnorderedP,
        Self::Baseline,
        Self::PhaseFair,
        Self::PhaseFairOblivious,
        Self::TaskFair,
        Self::TaskFairMutex,
        Self::MsrpHolistic,
        Self::MsrpClassic,
        Self::MsrpLp,
        Self::Pip,
        Self::Mpcp,
        Self::FmlpPlus,
        Self::Dpcp,
        Self::Omlp,
        Self::OmlpRw,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FifoNp => "fifo-np",
            Self::FifoP => "fifo-p",
            Self::Priority => "priority",
            Self::PriorityP => "priority-p",
            Self::PriorityFifo => "priority-fifo",
            Self::PriorityFifoP => "priority-fifo-p",
            Self::Unordered => "unordered",
            Self::UnorderedP => "unordered-p",
            Self::Baseline => "baseline",
            Self::PhaseFair => "phase-fair",
            Self::PhaseFairOblivious => "phase-fair-oblivious",
            Self::TaskFair => "task-fair",
            Self::TaskFairMutex => "task-fair-mutex",
            Self::MsrpHolistic => "msrp-holistic",
            Self::MsrpClassic => "msrp-classic",
            Self::MsrpLp => "msrp-lp",
            Self::Pip => "pip",
            Self::Mpcp => "mpcp",
            Self::FmlpPlus => "fmlp+",
            Self::Dpcp => "dpcp",
            Self::Omlp => "omlp",
            Self::OmlpRw => "omlp-rw",
        }
    }

    /// The protocol of one name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    pub(crate) const fn charge(self) -> Charge {
        match self {
            Self::FifoNp
            | Self::FifoP
            | Self::Priority
            | Self::PriorityP
            | Self::PriorityFifo
            | Self::PriorityFifoP
            | Self::Unordered
            | Self::UnorderedP
            | Self::Baseline => Charge::Blocking,
            Self::PhaseFair
            | Self::TaskFair
            | Self::TaskFairMutex
            | Self::MsrpHolistic
            | Self::MsrpClassic
            | Self::MsrpLp
            | Self::Omlp
            | Self::OmlpRw => Charge::SpinInflates,
            Self::PhaseFairOblivious => Charge::AllInflates,
            Self::Pip | Self::Mpcp | Self::FmlpPlus | Self::Dpcp => Charge::Suspension,
        }
    }

    /// Whether who waits suspends, and leaves its core to others.
    pub const fn suspends(self) -> bool {
        matches!(self.charge(), Charge::Suspension) || matches!(self, Self::Omlp | Self::OmlpRw)
    }
}

/// Blocking of one job of each task, in priority order, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocking {
    /// Spinning: the job's own and, for the bounds of RTSS 2013, that of local higher-priority jobs
    /// while it is pending. Where waiters suspend: its waits for other cores.
    pub spin: Vec<u64>,
    /// What one local lower-priority request costs on arrival, the spinning for it included. Where
    /// waiters suspend: sections of other tasks on its core, on arrival and after each suspension;
    /// under the OMLP the donation of its priority, with the wait of who gets it.
    pub arrival: Vec<u64>,
}

/// Whose counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Semantics {
    /// Ours: never below what can happen. What verdicts rest on.
    Sound,
    /// That of SchedCAT (commit 86211bc), for comparison: local higher-priority jobs without their
    /// jitter, and priority-ordered locks as if all locking priorities were equal, because its
    /// numbers do not depend on them. `priority-fifo` is then FIFO, and `priority` is unordered,
    /// with the recurrence of the waiting time started, and taken as solved, at 0.
    SchedCat,
}

impl Semantics {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sound, Self::SchedCat];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::SchedCat => "schedcat",
        }
    }

    /// The semantics of one name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|semantics| semantics.name() == name)
    }
}

/// One pass: the blocking of every task where `responses` bounds how long a job of each is pending,
/// from its arrival, ns.
///
/// A bound is sound where `responses` is: for values from elsewhere the caller must ensure that.
pub fn blocking(sharing: &Sharing, protocol: Protocol, semantics: Semantics, responses: &[u64]) -> Blocking {
    let order = |fifo_ties, preemptable| priority::Order { fifo_ties, preemptable };
    match (protocol, semantics) {
        (Protocol::FifoNp, _) | (Protocol::PriorityFifo, Semantics::SchedCat) => {
            fifo::non_preemptable(sharing, responses, semantics)
        }
        (Protocol::FifoP, _) | (Protocol::PriorityFifoP, Semantics::SchedCat) => {
            fifo::preemptable(sharing, responses, semantics)
        }
        (Protocol::Priority, Semantics::SchedCat) => {
            unordered::with_wait(sharing, responses, false, semantics, |_, _| 0)
        }
        (Protocol::Priority, _) => priority::blocking(sharing, responses, order(false, false)),
        (Protocol::PriorityP, Semantics::Sound) => priority::blocking(sharing, responses, order(false, true)),
        (Protocol::PriorityFifo, _) => priority::blocking(sharing, responses, order(true, false)),
        (Protocol::PriorityFifoP, _) => priority::blocking(sharing, responses, order(true, true)),
        (Protocol::Unordered, _) => unordered::blocking(sharing, responses, false, semantics),
        (Protocol::UnorderedP | Protocol::PriorityP, _) => {
            unordered::blocking(sharing, responses, true, semantics)
        }
        (Protocol::Baseline, _) => baseline::blocking(sharing, responses, semantics),
        (Protocol::PhaseFair | Protocol::PhaseFairOblivious, _) => phase_fair::blocking(sharing, responses),
        (Protocol::TaskFair, _) => task_fair::reader_writer(sharing, responses),
        (Protocol::TaskFairMutex, _) => task_fair::mutex(sharing, responses),
        (Protocol::MsrpHolistic, _) => msrp::holistic(sharing, responses),
        (Protocol::MsrpClassic | Protocol::MsrpLp, _) => msrp::classic(sharing),
        (Protocol::Pip, _) => pip::blocking(sharing, responses),
        (Protocol::Mpcp, _) => mpcp::blocking(sharing, responses, semantics),
        (Protocol::FmlpPlus, _) => fmlp_plus::blocking(sharing, responses, semantics),
        (Protocol::Dpcp, _) => dpcp::blocking(sharing, responses, semantics),
        (Protocol::Omlp, _) => omlp::mutex(sharing, responses),
        (Protocol::OmlpRw, _) => omlp::reader_writer(sharing, responses),
    }
}
