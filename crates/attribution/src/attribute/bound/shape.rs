//! A bound as stored.

use crate::attribute::delay::Blocking;
use crate::attribute::step::Step;
use serde::{Deserialize, Serialize};

/// How late a wake-up of one window could have come ([`super`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeBound {
    /// The bound, ns; absent where there is none.
    pub ns: Option<u64>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
    /// The largest latency that was seen, ns.
    pub seen_ns: u64,
    /// Its release, CLOCK_MONOTONIC, ns.
    pub seen_t_ns: i64,
    /// The longest of each step, in their order.
    pub steps: Vec<BoundStep>,
    /// The longest stretches with interrupts or preemption off; none on kernels that do not record
    /// them.
    pub stretches: Vec<BoundStretch>,
    /// The most interference that met in `within_ns`, ns.
    pub interference_ns: u64,
    /// The length of the stretches that were looked at for it, ns; not below the bound.
    pub within_ns: u64,
    /// What this recording shows only where it delayed a wake-up.
    pub not_recorded: Vec<Blocking>,
}

/// The longest of a step, without interference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundStep {
    /// The step.
    pub step: Step,
    /// How long, ns.
    pub ns: u64,
    /// The release of the wake-up that had it, CLOCK_MONOTONIC, ns.
    pub t_ns: i64,
}

/// The longest stretch with interrupts or preemption off, whether a wake-up waited or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundStretch {
    /// What was off.
    pub blocking: Blocking,
    /// How long, without the interference in it, ns.
    pub ns: u64,
    /// When it began, CLOCK_MONOTONIC, ns.
    pub t_ns: i64,
    /// Who switched it off.
    pub label: Option<String>,
}

impl WakeBound {
    /// Withdraws it.
    pub fn withhold(&mut self, why: &str) {
        self.ns = None;
        self.withheld.get_or_insert_with(|| why.to_owned());
    }
}
