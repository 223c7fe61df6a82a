//! The section `watch` of `analysis.json`: a watched program.

pub use crate::attribute::figures::Figures;
use crate::attribute::lint::shape::LintSection;
use crate::attribute::locks::shape::LockSection;
use crate::attribute::thread_paths::{CpuSources, ThreadPaths};
use model::Cpus;
use model::watch::CommandRecord;
use serde::{Deserialize, Serialize};

/// A watched program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchSection {
    /// The request, in words.
    pub asked: String,
    /// CLOCK_MONOTONIC, ns: recording on.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC, ns: recording off.
    pub t1_ns: i64,
    /// The command that was started, and its end.
    pub command: Option<CommandRecord>,
    /// The threads, most activations first.
    pub threads: Vec<ThreadSection>,
    /// Their wake-ups taken apart, a section for each CPU that a thread ran on; the most late time
    /// first.
    #[serde(default)]
    pub paths: Vec<ThreadPaths>,
    /// Waits for locks, where there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<LockSection>,
    /// What its real-time threads do wrong, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lint: Option<LintSection>,
    /// What ran on their CPUs beside the thread that waited longest there, with sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attribution: Vec<CpuSources>,
    /// Wake-ups from thread to thread, most frequent first.
    pub chains: Vec<Chain>,
    /// Wake-ups beyond the limit of chains.
    pub chains_dropped: u64,
    /// What is missing or not known, one sentence each.
    pub statements: Vec<String>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadSection {
    /// Thread id.
    pub tid: i32,
    /// Process id, where known.
    pub tgid: Option<i32>,
    /// Its last name.
    pub comm: String,
    /// Policy and priority, as last seen.
    pub policy: Option<String>,
    /// Its priority as the scheduler's events give it (`task_struct.prio`), as it was when it last
    /// went to sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prio: Option<i16>,
    /// Where the time it was watched went.
    pub times: Times,
    /// The CPUs it ran on.
    pub cpus: Cpus,
    /// Wake-ups after which it ran.
    pub activations: u64,
    /// Wake-ups that found it running or about to sleep, so that it never did.
    pub early_wakes: u64,
    /// Activations whose switch is missing from the trace: their latency ends at the first sign of
    /// running, or is left out.
    pub unseen_switches: u64,
    /// From the wake-up to the switch to it.
    pub run_latency: Option<Figures>,
    /// What released it, most frequent first.
    pub releases: Vec<Release>,
    /// Preemptors: who took the CPU while it was runnable, most time first.
    pub preemptions: Vec<Preemption>,
    /// Migrations while it was being woken.
    pub migrations_waking: u64,
    /// Migrations while it ran or waited for a CPU.
    pub migrations_runnable: u64,
}

/// Where the time of a thread went, ns; the parts add up to `observed_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Times {
    /// From the start of recording, or its own start, to the end of recording, or its own end.
    pub observed_ns: u64,
    /// On a CPU, interrupts there included.
    pub on_cpu_ns: u64,
    /// Woken and not yet running.
    pub waiting_ns: u64,
    /// Preempted and not yet running again.
    pub preempted_ns: u64,
    /// Waiting for something other than a CPU.
    pub asleep_ns: u64,
    /// Unknown: events are lost, or it was never seen.
    pub unknown_ns: u64,
}

/// What ended a thread's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseKind {
    /// A timer expired.
    Timer,
    /// A signal.
    Signal,
    /// A futex: mutexes, condition variables.
    Futex,
    /// A POSIX message queue.
    MessageQueue,
    /// A pipe.
    Pipe,
    /// An eventfd.
    Eventfd,
    /// A socket.
    Socket,
    /// Another descriptor.
    File,
    /// One of several descriptors (poll, select, epoll).
    Poll,
    /// A child ended.
    Child,
    /// A System V semaphore or message.
    SystemV,
    /// It was made.
    Start,
    /// Anything else: a page, a lock of the kernel, I/O.
    Other,
}

impl ReleaseKind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Signal => "signal",
            Self::Futex => "futex",
            Self::MessageQueue => "message queue",
            Self::Pipe => "pipe",
            Self::Eventfd => "eventfd",
            Self::Socket => "socket",
            Self::File => "descriptor",
            Self::Poll => "poll",
            Self::Child => "child",
            Self::SystemV => "System V queue",
            Self::Start => "start",
            Self::Other => "wake-up",
        }
    }
}

/// Releases of a thread, of one kind and by one waker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// What it waited for.
    pub kind: ReleaseKind,
    /// The system call that it waited in, where known.
    pub call: Option<String>,
    /// Who woke it: a thread's name, or in interrupt context what ran there.
    pub by: String,
    /// The waker's thread id; absent in interrupt context.
    pub by_tid: Option<i32>,
    /// The signal.
    pub signal: Option<i32>,
    /// The CPUs that it was woken from.
    pub from: Cpus,
    /// Releases.
    pub n: u64,
    /// From the timer's intended expiry to the wake-up.
    pub lateness: Option<Figures>,
    /// From the wake-up to the switch to it.
    pub run_latency: Option<Figures>,
    /// From the timer's intended expiry to the switch to it.
    pub total: Option<Figures>,
}

/// Preemptions of a thread by one other, woken by one waker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preemption {
    /// The preemptor's name.
    pub by: String,
    /// Its thread id, if there was only one.
    pub by_tid: Option<i32>,
    /// What had woken it, where known.
    pub woken_by: Option<String>,
    /// Preemptions.
    pub n: u64,
    /// Time until the thread ran again.
    pub lost: Option<Figures>,
}

/// Wake-ups from thread to thread: each ran because the one before woke it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// The threads, by id.
    pub tids: Vec<i32>,
    /// Their names.
    pub comms: Vec<String>,
    /// How often it occurred.
    pub n: u64,
    /// From the first one's release (the timer's intended expiry, else the wake-up) to the switch
    /// to the last.
    pub latency: Option<Figures>,
}
