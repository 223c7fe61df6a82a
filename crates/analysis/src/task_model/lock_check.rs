//! The waits of jobs for locks, held against what their bounds count for them.
//!
//! A job is blocked while it waits for a lock and its CPU has neither interrupts nor a thread at
//! least as urgent. Its bound counts sections of others, and how late the kernel hands the CPU
//! over.

use super::lock_shape::ThreadLocks;
use super::shape::TaskModel;
use super::verdict::Guarantee;
use serde::{Deserialize, Serialize};

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWaits {
    /// The thread.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// Its jobs, and those of them that waited.
    pub jobs: u64,
    /// The same: that waited.
    pub waiting: u64,
    /// The longest that a job waited for locks, ns.
    pub waited_ns: u64,
    /// The longest that a job was blocked meanwhile, ns.
    pub blocked_ns: u64,
    /// How long its bound counts a job as blocked; `None` where it has none.
    pub bound_ns: Option<u64>,
    /// Jobs that were blocked longer: of these at most those that the model keeps are counted.
    pub refuted: u64,
}

/// Compares the jobs of a model with the bounds of this or an earlier one. Threads are found by
/// number where that has the name, else by name.
pub fn check(jobs: &TaskModel, guarantee: &Guarantee) -> Vec<LockWaits> {
    let waits = jobs.locks.threads.iter().filter(|one| jobs.locks.every && one.lockings > 0);
    let row = |one: &ThreadLocks| {
        let thread = jobs.threads.iter().find(|thread| thread.pid == one.pid)?;
        let named: Vec<_> = guarantee.bounds.iter().filter(|bound| bound.comm == thread.comm).collect();
        let same = named.iter().find(|bound| bound.pid == thread.pid);
        let only = if let [only] = named.as_slice() { Some(only) } else { None };
        let bound_ns = same.or(only).filter(|bound| bound.bound_ns.is_some()).map(|bound| bound.blocking_ns);
        let beyond =
            one.longest.iter().filter(|job| bound_ns.is_some_and(|bound_ns| job.blocked_ns > bound_ns));
        Some(LockWaits {
            pid: one.pid,
            comm: thread.comm.clone(),
            jobs: one.jobs,
            waiting: one.waiting,
            waited_ns: one.waited_ns,
            blocked_ns: one.longest.iter().map(|job| job.blocked_ns).max().unwrap_or(0),
            bound_ns,
            refuted: beyond.count() as u64,
        })
    };
    waits.filter_map(row).collect()
}
