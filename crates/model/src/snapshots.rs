//! Snapshots of a trace: the kernel's events around the largest samples of a measurement that is
//! too long to record as a whole.
//!
//! Recording runs in a ring that overwrites its oldest events, and pauses when a sample reaches the
//! limit: what the ring holds around the sample is kept, and recording resumes. Every sample that
//! reached the limit is in exactly one of the counts here, and so is every nanosecond of the
//! window: recorded or paused.

use crate::usage::Stretch;
use serde::{Deserialize, Serialize};

/// How a trace was cut down to snapshots, and what became of every sample that reached the limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SnapshotsRecord {
    /// Threshold: a sample of at least this value causes a snapshot, ns.
    pub over_ns: i64,
    /// How much is kept before a sample, ns.
    pub before_ns: i64,
    /// How much is kept behind a sample, ns, if recording was not stopped earlier.
    pub after_ns: i64,
    /// The most snapshots that are kept: those of the largest samples.
    pub keep: u64,
    /// Samples that reached the limit; the sum of the four counts of samples that follow and of the
    /// kept snapshots' samples.
    pub over: u64,
    /// Samples in snapshots that were given up for those of larger samples.
    pub given_up: u64,
    /// Samples for which no snapshot was taken, because all kept ones were of larger samples.
    pub smaller: u64,
    /// Samples without a snapshot, because part of their time lies in the pause of another one, or
    /// because the ring no longer held any of it.
    pub unrecorded: u64,
    /// Snapshots taken, kept or not.
    pub taken: u64,
    /// Time of the window with recording on, ns, whether it was kept or overwritten.
    pub recorded_ns: u64,
    /// Time of the window with recording off while snapshots were written, ns.
    pub paused_ns: u64,
    /// The kept ones, by time.
    pub kept: Vec<SnapshotRecord>,
}

/// One stretch of time of which every event is in the trace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SnapshotRecord {
    /// From when on the trace holds everything, CLOCK_MONOTONIC, ns.
    pub t0_ns: i64,
    /// Until when.
    pub t1_ns: i64,
    /// While it was written nothing was recorded.
    pub pause: Stretch,
    /// Samples that reached the limit and lie in it.
    pub samples_over: u64,
    /// The largest of these, largest first; at most 20.
    pub samples: Vec<SnapshotSample>,
}

/// A sample that a snapshot was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotSample {
    /// The CPU of its probe, or the first of those where it might run.
    pub cpu: u32,
    /// Number of its probe in the window.
    pub thread: u32,
    /// Its time, as in the samples file.
    pub t_ns: i64,
    /// Its value.
    pub value_ns: i64,
    /// Whether the trace holds all of its time; else the ring did not reach back to its beginning.
    pub whole: bool,
}
