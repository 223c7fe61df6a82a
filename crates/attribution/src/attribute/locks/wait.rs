//! A wait for a lock, as plain data.

use super::shape::{Evidence, LockKind, WaitEnd};
use crate::labels::LabelId;
use crate::prio::Prio;

/// A holder, and its part of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) tid: i32,
    pub(super) t0_ns: i64,
    pub(super) t1_ns: i64,
    pub(super) evidence: Vec<Evidence>,
}

/// Why the owner of a lock is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Its memory was not read, and nobody has released it.
    NotReleased,
    /// Whoever woke the waiter was not releasing a lock: an interrupt, or a thread that is not
    /// watched.
    NotByRelease,
    /// More releases came while it lasted than are remembered.
    Forgotten,
    /// Readers held it.
    Readers,
    /// It is a lock of the kernel whose memory was not read, or showed no owner.
    NotShown,
    /// The lock's memory names one thread, and another one released it first.
    Disagree { memory: i32, released: i32 },
}

/// A wait that has ended, or the recording has.
#[derive(Debug, Clone)]
pub(super) struct LockWait {
    pub(super) tid: i32,
    pub(super) process: Option<i32>,
    pub(super) prio: Prio,
    pub(super) word: u64,
    pub(super) kind: LockKind,
    pub(super) name: Option<LabelId>,
    pub(super) call: Option<&'static str>,
    pub(super) callers: Option<LabelId>,
    pub(super) t0_ns: i64,
    pub(super) t1_ns: i64,
    pub(super) end: WaitEnd,
    pub(super) holders: Vec<Held>,
    pub(super) unknown: Option<Unknown>,
    pub(super) inherited: bool,
}
