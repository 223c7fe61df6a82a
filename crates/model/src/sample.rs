//! One measured sample, and what its file says about all of them.

use serde::{Deserialize, Serialize};

/// One row of `samples/<probe>-cpu<N>-<k>.parquet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// CLOCK_MONOTONIC, ns: the intended release of a wake-up, or the start of a noise gap.
    pub t_ns: i64,
    /// ns: wake-up latency from the intended release (negative: woken early), or length of a noise gap.
    pub value_ns: i64,
    /// Position in its file, from 0, gaps included: a lost sample leaves a hole.
    pub seq: u64,
    /// Releases that passed unserved just before this one.
    pub missed: u32,
    /// Bits of [`flag`].
    pub flags: u32,
}

/// The bits of [`Sample::flags`].
pub mod flag {
    /// The first sample of a probe: cold caches.
    pub const FIRST: u32 = 1;
    /// Taken while the probe warms up; stored, but no figure counts it.
    pub const WARM_UP: u32 = 2;
    /// The clock stepped between the last sample and this one.
    pub const CLOCK_STEP: u32 = 4;
    /// The ring was full just before this sample: samples are missing here.
    pub const RING_GAP: u32 = 8;
    /// The flags whose samples stay out of every figure.
    pub const NOT_COUNTED: u32 = FIRST | WARM_UP | CLOCK_STEP;
}

impl Sample {
    /// Whether figures count this sample.
    pub fn counts(&self) -> bool {
        self.flags & flag::NOT_COUNTED == 0
    }
}

/// The probes of stillcore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// A periodic task that sleeps until its release: wake-up latency.
    Wakeup,
    /// A busy loop that looks for time stolen from it.
    Noise,
}

impl ProbeKind {
    /// The name used in files and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wakeup => "wakeup",
            Self::Noise => "noise",
        }
    }
}

/// A scheduling policy with its priority: what was asked for, or what the kernel reports back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// `SCHED_FIFO`, `SCHED_OTHER`, …
    pub name: String,
    /// Real-time priority, 0 where the policy has none.
    pub priority: u32,
}

/// What the metadata of a samples file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleMeta {
    /// The probe that took the samples.
    pub probe: ProbeKind,
    /// The CPU it was pinned to.
    pub cpu: u32,
    /// The phase of the run.
    pub phase: String,
    /// Unit of `value_ns`: always `ns`.
    pub unit: String,
    /// Clock of `t_ns`: `CLOCK_MONOTONIC`.
    pub clock: String,
    /// What the values were read from: `CLOCK_MONOTONIC`, `tsc`, `cntvct`.
    pub counter: String,
    /// The policy asked for.
    pub policy_asked: Policy,
    /// The policy the kernel reported back for the measuring thread.
    pub policy_effective: Policy,
    /// Period of the releases, for wake-up probes.
    pub period_ns: Option<u64>,
    /// Shortest gap that is stored, for noise probes.
    pub threshold_ns: Option<u64>,
}
