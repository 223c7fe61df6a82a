//! What is known of the threads of a program, where its locks are looked for: beside its trace, and
//! at an event of it.

use super::kind::Kind;
use super::program::Program;
use crate::attribute::watch::event::WatchEvent;
use crate::attribute::watch::program::Watch;
use crate::prio::Prio;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the threads beside the trace.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) arch: String,
    /// Thread and process.
    pub(super) processes: BTreeMap<i32, i32>,
    /// Processes that use the GNU C library.
    pub(super) glibc: BTreeSet<i32>,
    /// Priorities, without what is inherited.
    pub(super) prios: BTreeMap<i32, Prio>,
    /// Whether every locking was recorded.
    pub(super) every: bool,
    /// What separates the jobs of a thread.
    pub(super) separators: BTreeMap<i32, Kind>,
}

impl Known {
    /// The process of a thread; of one that was never looked at, that of all others.
    pub(super) fn process(&self, tid: i32) -> Option<i32> {
        let one = self.processes.values().next().copied();
        let only = one.filter(|one| self.processes.values().all(|other| other == one));
        self.processes.get(&tid).copied().or(only)
    }

    pub(super) fn is_as_urgent(&self, tid: i32, as_tid: i32) -> bool {
        let (one, other) = (self.prios.get(&tid), self.prios.get(&as_tid));
        one.zip(other).is_some_and(|(one, other)| one <= other && !one.is_fair())
    }
}

/// An event, and what threads had done before it.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) event: &'a WatchEvent,
    pub(super) program: &'a Program,
    pub(super) watch: &'a Watch,
}

impl At<'_> {
    /// What the thread that runs has executed; `None` where it was not seen to come.
    pub(super) fn executed_ns(&self, tid: i32) -> Option<u64> {
        self.program.executed_ns(self.watch.place(tid)?, self.event.ts_ns)
    }
}
