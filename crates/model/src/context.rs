//! What was going on around a sample that reached a threshold: the samples beside it, and what the
//! kernel counted meanwhile.
//!
//! On disk: `contexts/<probe>-cpu<N>-<k>.json`, one file a probe that had any.

use crate::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema of a file of contexts.
pub const SCHEMA: &str = "stillcore.contexts/1";

/// The contexts of one probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contexts {
    /// [`SCHEMA`].
    pub schema: String,
    /// Threshold: the context of a sample of at least this value is kept, ns.
    pub threshold_ns: i64,
    /// Samples that reached it.
    pub over: u64,
    /// Of these, samples whose context was not kept.
    pub not_kept: u64,
    /// Those kept, by time.
    pub contexts: Vec<Context>,
}

/// Why a context was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// One of the first.
    First,
    /// One of the largest behind those.
    Worst,
}

/// One sample that reached the threshold, and what was around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// Why it was kept.
    pub kept: Kept,
    /// The sample.
    pub sample: Sample,
    /// The samples before it, oldest first.
    pub before: Vec<Sample>,
    /// The samples behind it.
    pub after: Vec<Sample>,
    /// What the kernel counted around it; none where no reading of before was at hand any more.
    pub counted: Option<Counted>,
}

/// Growth of the kernel's counters between the two readings around a sample. All rows are of the
/// CPUs where the probe might run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counted {
    /// First reading, CLOCK_MONOTONIC ns.
    pub t0_ns: i64,
    /// Second reading, CLOCK_MONOTONIC ns.
    pub t1_ns: i64,
    /// `/proc/interrupts`: row → CPU → count, rows that grew.
    pub interrupts: BTreeMap<String, BTreeMap<u32, u64>>,
    /// `/proc/softirqs`, the same.
    pub softirqs: BTreeMap<String, BTreeMap<u32, u64>>,
    /// Time that the hypervisor took, ns by CPU.
    pub steal_ns: BTreeMap<u32, u64>,
    /// ns that the measuring thread waited for its CPU though it could have run.
    pub run_delay_ns: Option<u64>,
    /// Times that it got a CPU.
    pub arrivals: Option<u64>,
}
