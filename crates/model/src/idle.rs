//! Idle states of CPUs, as their driver describes them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The event that tells of a CPU that it goes to sleep, and of that it is awake again.
pub const EVENT: &str = "power:cpu_idle";

/// The idle states of each CPU. A state's place in its list is the number by which events name it.
pub type IdleStates = BTreeMap<u32, Vec<IdleState>>;

/// One of them (Linux Documentation/admin-guide/pm/cpuidle.rst).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    /// Its name, such as `C6`.
    pub name: String,
    /// How long it takes to leave at most, by the driver, us.
    pub exit_latency_us: u64,
}
