//! What a monitor has seen, some minutes a line: its history, a file a day.

use crate::Cpus;
use crate::monitor::{BOUNDS_NS, FateCount, InterferenceStatus, OffenceSum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema of a line.
pub const SCHEMA: &str = "stillcore.monitor-interval/1";

/// Some minutes. Sums are of these alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// [`SCHEMA`].
    pub schema: String,
    /// When it ended, RFC 3339, UTC.
    pub at: String,
    /// How long it was, ns.
    pub watched_ns: u64,
    /// The machine's name.
    pub host: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Version of the program.
    pub version: String,
    /// The CPUs.
    pub cpus: Cpus,
    /// Which threads were watched, in words.
    pub threads_watched: String,
    /// A wake-up that takes longer is a breach, ns.
    pub limit_ns: u64,
    /// Wake-ups, by name and CPU; only those that there were.
    pub threads: Vec<ThreadInterval>,
    /// Interference that there was.
    pub interference: Vec<InterferenceStatus>,
    /// What other CPUs' tasks asked for that ran on the watched ones, by class; absent where the
    /// kernel does not show all that ask, and of versions that did not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offences: Option<Vec<OffenceSum>>,
    /// Breaches that ended.
    pub breaches: Vec<FateCount>,
    /// Events that were recorded, and those that were lost.
    pub events: u64,
    /// As above.
    pub lost_events: u64,
    /// Wake-ups that could not be judged.
    pub unjudged: u64,
    /// Time that a hypervisor took from each CPU, ns; as the list of CPUs.
    pub steal_ns: Vec<u64>,
    /// How often heat slowed each CPU; as the list of CPUs, absent where the kernel does not count
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Vec<u64>>,
    /// CPU time of the monitor and its children, ns.
    pub cpu_ns: u64,
}

/// Wake-ups of the threads of one name on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadInterval {
    /// The name; `other` for all that have no row of their own.
    pub comm: String,
    /// The CPU.
    pub cpu: u32,
    /// Latencies up to each of [`BOUNDS_NS`] and above the one before; the last count is of those
    /// above all.
    pub counts: [u64; BOUNDS_NS.len() + 1],
    /// All latencies together, ns.
    pub sum_ns: u64,
}

/// Schema of [`Packages`].
pub const PACKAGES: &str = "stillcore.monitor-packages/1";

/// The packages of a machine on a day, beside its history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packages {
    /// [`PACKAGES`].
    pub schema: String,
    /// When they were listed, RFC 3339, UTC.
    pub at: String,
    /// The machine's name.
    pub host: String,
    /// Versions by name.
    pub packages: BTreeMap<String, String>,
}
