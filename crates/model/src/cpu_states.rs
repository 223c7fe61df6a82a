//! Idle states and frequency changes of CPUs, as their drivers describe them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The idle states of each CPU, by the number that events give them.
pub type IdleStates = BTreeMap<u32, BTreeMap<u32, IdleState>>;

/// One of them (Linux Documentation/admin-guide/pm/cpuidle.rst).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    /// Its name, such as `C6`.
    pub name: String,
    /// How long it takes to leave at most, by the driver, us.
    pub exit_latency_us: u64,
}

/// How long a change takes at most, by the driver, ns, by CPU; CPUs without a value are missing
/// (Linux Documentation/admin-guide/pm/cpufreq.rst, `cpuinfo_transition_latency`).
pub type FrequencyChanges = BTreeMap<u32, u64>;
