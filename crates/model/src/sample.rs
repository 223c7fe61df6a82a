//! One measured sample, and what its file says about all of them.

pub use crate::probe::ProbeKind;
use serde::{Deserialize, Serialize};

/// One row of `samples/<probe>-cpu<N>-<k>.parquet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// CLOCK_MONOTONIC, ns: the intended release of a wake-up, or the start of a noise gap.
    pub t_ns: i64,
    /// ns: wake-up latency from the intended release (negative: woken early), or length of a noise
    /// gap.
    pub value_ns: i64,
    /// Position in its file, from 0, gaps included: a lost sample leaves a hole.
    pub seq: u64,
    /// Releases that passed unserved just before this one.
    pub missed: u32,
    /// Bits of [`flag`].
    pub flags: u32,
}

/// A column of the probe's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnColumn {
    /// Its name.
    pub name: String,
    /// One value a row.
    pub values: Vec<i64>,
}

/// The bits of [`Sample::flags`].
pub mod flag {
    /// The first sample of a probe: cold caches.
    pub const FIRST: u32 = 1;
    /// Taken while the probe warms up; stored, but statistics exclude it.
    pub const WARM_UP: u32 = 2;
    /// The clock stepped between the last sample and this one.
    pub const CLOCK_STEP: u32 = 4;
    /// The ring was full just before this sample: samples are missing here.
    pub const RING_GAP: u32 = 8;
    /// Taken after the kernel may have taken the CPU from the probe: it ran somewhere else.
    pub const CPU_TAKEN: u32 = 16;
    /// The flags whose samples statistics exclude.
    pub const NOT_COUNTED: u32 = FIRST | WARM_UP | CLOCK_STEP | CPU_TAKEN;
}

impl Sample {
    /// Whether statistics include this sample.
    pub fn counts(&self) -> bool {
        self.flags & flag::NOT_COUNTED == 0
    }
}

/// How policies of LITMUS^RT begin; the plug-in follows.
const LITMUS: &str = "SCHED_LITMUS";
/// How policies of Cobalt begin; the core's own policy follows.
const COBALT: &str = "Cobalt";

/// A scheduling policy with its priority: the requested one, or what the kernel reports back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// `SCHED_FIFO`, `SCHED_OTHER`, …
    pub name: String,
    /// Real-time priority, 0 where the policy has none.
    pub priority: u32,
    /// What SCHED_DEADLINE reserves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
}

/// The parameters of SCHED_DEADLINE, ns: a job may use `runtime` of CPU time before its `deadline`,
/// once a `period`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// CPU time a period.
    pub runtime_ns: u64,
    /// Relative deadline.
    pub deadline_ns: u64,
    /// Period.
    pub period_ns: u64,
}

impl Policy {
    /// SCHED_OTHER.
    pub fn other() -> Self {
        Self { name: "SCHED_OTHER".to_owned(), priority: 0, reservation: None }
    }

    /// SCHED_FIFO at a priority of 1 to 99; 0 gives SCHED_OTHER.
    pub fn fifo(priority: u32) -> Self {
        match priority {
            0 => Self::other(),
            _ => Self { name: "SCHED_FIFO".to_owned(), priority, reservation: None },
        }
    }

    /// SCHED_RR at a priority of 1 to 99.
    pub fn round_robin(priority: u32) -> Self {
        Self { name: "SCHED_RR".to_owned(), priority, reservation: None }
    }

    /// SCHED_DEADLINE.
    pub fn deadline(reservation: Reservation) -> Self {
        Self { name: "SCHED_DEADLINE".to_owned(), priority: 0, reservation: Some(reservation) }
    }

    /// SCHED_LITMUS under a plug-in of LITMUS^RT; the priority is one of 1 to 99, as of POSIX.
    pub fn litmus(plugin: &str, priority: u32, reservation: Reservation) -> Self {
        Self { name: format!("{LITMUS} {plugin}"), priority, reservation: Some(reservation) }
    }

    /// The plug-in of LITMUS^RT, where it is a policy of it.
    pub fn litmus_plugin(&self) -> Option<&str> {
        self.name.strip_prefix(LITMUS)?.strip_prefix(' ')
    }

    /// A policy of Cobalt, such as SCHED_FIFO, at a priority.
    pub fn cobalt(name: &str, priority: u32) -> Self {
        Self { name: format!("{COBALT} {name}"), priority, reservation: None }
    }

    /// Whether it is a policy of Cobalt.
    pub fn is_cobalt(&self) -> bool {
        self.name.strip_prefix(COBALT).is_some_and(|rest| rest.starts_with(' '))
    }

    /// Whether the kernel itself begins its jobs, period by period.
    pub fn is_deadline(&self) -> bool {
        self.name == "SCHED_DEADLINE"
    }

    /// Whether it preempts every SCHED_OTHER task.
    pub fn is_real_time(&self) -> bool {
        matches!(self.name.as_str(), "SCHED_FIFO" | "SCHED_RR" | "SCHED_DEADLINE")
            || self.litmus_plugin().is_some()
            || self.is_cobalt()
    }
}

/// What the metadata of a samples file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleMeta {
    /// The probe that took the samples.
    pub probe: ProbeKind,
    /// The CPU it was pinned to, or the first of those it might run on.
    pub cpu: u32,
    /// Number of the measuring thread in its window.
    #[serde(default)]
    pub thread: u32,
    /// The phase of the run.
    pub phase: String,
    /// Unit of `value_ns`: always `ns`.
    pub unit: String,
    /// Clock of the releases, by default `CLOCK_MONOTONIC`. `t_ns` is CLOCK_MONOTONIC always.
    pub clock: String,
    /// What the values were read from: `CLOCK_MONOTONIC`, `tsc`, `cntvct`.
    pub counter: String,
    /// The requested policy.
    pub policy_asked: Policy,
    /// The policy the kernel reported back for the measuring thread.
    pub policy_effective: Policy,
    /// Period of the releases, for wake-up probes.
    pub period_ns: Option<u64>,
    /// Shortest gap that is stored, for noise probes.
    pub threshold_ns: Option<u64>,
}
