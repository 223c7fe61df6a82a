//! Jobs and their stretches.

use sched::Access;

/// A stretch of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stretch {
    /// Execution.
    Runs,
    /// Execution without preemption.
    Alone,
    /// Waiting for something else than the processor.
    Suspends,
    /// A critical section, after waiting for its resource.
    Holds(u32, Access),
}

/// One job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    /// From here its response counts, ns.
    pub(crate) arrival: u64,
    /// From here it may run, ns.
    pub(crate) ready: u64,
    /// Its deadline, ns, by which EDF orders.
    pub(crate) due: u64,
    /// Who goes first among jobs due at once.
    pub(crate) tie: u64,
    /// What it does, each for so many ns, at least 1.
    pub(crate) stretches: Vec<(Stretch, u64)>,
}
