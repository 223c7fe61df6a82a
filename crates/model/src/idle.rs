//! Idle states of CPUs, as their driver describes them.

use crate::run::Run;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The event that tells of a CPU that it goes to sleep, and of that it is awake again.
pub const EVENT: &str = "power:cpu_idle";

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

/// What is known of how long the measured CPUs of a run took to leave their idle states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleExits {
    /// Nothing: the kernel has no driver of them, or nobody has asked it.
    Unknown,
    /// States that take time were held off.
    HeldOff,
    /// What the driver says.
    Known,
}

impl IdleExits {
    /// Those of a run.
    pub fn of(run: &Run) -> Self {
        match run.dma_latency_us {
            _ if run.idle_states.is_empty() => Self::Unknown,
            Some(0) => Self::HeldOff,
            _ => Self::Known,
        }
    }
}
