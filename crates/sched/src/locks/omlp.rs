//! The clustered OMLP with clusters of one core: waiters suspend, requests are served in order of
//! arrival (mutex) or readers and writers in turn (reader-writer semaphore), and priority donation
//! keeps every core at one request at a time.
//!
//! Brandenburg and Anderson, "The OMLP family of optimal multiprocessor real-time locking
//! protocols", Design Automation for Embedded Systems 17, 2013; the reader-writer variant is that
//! of "Real-time resource-sharing under clustered scheduling: mutex, reader-writer, and k-exclusion
//! locks", EMSOFT 2011. Oracle: SchedCAT's `clustered_omlp_bounds` and `clustered_rw_omlp_bounds`
//! for clusters of one core, to the unit; and the adversary of the tests, which executes the rules.
//!
//! The rules on one core: a job requests only while it is the most urgent pending job of its core,
//! jobs that wait included; who executes below a waiting job and requests, waits until it is. A
//! job that is released above one with an incomplete request donates its priority, and is suspended
//! until that request is complete. So a core has one incomplete request, its holder is never
//! preempted, and a request waits for one request of each other core: as long as one that spins
//! without preemption. The bounds are therefore those of spin locks (`task_fair`, `phase_fair`).
//!
//! How it is charged: while jobs at or above a level are pending, the most urgent of them executes
//! (its cost), or waits for another core (its wait), or donates: to a job at or above the level
//! (whose cost and wait these are), or to one below. The last can only have requested before any of
//! them was pending, so it happens once, for the longest wait and section below. Waits inflate
//! costs, and donation is blocking on arrival. SchedCAT charges donation as cost of each job, which
//! is more.

use super::{Blocking, Sharing, phase_fair, task_fair};

/// Mutual exclusion.
pub(super) fn mutex(sharing: &Sharing, responses: &[u64]) -> Blocking {
    task_fair::mutex(sharing, responses)
}

/// Readers and writers in turn.
pub(super) fn reader_writer(sharing: &Sharing, responses: &[u64]) -> Blocking {
    phase_fair::blocking(sharing, responses)
}
