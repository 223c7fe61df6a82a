//! The section `watch.locks` of `analysis.json`: who waited for which lock, and what its holder did
//! meanwhile.

use crate::attribute::figures::Figures;
use serde::{Deserialize, Serialize};

/// The kind of a lock, as far as it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// A mutex of glibc, with its owner beside the word.
    GlibcMutex,
    /// A mutex of a C library whose word holds no owner.
    Mutex,
    /// By its value a mutex of glibc that somebody waits for; its memory was not read, so it may be
    /// a futex of the program's own.
    ByValue,
    /// A lock whose word holds its owner: a robust mutex, or one of musl that checks its owner.
    Owned,
    /// A mutex that inherits priorities (`PTHREAD_PRIO_INHERIT`).
    Inheriting,
    /// A read-write lock of glibc that a writer holds.
    ReadWrite,
    /// A mutex of the kernel.
    KernelMutex,
    /// A semaphore of the kernel that one writer or several readers hold.
    KernelSemaphore,
    /// A lock of a kernel with PREEMPT_RT that inherits: there also its mutexes and spinlocks.
    KernelRtMutex,
    /// Anything else that threads wait for by futex: a condition variable, a semaphore, a lock that
    /// readers hold, a lock of another runtime.
    Unknown,
}

impl LockKind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::GlibcMutex | Self::Mutex | Self::Owned => "mutex",
            Self::ByValue => "mutex (by its value)",
            Self::Inheriting => "PI mutex",
            Self::ReadWrite => "read-write lock",
            Self::KernelMutex => "kernel mutex",
            Self::KernelSemaphore => "kernel rw-semaphore",
            Self::KernelRtMutex => "kernel rt-mutex",
            Self::Unknown => "futex",
        }
    }

    /// Whether it has an owner, who alone releases it.
    pub fn is_lock(self) -> bool {
        self != Self::Unknown
    }

    /// Whether it is one of the kernel, not of a program.
    pub fn is_of_kernel(self) -> bool {
        matches!(self, Self::KernelMutex | Self::KernelSemaphore | Self::KernelRtMutex)
    }
}

/// What shows who held a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The lock itself held the owner's number when the wait began.
    Memory,
    /// The kernel raised the owner's priority for this waiter.
    Boost,
    /// It woke this waiter, or another one of this lock before: who releases a lock held it.
    Order,
}

impl Evidence {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Memory => "by the lock's own memory",
            Self::Boost => "by the kernel's inheritance of priorities",
            Self::Order => "by the order of wake-ups",
        }
    }
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadName {
    /// Thread id.
    pub tid: i32,
    /// Name.
    pub comm: String,
    /// Effective priority as the scheduler's events give it (`task_struct.prio`), where known.
    pub prio: Option<i16>,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitEnd {
    /// The lock was released to the waiter, or it was woken to try again.
    Released,
    /// The call's time was over.
    TimedOut,
    /// By a signal.
    Interrupted,
    /// Not before the recording ended.
    Lasts,
}

/// What a lock's holder did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// It ran.
    Ran,
    /// It was runnable, and this thread had the CPU.
    Preempted {
        /// Which; `None`: not known.
        by: Option<ThreadName>,
    },
    /// It was asleep: in this system call, where known.
    Slept {
        /// The call.
        call: Option<String>,
    },
    /// Not recorded.
    Unknown,
}

/// Time of a wait in which one holder did one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The holder: of the lock itself, or where that one waited for a further lock, of that one.
    pub holder: ThreadName,
    /// Addresses of the further locks on the way to it, first the one that the lock's own holder
    /// waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<u64>,
    /// What it did.
    pub doing: Activity,
    /// ns.
    pub ns: u64,
    /// Whether this is priority inversion without a bound: a thread less urgent than the waiter
    /// kept the holder from running.
    #[serde(default)]
    pub inversion: bool,
}

/// What a holder did at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// CLOCK_MONOTONIC, ns.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC, ns.
    pub t1_ns: i64,
    /// The holder.
    pub holder: ThreadName,
    /// What it did.
    pub doing: Activity,
    /// Whether this is inversion.
    #[serde(default)]
    pub inversion: bool,
}

/// A holder, and since when and until when within the wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Who.
    pub thread: ThreadName,
    /// CLOCK_MONOTONIC, ns.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC, ns.
    pub t1_ns: i64,
    /// What shows it.
    pub evidence: Vec<Evidence>,
}

/// One wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWait {
    /// Who waited.
    pub waiter: ThreadName,
    /// The lock: address of its word.
    pub word: u64,
    /// Its kind.
    pub kind: LockKind,
    /// Its name, of a lock of the kernel that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The system call in which a lock of the kernel was waited for, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Where in the program it asked for the lock: functions, innermost first, as far as frame
    /// pointers lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callers: Option<String>,
    /// CLOCK_MONOTONIC, ns: the call.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC, ns: the wake-up, or the end of the recording.
    pub t1_ns: i64,
    /// How it ended.
    pub end: WaitEnd,
    /// Who held it, in order of time; empty where the owner is not known.
    pub holders: Vec<Holder>,
    /// Why the owner is not known, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// What the holders did, longest first.
    pub parts: Vec<Part>,
    /// The same in the order of time; the first ones, where there are very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<Step>,
    /// Whether the kernel raised the holder's priority for it.
    #[serde(default)]
    pub inherited: bool,
    /// Time of `parts` that is inversion, ns.
    pub inversion_ns: u64,
    /// Threads that wait for one another for ever, this one first; empty where it is not so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<ThreadName>,
}

/// A thread's waits for one lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waiter {
    /// Who.
    pub thread: ThreadName,
    /// From the call to the wake-up.
    pub waited: Option<Figures>,
    /// CLOCK_MONOTONIC, ns: the call of its first wait.
    pub first_ns: i64,
    /// Waits that last beyond the recording.
    pub lasting: u64,
    /// Waits in which inversion was shown.
    pub inversions: u64,
}

/// One lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// Address of its word.
    pub word: u64,
    /// Process, where known; `None` for locks of the kernel.
    pub tgid: Option<i32>,
    /// Its kind.
    pub kind: LockKind,
    /// Its name, of a lock of the kernel that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// From the call to the wake-up, of all threads.
    pub waited: Option<Figures>,
    /// Waits in which the owner is known.
    pub known: u64,
    /// Waits.
    pub n: u64,
    /// By thread, most time first.
    pub waiters: Vec<Waiter>,
    /// Who held it while others waited; most waits first.
    pub holders: Vec<LockHolder>,
}

/// A thread that held a lock while others waited for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// Who.
    pub thread: ThreadName,
    /// In how many waits.
    pub waits: u64,
}

/// The locks of a program.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LockSection {
    /// Locks that somebody waited for, most time first.
    pub locks: Vec<Lock>,
    /// Locks beyond those listed.
    pub unlisted: u64,
    /// The longest waits, those that last and those with inversion before the others.
    pub worst: Vec<LockWait>,
    /// Waits in which inversion was shown.
    pub inversions: u64,
    /// Waits that events are missing from: of these nothing is reported.
    pub withheld: u64,
    /// Whether the words at a lock's address were recorded.
    pub memory: bool,
    /// Whether the owners of the kernel's locks were recorded.
    #[serde(default)]
    pub kernel_owners: bool,
    /// Every locking, where that was recorded (`--locks=every`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<EveryLock>,
}

/// Every locking of a program.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EveryLock {
    /// By lock: those held for the most time first, at most 100.
    pub locks: Vec<TakenLock>,
    /// Lockings of locks that are not listed.
    pub unlisted: u64,
    /// Lockings and releases whose other end was not recorded.
    pub unpaired: u64,
    /// Conditions that were signalled by a thread that did not hold the mutex, while others waited
    /// for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<FreeSignal>,
}

/// Signals of one thread to one condition, without the mutex of those who waited for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeSignal {
    /// Address of the condition.
    pub condition: u64,
    /// Process, where known.
    pub tgid: Option<i32>,
    /// Address of the mutex.
    pub mutex: u64,
    /// Who signalled.
    pub thread: ThreadName,
    /// How often.
    pub n: u64,
    /// CLOCK_MONOTONIC, ns: the first time.
    pub first_ns: i64,
    /// Who waited.
    pub waiters: Vec<ThreadName>,
    /// Where in the program, one of the times: functions, innermost first, as far as frame pointers
    /// lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callers: Option<String>,
}

/// One lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakenLock {
    /// Its address.
    pub word: u64,
    /// Process, where known.
    pub tgid: Option<i32>,
    /// How often it was taken.
    pub taken: u64,
    /// How often a thread asked in vain: it was taken, and the thread did not wait, or not for long
    /// enough.
    pub refused: u64,
    /// How long it was held at a time.
    pub held: Option<Figures>,
    /// By thread, most time first.
    pub by: Vec<TakenBy>,
}

/// One thread with one lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakenBy {
    /// Who.
    pub thread: ThreadName,
    /// How often it took the lock.
    pub taken: u64,
    /// How long it held it at a time.
    pub held: Option<Figures>,
}
