//! Locks between cores: how long a job spins for them, and how long it is blocked on arrival.
//!
//! Tasks are pinned to cores and spin while they wait. Each protocol is a bound in a file of its own; all count from the same tables
//! ([`Sharing`]), for given response times. `fixpoint` joins them with response times.
//!
//! | file | protocol | source |
//! |---|---|---|
//! | `fifo` | first come, first served: ticket and MCS locks, MSRP; spinning with or without preemption | Wieder and Brandenburg, "On spin locks in AUTOSAR: blocking analysis of FIFO, unordered, and priority-ordered spin locks", RTSS 2013 |
//! | `unordered` | whoever comes: test-and-set locks | the same |
//! | `baseline` | nothing assumed of the order | the same |
//! | `phase_fair` | readers and writers in turn | Brandenburg and Anderson, "Spin-based reader-writer synchronization for multiprocessor real-time systems", Real-Time Systems 46, 2010 |
//! | `task_fair` | readers and writers in order of arrival; the same for mutual exclusion | the same; Devi, Leontyev and Anderson, ECRTS 2006 |
//! | `msrp` | MSRP by inflation: holistic, and as first published | Brandenburg's thesis, 2011, section 5.4; Gai, Lipari and Di Natale, RTSS 2001 |
//!
//! The bounds of RTSS 2013 are integer programs; here each is solved by its own structure, exactly and without a solver. For a fixed
//! choice of the one resource that may block on arrival a program falls apart into resources and remote cores, and in each a matroid is
//! left, in which taking the longest requests first is optimal (Edmonds 1971).

mod baseline;
mod fifo;
mod fixpoint;
mod inflation;
mod longest;
mod msrp;
mod pending;
mod phase_fair;
mod sharing;
mod task_fair;
mod unordered;

pub use fixpoint::{block_once, response_times_with_locks};
pub use sharing::Sharing;

/// A locking protocol together with its analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// FIFO spin locks, no preemption while spinning.
    FifoNp,
    /// FIFO spin locks; who is preempted while it spins queues anew.
    FifoP,
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
}

/// How a bound enters the response time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charge {
    /// Once, with the spinning of local higher-priority jobs in it; their costs stay plain.
    Blocking,
    /// Spinning inflates the cost; arrival blocking stays blocking.
    SpinInflates,
    /// Both inflate the cost.
    AllInflates,
}

impl Protocol {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 11] = [
        Self::FifoNp,
        Self::FifoP,
        Self::Unordered,
        Self::UnorderedP,
        Self::Baseline,
        Self::PhaseFair,
        Self::PhaseFairOblivious,
        Self::TaskFair,
        Self::TaskFairMutex,
        Self::MsrpHolistic,
        Self::MsrpClassic,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FifoNp => "fifo-np",
            Self::FifoP => "fifo-p",
            Self::Unordered => "unordered",
            Self::UnorderedP => "unordered-p",
            Self::Baseline => "baseline",
            Self::PhaseFair => "phase-fair",
            Self::PhaseFairOblivious => "phase-fair-oblivious",
            Self::TaskFair => "task-fair",
            Self::TaskFairMutex => "task-fair-mutex",
            Self::MsrpHolistic => "msrp-holistic",
            Self::MsrpClassic => "msrp-classic",
        }
    }

    /// The protocol of one name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    pub(crate) const fn charge(self) -> Charge {
        match self {
            Self::FifoNp | Self::FifoP | Self::Unordered | Self::UnorderedP | Self::Baseline => {
                Charge::Blocking
            }
            Self::PhaseFair
            | Self::TaskFair
            | Self::TaskFairMutex
            | Self::MsrpHolistic
            | Self::MsrpClassic => Charge::SpinInflates,
            Self::PhaseFairOblivious => Charge::AllInflates,
        }
    }
}

/// Blocking of one job of each task, in priority order, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocking {
    /// Spinning: the job's own and, for the bounds of RTSS 2013, that of local higher-priority jobs while it is pending.
    pub spin: Vec<u64>,
    /// What one local lower-priority request costs on arrival, the spinning for it included.
    pub arrival: Vec<u64>,
}

/// One pass: the blocking of every task where `responses` bounds how long a job of each is pending, from its arrival, ns.
///
/// A bound is sound where `responses` is: for values from elsewhere that is the caller's claim.
pub fn blocking(sharing: &Sharing, protocol: Protocol, responses: &[u64]) -> Blocking {
    match protocol {
        Protocol::FifoNp => fifo::non_preemptable(sharing, responses),
        Protocol::FifoP => fifo::preemptable(sharing, responses),
        Protocol::Unordered => unordered::blocking(sharing, responses, false),
        Protocol::UnorderedP => unordered::blocking(sharing, responses, true),
        Protocol::Baseline => baseline::blocking(sharing, responses),
        Protocol::PhaseFair | Protocol::PhaseFairOblivious => phase_fair::blocking(sharing, responses),
        Protocol::TaskFair => task_fair::reader_writer(sharing, responses),
        Protocol::TaskFairMutex => task_fair::mutex(sharing, responses),
        Protocol::MsrpHolistic => msrp::holistic(sharing, responses),
        Protocol::MsrpClassic => msrp::classic(sharing),
    }
}
