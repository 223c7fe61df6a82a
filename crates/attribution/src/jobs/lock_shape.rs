//! What is known of the locks of a program's threads, job by job.

use super::shape::Suspending;
use model::locking::MutexKind;
use serde::{Deserialize, Serialize};

/// How a lock treats priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockProtocol {
    /// Its holder keeps its priority.
    Plain,
    /// `PTHREAD_PRIO_INHERIT`.
    Inherits,
    /// `PTHREAD_PRIO_PROTECT`.
    Protects,
    /// Not known: no mutex of the GNU C library, whose memory shows it.
    #[default]
    Unknown,
}

impl LockProtocol {
    pub(super) fn of(kind: MutexKind) -> Self {
        match kind {
            MutexKind { inherits: true, .. } => Self::Inherits,
            MutexKind { protects: true, .. } => Self::Protects,
            _ => Self::Plain,
        }
    }
}

/// The locks that a recording shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramLocks {
    /// Whether every locking was recorded, or only waits.
    pub every: bool,
    /// The locks, by process and address.
    pub locks: Vec<ObservedLock>,
    /// Threads that locked, or waited for a lock, and have jobs.
    pub threads: Vec<LockingThread>,
    /// Lockings and releases without their other end in the recording.
    pub unpaired: u64,
}

/// One lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedLock {
    /// Its process, where known.
    pub process: Option<i32>,
    /// Its address there.
    pub address: u64,
    /// How it treats priorities.
    pub protocol: LockProtocol,
    /// Whether several processes may use it.
    pub is_shared: bool,
    /// Its users, by number.
    pub users: Vec<LockUser>,
}

/// A thread with a lock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockUser {
    /// The thread.
    pub tid: i32,
    /// How often it took the lock.
    pub taken: u64,
    /// The most requests of a job; 0 where it has no jobs.
    pub requests: u64,
    /// Of its sections, those whose length is known.
    pub measured: u64,
    /// The longest execution while it held the lock, interrupts not counted, ns.
    pub held_ns: u64,
    /// The longest sleep while it held it, ns.
    pub slept_ns: u64,
    /// In which system call; empty outside of any.
    pub slept_in: String,
    /// Locks that it held when it asked for this one, by place.
    pub within: Vec<usize>,
    /// How often it slept until it had the lock.
    pub waits: u64,
    /// Whether that is what separates its jobs.
    pub separates: bool,
}

/// The jobs of a thread that locks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockingThread {
    /// The thread.
    pub tid: i32,
    /// Its jobs.
    pub jobs: u64,
    /// The longest suspension of a job, ns, and the most of one, waits for locks not among them.
    pub suspended_ns: u64,
    /// The same: how many at most.
    pub suspensions: u64,
    /// The same: of all jobs.
    pub suspending: Suspending,
    /// The longest from a wake-up to the switch to it, without tasks at least as urgent, and
    /// without sections of others for which one as urgent waits, ns.
    pub dispatch_ns: u64,
    /// The most lockings of a job.
    pub lockings: u64,
    /// Jobs that waited for locks.
    pub waiting: u64,
    /// The longest that one waited, ns.
    pub waited_ns: u64,
    /// Of these the longest blocked, first.
    pub longest: Vec<JobWait>,
}

/// The waits of a job for locks, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobWait {
    /// When the job was woken, ns of the trace's clock.
    pub woken_ns: i64,
    /// How long it waited, ns.
    pub waited_ns: u64,
    /// Of this, its CPU had neither interrupts nor a thread at least as urgent, ns.
    pub blocked_ns: u64,
}
