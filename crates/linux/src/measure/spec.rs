//! What a probe is asked to do, and what it says of itself afterwards: the two messages between stillcore and a measuring process.

use crate::sys::counter::Counter;
use model::sample::{Policy, ProbeKind};
use serde::{Deserialize, Serialize};

/// The order for one probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSpec {
    /// Which probe.
    pub kind: ProbeKind,
    /// The CPU to pin it to.
    pub cpu: u32,
    /// SCHED_FIFO priority; 0 asks for SCHED_OTHER.
    pub priority: u32,
    /// Length of the measurement, ns.
    pub duration_ns: i64,
    /// Wake-up: distance of releases, ns.
    pub period_ns: i64,
    /// Wake-up: samples at the start that no figure counts.
    pub warm_up: u32,
    /// Noise: shortest gap stored, ns; 0 lets the probe choose (five turns of its loop, at least 500 ns).
    pub threshold_ns: u64,
    /// Noise: how long the loop runs at a stretch, ns.
    pub spin_ns: i64,
    /// Noise: how long it pauses between, ns.
    pub pause_ns: i64,
}

/// What a probe says when its window is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Clock or counter of the values.
    pub counter: Counter,
    /// Policy asked for.
    pub policy_asked: Policy,
    /// Policy the kernel reports.
    pub policy_effective: Policy,
    /// Why the policy asked for was refused.
    pub policy_refused: Option<String>,
    /// Why memory could not be locked.
    pub memory_unlocked: Option<String>,
    /// First release, or start of the first stretch, ns.
    pub t0_ns: i64,
    /// End of the measurement, ns.
    pub t1_ns: i64,
    /// Releases asked for (wake-up).
    pub released: u64,
    /// Turns of the loop (noise).
    pub iterations: u64,
    /// Shortest gap stored, in ns (noise).
    pub threshold_ns: u64,
    /// Page faults in the window: minor, major.
    pub faults: [u64; 2],
    /// Context switches in the window: voluntary, involuntary.
    pub switches: [u64; 2],
    /// CPU time of the thread in the window, ns.
    pub cpu_time_ns: u64,
    /// Peak resident memory, KiB.
    pub rss_kib: u64,
}

/// What a measuring loop says to the skeleton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoopResult {
    /// End of the measurement, ns.
    pub t1_ns: i64,
    /// Releases asked for (wake-up).
    pub released: u64,
    /// Turns of the loop (noise).
    pub iterations: u64,
}
