//! What a probe is asked to do, and what it says of itself afterwards: the two messages between stillcore and a measuring process.

use crate::sys::clock::ClockId;
use crate::sys::counter::Counter;
use model::Cpus;
use model::sample::{Policy, ProbeKind};
use serde::{Deserialize, Serialize};

/// The order for one measuring thread, which is a process of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSpec {
    /// Its number in the window, from 0.
    pub thread: u32,
    /// Where it may run: one CPU, or a set that the scheduler chooses from.
    pub cpus: Cpus,
    /// The policy to ask for.
    pub policy: Policy,
    /// Timer slack of a policy that is not real-time, ns; 0 leaves it as it is (50 µs by default).
    pub timer_slack_ns: u64,
    /// Length of the measurement, ns.
    pub duration_ns: i64,
    /// What to do.
    pub task: Task,
}

/// What a measuring thread does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Sleep until the next release, look at the clock.
    Wakeup(WakeupSpec),
    /// Spin and look for gaps.
    Noise(NoiseSpec),
}

/// The wake-up probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupSpec {
    /// Distance of releases, ns.
    pub period_ns: i64,
    /// First release after the window's start, ns.
    pub offset_ns: i64,
    /// Samples at the start that no figure counts.
    pub warm_up: u32,
    /// The clock that releases are set in.
    pub clock: ClockId,
    /// Ends after so many releases; 0 for as many as the duration holds.
    pub loops: u64,
}

/// The noise probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseSpec {
    /// Shortest gap stored, ns; 0 lets the probe choose (five turns of its loop, at least 500 ns).
    pub threshold_ns: u64,
    /// How long the loop runs at a stretch, ns.
    pub spin_ns: i64,
    /// How long it pauses between, ns.
    pub pause_ns: i64,
    /// Bytes copied each turn, as oslat's `memmove` workload does; 0 for none.
    pub memmove_bytes: u64,
}

impl ProbeSpec {
    /// Which probe.
    pub fn kind(&self) -> ProbeKind {
        match self.task {
            Task::Wakeup(_) => ProbeKind::Wakeup,
            Task::Noise(_) => ProbeKind::Noise,
        }
    }

    /// The CPU it is pinned to, or the first of those it may run on.
    pub fn cpu(&self) -> u32 {
        self.cpus.iter().next().unwrap_or(0)
    }
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
    /// Policy the kernel reports.
    pub policy_effective: Policy,
    /// Why the policy asked for was refused.
    pub policy_refused: Option<String>,
    /// Timer slack in force, ns.
    pub timer_slack_ns: u64,
    /// Why memory could not be locked.
    pub memory_unlocked: Option<String>,
    /// First release, or start of the first stretch, ns.
    pub t0_ns: i64,
    /// Shortest gap stored, in ns (noise).
    pub threshold_ns: u64,
    /// What the loop said at its end.
    pub result: LoopResult,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoopResult {
    /// End of the measurement, ns.
    pub t1_ns: i64,
    /// Releases asked for (wake-up).
    pub released: u64,
    /// Turns of the loop (noise).
    pub iterations: u64,
}
