//! The answer for any trace.

use crate::attribute::section::{BlockingCoverage, Coverage};
use crate::attribute::thread_paths::CpuSources;
use crate::attribute::watch::WatchSection;
use model::Cpus;
use model::groups::{TaskGroup, by_tid};
use serde::Serialize;

/// A trace that anybody recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnyTrace {
    /// The kernel, as the file names it.
    pub kernel: Option<String>,
    /// The clock of its times.
    pub clock: String,
    /// The first wanted event, ns of that clock.
    pub t0_ns: i64,
    /// The last one.
    pub t1_ns: i64,
    /// The CPUs that recorded something.
    pub cpus: Cpus,
    /// Events in that time.
    pub events: u64,
    /// Places where events are missing.
    pub holes: u64,
    /// Where the file is damaged or cut off, one sentence each: the answer covers the readable
    /// part.
    pub damage: Vec<String>,
    /// The threads as the scheduler saw them, and their wake-ups taken apart.
    pub threads: WatchSection,
    /// What ran on their CPUs, and its sources.
    pub attribution: Vec<CpuSources>,
    /// What its events show of each class.
    pub coverage: Vec<Coverage>,
    /// What they show of waits in which nothing else ran.
    pub blocking: Vec<BlockingCoverage>,
    /// What to record to know more.
    pub record: Record,
    /// What is missing or not known, one sentence each.
    pub statements: Vec<String>,
}

impl AnyTrace {
    /// Sets the control groups of the tasks that are named.
    pub fn find_groups(&mut self, groups: &[TaskGroup]) {
        let groups = by_tid(groups);
        let rows = self.attribution.iter_mut().flat_map(|one| &mut one.rows);
        rows.filter_map(|row| row.source.as_mut()).for_each(|source| source.find_group(&groups));
        self.threads.paths.iter_mut().for_each(|one| one.path.find_groups(&groups));
    }
}

/// What a recording needs to answer what this one does not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Useful events that are in the trace, `system:name`.
    pub have: Vec<String>,
    /// Events that the trace lacks and this kernel has by its version.
    pub missing: Vec<String>,
    /// Those that only later kernels have, each with the first one that does.
    pub later: Vec<(String, String)>,
}
