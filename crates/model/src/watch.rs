//! `watch.json`: what `trace watch` knows of the watched program besides the trace.

use crate::Cpus;
use crate::sample::Reservation;
use serde::{Deserialize, Serialize};

/// Schema of `watch.json`.
pub const SCHEMA: &str = "stillcore.watch/1";
/// Name of the file in the run.
pub const FILE: &str = "watch.json";

/// The watched program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchRecord {
    /// [`SCHEMA`].
    pub schema: String,
    /// The request, in words.
    pub asked: String,
    /// Architecture, whose system call numbers the trace holds.
    pub arch: String,
    /// Threads that were there before recording began or were seen meanwhile; those that only the
    /// trace shows are not among them.
    pub tasks: Vec<WatchedTask>,
    /// What descriptors stood for, as last seen.
    pub descriptors: Vec<Descriptor>,
    /// Processes that use the GNU C library, whose locks have a known layout.
    #[serde(default)]
    pub glibc: Vec<i32>,
    /// What stood at the addresses of futexes that threads waited for when recording ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lock_words: Vec<LockWords>,
    /// What is set for its threads, where that was looked at (`--lint`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lint: Option<LintFacts>,
    /// The program that was started for it.
    pub command: Option<CommandRecord>,
}

impl WatchRecord {
    /// Of these threads on this machine, of which nothing else was looked at.
    pub fn of(asked: String, tasks: Vec<WatchedTask>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            asked,
            arch: std::env::consts::ARCH.to_owned(),
            tasks,
            descriptors: Vec::new(),
            glibc: Vec::new(),
            lock_words: Vec::new(),
            lint: None,
            command: None,
        }
    }

    /// What a descriptor of a process stood for, as last seen.
    pub fn target(&self, tgid: Option<&i32>, fd: u64) -> Option<&str> {
        let same = |one: &&Descriptor| Some(&one.tgid) == tgid && one.fd == fd;
        self.descriptors.iter().find(same).map(|one| one.target.as_str())
    }
}

/// A thread of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedTask {
    /// Thread id: what the trace calls its pid.
    pub tid: i32,
    /// Process id.
    pub tgid: i32,
    /// Name.
    pub comm: String,
    /// Scheduling policy and priority, as last seen.
    pub policy: String,
    /// Its reservation under `SCHED_DEADLINE`, as last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// Whether it was there before recording began.
    pub before: bool,
    /// The system call it was in before recording began.
    pub syscall: Option<InCall>,
}

/// What is set for the threads of a program, as last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LintFacts {
    /// CPUs that are isolated from the scheduler's balancing.
    pub isolated: Cpus,
    /// The threads.
    pub tasks: Vec<TaskSettings>,
    /// Threads of the kernel.
    #[serde(default)]
    pub kernel_threads: Vec<KernelThreadName>,
}

/// A thread of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelThreadName {
    /// Which.
    pub tid: i32,
    /// Its name.
    pub comm: String,
}

/// What is set for a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSettings {
    /// Which.
    pub tid: i32,
    /// CPUs that it may use.
    pub allowed: Cpus,
    /// Whether its time without sleeping is limited (`RLIMIT_RTTIME`).
    pub has_rttime: bool,
    /// Memory that its process has locked (`VmLck` of proc_pid_status(5)), KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_kib: Option<u64>,
}

/// The memory of a futex that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWords {
    /// The thread that waits.
    pub tid: i32,
    /// The address.
    pub word: u64,
    /// Five words from there on.
    pub words: [u32; 5],
}

/// A system call that a thread is in. Stored as an array of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "[u64; 2]")]
pub struct InCall {
    /// Its number.
    pub number: u64,
    /// Its first argument.
    pub argument: u64,
}

impl From<InCall> for [u64; 2] {
    fn from(call: InCall) -> Self {
        [call.number, call.argument]
    }
}

/// What a descriptor stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Process.
    pub tgid: i32,
    /// Its number there.
    pub fd: u64,
    /// Path, or what the kernel calls it: `pipe:[123]`, `anon_inode:[eventfd]`.
    pub target: String,
}

/// A command that was started to be watched, and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// The words of it.
    pub words: Vec<String>,
    /// Process id.
    pub pid: i32,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether stillcore ended it.
    pub ended: bool,
}
