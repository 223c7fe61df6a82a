//! The locks of a program as its model has them, stored with it.

use attribution::jobs::lock_shape::{JobWait, LockProtocol};
use sched::locks::Protocol;
use serde::{Deserialize, Serialize};

/// Requests of a thread for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The lock, by place in [`Locks::all`].
    pub lock: u32,
    /// The most of one job.
    pub count: u64,
    /// The longest execution with the lock, interrupts not counted, ns.
    pub length_ns: u64,
}

/// The locks of a program.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Locks {
    /// Whether every locking was recorded.
    pub every: bool,
    /// The locks.
    pub all: Vec<Lock>,
    /// Threads with jobs.
    pub threads: Vec<ThreadLocks>,
    /// Taken in place of what each lock is: all are served so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed: Option<Served>,
}

impl Locks {
    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// One lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Its process, where known.
    pub process: Option<i32>,
    /// Its address there.
    pub address: u64,
    /// What its program calls it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// How it treats priorities.
    pub protocol: LockProtocol,
    /// Whether several processes may use it.
    pub is_shared: bool,
    /// Who uses it.
    pub users: Vec<User>,
}

impl Lock {
    /// What it is called in a sentence.
    pub fn name(&self) -> String {
        let address = format!("{:#x}", self.address);
        self.symbol.as_ref().map_or(address.clone(), |symbol| format!("{symbol} ({address})"))
    }
}

/// A thread with a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The thread.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// Whether it is, or was, a thread of the model.
    pub is_followed: bool,
    /// How often it took the lock; 0 where only waits were recorded.
    pub taken: u64,
    /// The most requests of a job; 0 where it has no jobs.
    pub requests: u64,
    /// The longest execution while it held the lock, interrupts not counted, ns; `None` where no
    /// section has its length.
    pub held_ns: Option<u64>,
    /// The longest sleep while it held it, ns.
    pub slept_ns: u64,
    /// In which system call; empty outside of any.
    pub slept_in: String,
    /// Locks that it held when it asked for this one, by place.
    pub within: Vec<u32>,
    /// How often it slept until it had the lock.
    pub waits: u64,
    /// Whether that is what separates its jobs.
    pub separates: bool,
}

/// The waits of a thread's jobs for locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLocks {
    /// The thread.
    pub pid: i32,
    /// Its jobs.
    pub jobs: u64,
    /// The most lockings of a job.
    pub lockings: u64,
    /// Jobs that waited.
    pub waiting: u64,
    /// The longest that one waited, ns.
    pub waited_ns: u64,
    /// Of these those that were blocked longest.
    pub longest: Vec<JobWait>,
}

/// How all locks of a program are served, in place of what each is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Served {
    /// `PTHREAD_PRIO_INHERIT`.
    Pip,
    /// By priority, holders above all tasks of their CPU.
    Mpcp,
    /// First come, first served, holders above all tasks of their CPU.
    #[serde(rename = "fmlp+")]
    FmlpPlus,
    /// Sections on the CPU of their resource.
    Dpcp,
    /// First come, first served, with donated priorities.
    Omlp,
}

impl Served {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Pip, Self::Mpcp, Self::FmlpPlus, Self::Dpcp, Self::Omlp];

    /// The protocol of `sched --locks`.
    pub const fn protocol(self) -> Protocol {
        match self {
            Self::Pip => Protocol::Pip,
            Self::Mpcp => Protocol::Mpcp,
            Self::FmlpPlus => Protocol::FmlpPlus,
            Self::Dpcp => Protocol::Dpcp,
            Self::Omlp => Protocol::Omlp,
        }
    }

    /// By its name there.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.protocol().name() == name)
    }
}
