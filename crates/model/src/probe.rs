//! The probes: one row of a table each, and what the record of each says besides what those of all
//! say.

use crate::clocks::ClocksRecord;
use crate::usage::Stretch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! probes {
    ($($(#[$doc:meta])+ $kind:ident $name:literal $detail:ty,)+) => {
        /// The probes of stillcore.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ProbeKind { $($(#[$doc])+ #[serde(rename = $name)] $kind,)+ }

        impl ProbeKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// The name used in files and on screen.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }

            /// What its record says before anything was measured.
            pub fn detail(self) -> ProbeDetail {
                match self { $(Self::$kind => ProbeDetail::$kind(<$detail>::default()),)+ }
            }
        }

        /// What the record of a probe says besides what those of all say.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "probe")]
        pub enum ProbeDetail { $($(#[$doc])+ #[serde(rename = $name)] $kind($detail),)+ }

        impl ProbeDetail {
            /// Which probe.
            pub fn kind(&self) -> ProbeKind {
                match self { $(Self::$kind(_) => ProbeKind::$kind,)+ }
            }
        }
    };
}

probes! {
    /// A periodic task that sleeps until its release: wake-up latency.
    Wakeup "wakeup" Releases,
    /// A busy loop that looks for time stolen from it.
    Noise "noise" NoiseDetail,
    /// Wake-ups of one core by another.
    Ipi "ipi" IpiDetail,
    /// A periodic job that computes: execution time, response time and counters, a row a job.
    Periodic "periodic" PeriodicDetail,
    /// The jobs of a task set on one core.
    Taskset "taskset" TasksetDetail,
    /// What the kernel's own work costs: timer interrupt, scheduler, context switch, cache.
    Overheads "overheads" Nothing,
    /// The machine's clocks, read against one another.
    Clocks "clocks" ClocksDetail,
    /// The messages that an executor of a graph received.
    Graph "graph" Served,
}

impl ProbeKind {
    /// Whether its samples are releases, each served or missed.
    pub fn has_releases(self) -> bool {
        self.detail().releases().is_some()
    }
}

impl ProbeDetail {
    /// The releases of a probe that has them a period apart.
    pub fn releases(&self) -> Option<&Releases> {
        match self {
            Self::Wakeup(releases) => Some(releases),
            Self::Periodic(detail) => Some(&detail.releases),
            Self::Taskset(detail) => Some(&detail.releases),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn releases_mut(&mut self) -> Option<&mut Releases> {
        match self {
            Self::Wakeup(releases) => Some(releases),
            Self::Periodic(detail) => Some(&mut detail.releases),
            Self::Taskset(detail) => Some(&mut detail.releases),
            _ => None,
        }
    }

    /// How many releases, wake-ups or messages there were; none of a probe that has no such thing.
    pub fn served(&self) -> Served {
        match self {
            Self::Ipi(detail) => detail.served,
            Self::Graph(served) => *served,
            _ => self.releases().map_or_else(Served::default, |releases| releases.served),
        }
    }

    /// The same, to be changed.
    pub fn served_mut(&mut self) -> Option<&mut Served> {
        match self {
            Self::Ipi(detail) => Some(&mut detail.served),
            Self::Graph(served) => Some(served),
            _ => self.releases_mut().map(|releases| &mut releases.served),
        }
    }

    /// Largest error of the time of a sample, ns, where it is not read from CLOCK_MONOTONIC.
    pub fn clock_error_ns(&self) -> Option<u64> {
        match self {
            Self::Noise(detail) => detail.clock_error_ns,
            _ => self.releases()?.clock_error_ns,
        }
    }
}

/// Releases, wake-ups or messages, each served, missed or lost to a full ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Served {
    /// Requested over the window: samples + missed + lost.
    pub released: u64,
    /// Those that passed unserved.
    pub missed: u64,
}

/// Releases a period apart: all that the record of the wake-up probe says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Releases {
    /// Their period, ns.
    pub period_ns: u64,
    /// What became of them.
    #[serde(flatten)]
    pub served: Served,
    /// So many at the start are the warm-up, those that passed unserved among them. None of a run
    /// of older versions, which counted samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<u64>,
    /// The clock that they were set in, if another than CLOCK_MONOTONIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_clock: Option<String>,
    /// How far they may be off at most, ns, where SCHED_DEADLINE set them and they could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_ns: Option<u64>,
}

impl Releases {
    /// When the first release behind the warm-up was due, where `first_ns` is the first of all;
    /// half a period earlier, since SCHED_DEADLINE's are known about.
    pub fn behind_warm_up_ns(&self, first_ns: i64) -> i64 {
        let Some(warm_up) = self.warm_up.filter(|releases| *releases > 0) else { return i64::MIN };
        let period = i64::try_from(self.period_ns).unwrap_or(i64::MAX);
        let length = period.saturating_mul(i64::try_from(warm_up).unwrap_or(i64::MAX));
        first_ns.saturating_add(length).saturating_sub(period / 2)
    }
}

/// The busy loop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NoiseDetail {
    /// Shortest gap stored, ns.
    pub threshold_ns: u64,
    /// Turns of the loop.
    pub iterations: u64,
    /// How long it was running, its own pauses excluded, ns.
    pub spin_ns: u64,
    /// Largest distance between counter and CLOCK_MONOTONIC after fitting, ns; none of a window
    /// that was cut off.
    pub clock_error_ns: Option<u64>,
    /// What the loop was, and what could take its CPU; runs of the first versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseRecord>,
    /// When the loop ran.
    pub slices: Vec<Stretch>,
}

/// Wake-ups of one CPU by others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IpiDetail {
    /// What became of them.
    #[serde(flatten)]
    pub served: Served,
    /// How they came; none where a window was cut off and its tail is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_ups: Option<WakeUpsRecord>,
}

/// Jobs that compute.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PeriodicDetail {
    /// Their releases.
    #[serde(flatten)]
    pub releases: Releases,
    /// What they were; none where a window was cut off and its tail is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobRecord>,
}

/// The jobs of one task of a set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TasksetDetail {
    /// Their releases.
    #[serde(flatten)]
    pub releases: Releases,
    /// Which task it was; none where a window was cut off and its tail is lost, and in runs of the
    /// first versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskRecord>,
}

/// Of a probe of which the samples say everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Nothing {}

/// Readings of clocks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClocksDetail {
    /// What was found out besides the readings; none where they were cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClocksRecord>,
}

/// One task of a task set, as requested; its period and priority are those of the probe's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Its name.
    pub name: String,
    /// Relative deadline, ns.
    pub deadline_ns: u64,
    /// Execution time, ns.
    pub cost_ns: u64,
    /// First release after the common one, ns.
    pub offset_ns: u64,
    /// Length of the slots of wall-clock time that it burnt, ns; none where it burnt CPU time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot_ns: Option<u64>,
}

/// How a thread was woken from other CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeUpsRecord {
    /// Requested interval of wake-ups, ns.
    pub interval_ns: u64,
    /// Whether a SCHED_OTHER task kept the CPUs busy; else they were idle in between.
    pub busy: bool,
}

/// What a busy loop was, and what could take its CPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NoiseRecord {
    /// Bytes copied in each iteration; 0 for none.
    pub workload_bytes: u64,
    /// How long the loop ran before the measurement, ns; the gaps of that time are stored, flagged
    /// as warm-up.
    pub preheat_ns: u64,
    /// Shortest iteration of the loop among 4,096 before the window, ns.
    pub least_turn_ns: f64,
    /// What statistics subtract from every gap, ns: the shortest iteration where requested, else 0.
    /// Samples are stored as they were.
    pub bias_ns: u64,
    /// Cost of one read of each counter on the measured CPU, ns, by name. The cheapest that can be
    /// trusted was taken.
    pub read_ns: BTreeMap<String, f64>,
    /// Where system management interrupts were counted, or why they were not.
    pub smi: String,
    /// Whether SMIs were counted.
    pub smi_counted: bool,
    /// What throttling allows real-time threads of the CPU; `None` where it is off or the kernel
    /// does it otherwise.
    pub throttling: Option<Budget>,
    /// What the fair server may take from real-time threads of the CPU; `None` where there is none
    /// or it is off.
    pub fair_server: Option<Budget>,
}

/// CPU time that is given once a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// CPU time a period, ns.
    pub runtime_ns: u64,
    /// The period, ns.
    pub period_ns: u64,
    /// Whether both are the kernel's defaults because it did not show them.
    pub assumed: bool,
}

/// What the jobs of a periodic probe were, and what came of their outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// The computation: `attitude`, `array:BYTES`, `busy:NSns`, `empty`.
    pub work: String,
    /// Where inputs came from: `memory`, `file`, `pipe`.
    pub input: String,
    /// What began a job: `timer`, or `scheduler` (SCHED_DEADLINE's own clock).
    pub wake: String,
    /// Whether executable and files were inodes of its own.
    pub own_files: bool,
    /// The counters, in the order of their columns.
    pub counters: Vec<JobCounter>,
    /// How many of them were read without a system call.
    pub counters_in_user_space: u64,
    /// Outputs that were compared with the expected ones, rehearsal included.
    pub outputs_compared: u64,
    /// Those that were not as expected.
    pub outputs_wrong: u64,
    /// CPU time that busy work was to take, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_asked_ns: Option<u64>,
    /// CPU time that it was found to take before the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_found_ns: Option<BusyFound>,
}

/// CPU time of busy work over several tries, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyFound {
    /// Smallest.
    pub min: u64,
    /// Median.
    pub median: u64,
    /// Largest.
    pub max: u64,
}

/// One counter of a periodic probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCounter {
    /// Its name, with `=rHEX` for a raw event.
    pub name: String,
    /// Where its values came from: `hardware`, `hardware, user space only`, `software`,
    /// `getrusage`.
    pub source: String,
}
