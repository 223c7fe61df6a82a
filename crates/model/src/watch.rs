//! `watch.json`: what `trace watch` knows of the watched program besides the trace.

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
    /// The program that was started for it.
    pub command: Option<CommandRecord>,
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
    /// Whether it was there before recording began.
    pub before: bool,
    /// The system call it was in before recording began.
    pub syscall: Option<InCall>,
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
