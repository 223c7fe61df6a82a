//! What a disturbance did: the record that every stressor leaves in the run.

use crate::Cpus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One stressor's account of itself, with a witness that does not come from its own loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StressorRecord {
    /// Name, such as `u_fork`.
    pub name: String,
    /// CPUs it was confined to.
    pub cpus: Cpus,
    /// Operations that were due until the last one, by the rate asked for; none where it was to go
    /// as fast as it can.
    #[serde(default)]
    pub ops_asked: Option<u64>,
    /// Operations that succeeded.
    pub ops_ok: u64,
    /// Operations that failed, by errno name.
    pub ops_failed: BTreeMap<String, u64>,
    /// Of those that succeeded, how many were of which part, where a stressor has parts
    /// (`direct_io`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, u64>,
    /// CLOCK_MONOTONIC, ns: first operation.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC, ns: last operation.
    pub t1_ns: i64,
    /// An independent count of the same work.
    pub witness: Witness,
    /// Whether the disturbance happened.
    pub state: StressorState,
    /// Why, where the state is not `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it was confined: `cgroup`, `affinity`, `network namespace`, …
    #[serde(default)]
    pub confined_by: Vec<String>,
    /// Operations over time: one entry a second, of long runs one every two, four, … seconds. Empty
    /// where the stressor does not report before its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<Rate>,
    /// Seconds in which nothing succeeded although it was to do two operations or more a second.
    #[serde(default)]
    pub stalls: u64,
}

/// Operations since the entry before. Stored as an array of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "[i64; 2]")]
pub struct Rate {
    /// CLOCK_MONOTONIC, ns.
    pub t_ns: i64,
    /// Those that succeeded.
    pub operations: i64,
}

impl From<Rate> for [i64; 2] {
    fn from(rate: Rate) -> Self {
        [rate.t_ns, rate.operations]
    }
}

/// A kernel counter that must agree with a stressor's own count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// What was read, such as `/proc/stat processes`.
    pub name: String,
    /// The least the counter must have grown by if the operations were real.
    pub expected: u64,
    /// What it grew by.
    pub seen: u64,
}

impl StressorRecord {
    /// Whether what it did is less than half of what was asked for.
    pub fn is_below_half(asked: Option<u64>, done: u64) -> bool {
        asked.is_some_and(|asked| done < asked.div_ceil(2))
    }
}

impl StressorState {
    /// Its name in tables and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Weak => "weak",
            Self::Void => "void",
            Self::Stuck => "stuck",
            Self::Absent => "absent",
        }
    }

    /// Whether the disturbance happened, be it weak.
    pub fn happened(self) -> bool {
        matches!(self, Self::Ok | Self::Weak)
    }
}

/// The verdict on a stressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StressorState {
    /// It did what its name says, and the witness agrees.
    Ok,
    /// The same, but less than half as much as was asked for.
    Weak,
    /// It did nothing, too little, or the witness disagrees.
    Void,
    /// It did not end on request and was killed.
    Stuck,
    /// This kernel or machine lacks what it needs, and it was never run.
    Absent,
}
