//! `run.json`: everything a run directory says about itself.

pub(crate) mod cut_off;
mod ended;
mod stopped;
pub mod stored;

use crate::Cpus;
use crate::clocks::ClocksRecord;
use crate::cpu_states::{FrequencyChanges, IdleStates};
use crate::groups::TaskGroup;
pub use crate::probe::{
    Budget, BusyFound, JobCounter, JobRecord, NoiseDetail, NoiseRecord, ProbeDetail, ProbeKind, Releases,
    Served, TaskRecord, WakeUpsRecord,
};
use crate::sample::Policy;
use crate::snapshots::{SnapshotRecord, SnapshotsRecord};
use crate::stressor::StressorRecord;
use crate::usage::{Faults, Switches};
pub use ended::CUT_OFF;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use stopped::StoppedAt;

/// Schema of `run.json`.
pub const SCHEMA: &str = "stillcore.run/2";
/// The schema before. Each of its probe records has the keys of all probes, 0 or null where they
/// say nothing, and arrays where there are objects now; it is read like the newer one.
const EARLIER_SCHEMA: &str = "stillcore.run/1";

/// Name of the phase whose only purpose is its trace: what its probes measure includes the
/// recorder's cost, and statistics exclude it.
pub const TRACED: &str = "traced";

/// One measurement on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program that made it.
    pub tool_version: String,
    /// The command line as typed.
    pub command: Vec<String>,
    /// Wall clock at the start, RFC 3339, UTC.
    pub started_at: String,
    /// Whether the run went through to its end.
    pub complete: bool,
    /// Why not.
    pub incomplete_reason: Option<String>,
    /// The sample that ended the measurement before its time, where a limit was set and reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<StoppedAt>,
    /// File with the machine before, relative to the run.
    pub machine_before: String,
    /// File with the machine after, once written.
    pub machine_after: Option<String>,
    /// The CPUs that were measured.
    pub measured_cpus: Cpus,
    /// The CPUs that were disturbed, and on which everything else ran.
    pub housekeeping_cpus: Cpus,
    /// The limit on wake-up latency held on `/dev/cpu_dma_latency` while it measured, us: with 0 no
    /// CPU enters an idle state that takes time to leave. None: idle states were the machine's, as
    /// in runs from before this was recorded.
    #[serde(default)]
    pub dma_latency_us: Option<i32>,
    /// The idle states of the measured CPUs, where a trace was recorded; empty where the kernel has
    /// no driver of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub idle_states: IdleStates,
    /// How long a change of frequency takes at most on each measured CPU, where a trace was
    /// recorded and the driver says so, ns.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub frequency_change_ns: FrequencyChanges,
    /// Changes made to the machine for the run (a plan's step ids), none for `assess`.
    pub plan: Vec<String>,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// The measuring windows in order.
    pub windows: Vec<Window>,
    /// One record a probe, CPU and window.
    pub probes: Vec<ProbeRecord>,
    /// What the disturbances did.
    pub stressors: Vec<StressorRecord>,
    /// The trace, where one was recorded.
    pub trace: Option<TraceRecord>,
    /// Everything that got lost.
    pub losses: Losses,
    /// What the measuring itself costs.
    pub observer: ObserverCost,
    /// Seeds of everything random, by purpose.
    pub seeds: BTreeMap<String, u64>,
    /// What this run could not do, one sentence each.
    pub limits: Vec<String>,
}

/// One phase: idle before, disturbed, idle after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// `idle-before`, `disturbed`, `idle-after`.
    pub name: String,
    /// CLOCK_MONOTONIC, ns.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC, ns.
    pub t1_ns: i64,
    /// Whether stressors ran.
    pub disturbed: bool,
}

/// One measuring window: one probe kind, on all measured CPUs at once, within one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The phase it lies in.
    pub phase: String,
    /// The probe that ran.
    pub probe: ProbeKind,
    /// CLOCK_MONOTONIC, ns: recording on.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC, ns: recording off.
    pub t1_ns: i64,
    /// Growth of `/proc/interrupts` over the window, row → CPU → count, measured CPUs only, rows
    /// that grew.
    pub interrupts: BTreeMap<String, BTreeMap<u32, u64>>,
    /// Growth of `/proc/softirqs` over the window, row → CPU → count, measured CPUs only, rows that
    /// grew.
    pub softirqs: BTreeMap<String, BTreeMap<u32, u64>>,
    /// Growth of steal time in `/proc/stat` over the window, ns per CPU; a CPU is absent where it
    /// could not be read, and in runs of the first round where it was none.
    pub steal_ns: BTreeMap<u32, u64>,
    /// What the scheduler wrote to the kernel's log over the window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_log: Vec<String>,
}

/// What one probe on one CPU did in one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeRecord {
    /// Which probe, and what only that one says.
    #[serde(flatten)]
    pub detail: ProbeDetail,
    /// The phase.
    pub phase: String,
    /// The CPU it was pinned to, or the first of those it might run on.
    pub cpu: u32,
    /// Its number in the window, from 0.
    #[serde(default)]
    pub thread: u32,
    /// Where it might run, if not on one CPU alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Process id of the measuring process.
    pub pid: i32,
    /// Thread id of the measuring thread: what the trace calls its pid.
    pub tid: i32,
    /// Samples file, relative to the run.
    pub file: String,
    /// CLOCK_MONOTONIC, ns: first release, or start of the first spin.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC, ns: end of the measurement.
    pub t1_ns: i64,
    /// Clock or counter that the values were read from.
    pub counter: String,
    /// Timer slack in force, ns; it delays only policies that are not real-time.
    #[serde(default)]
    pub timer_slack_ns: u64,
    /// Requested policy.
    pub policy_asked: Policy,
    /// Policy the kernel reported back.
    pub policy_effective: Policy,
    /// Samples in the file.
    pub samples: u64,
    /// Samples that found the ring full.
    pub ring_lost: u64,
    /// Page faults of the measuring thread inside the window.
    pub faults: Faults,
    /// Context switches of the measuring thread inside the window.
    pub switches: Switches,
    /// CPU time of the measuring thread inside the window, ns.
    pub cpu_time_ns: u64,
    /// Peak resident memory of the measuring process, KiB.
    pub rss_kib: u64,
    /// File with the growth of counters over its intervals, relative to the run, where they were
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters_file: Option<String>,
    /// What reached the threshold for keeping contexts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_threshold: Option<OverThreshold>,
    /// Where the kernel took one of its CPUs: until when it surely ran on them, CLOCK_MONOTONIC ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_ns: Option<i64>,
    /// Whether its window was cut off, so that the record is made from its file when that is read;
    /// never stored. Its losses, and all else that only its end would report, are unknown.
    #[serde(default, skip)]
    pub cut_off: bool,
}

impl ProbeRecord {
    /// A record of nothing yet: a probe on one CPU, every count 0, everything else absent.
    pub fn of(probe: ProbeKind, cpu: u32, policy: Policy) -> Self {
        Self {
            detail: probe.detail(),
            phase: String::new(),
            cpu,
            thread: 0,
            cpus: None,
            pid: 0,
            tid: 0,
            file: String::new(),
            t0_ns: 0,
            t1_ns: 0,
            counter: String::new(),
            timer_slack_ns: 0,
            policy_asked: policy.clone(),
            policy_effective: policy,
            samples: 0,
            ring_lost: 0,
            faults: Faults::default(),
            switches: Switches::default(),
            cpu_time_ns: 0,
            rss_kib: 0,
            counters_file: None,
            over_threshold: None,
            taken_ns: None,
            cut_off: false,
        }
    }

    /// Which probe.
    pub fn probe(&self) -> ProbeKind {
        self.detail.kind()
    }

    /// Releases requested over the window; 0 of a probe without.
    pub fn released(&self) -> u64 {
        self.detail.served().released
    }

    /// Releases that passed unserved; 0 of a probe without.
    pub fn missed(&self) -> u64 {
        self.detail.served().missed
    }

    /// Period of the releases, ns; none of a probe without.
    pub fn period_ns(&self) -> Option<u64> {
        self.detail.releases().map(|releases| releases.period_ns)
    }

    /// What a busy loop says; none of any other probe.
    pub fn noise(&self) -> Option<&NoiseDetail> {
        if let ProbeDetail::Noise(noise) = &self.detail { Some(noise) } else { None }
    }

    /// When a busy loop ran, CLOCK_MONOTONIC ns; empty of any other probe.
    pub fn slices(&self) -> Vec<[i64; 2]> {
        self.noise().map_or_else(Vec::new, |noise| noise.slices.iter().map(|one| (*one).into()).collect())
    }

    /// What every gap of a busy loop is to be less by, ns.
    pub fn bias_ns(&self) -> u64 {
        self.noise().and_then(|noise| noise.noise.as_ref()).map_or(0, |noise| noise.bias_ns)
    }

    /// What the jobs were, of a periodic probe.
    pub fn jobs(&self) -> Option<&JobRecord> {
        if let ProbeDetail::Periodic(detail) = &self.detail { detail.jobs.as_ref() } else { None }
    }

    /// What was found out about clocks, of a record of these.
    pub fn clocks(&self) -> Option<&ClocksRecord> {
        if let ProbeDetail::Clocks(detail) = &self.detail { detail.clocks.as_ref() } else { None }
    }

    /// How its wake-ups came, of the probe of these.
    pub fn wake_ups(&self) -> Option<&WakeUpsRecord> {
        if let ProbeDetail::Ipi(detail) = &self.detail { detail.wake_ups.as_ref() } else { None }
    }
}

/// How many samples of a probe reached a threshold, and where their contexts are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverThreshold {
    /// The threshold, ns.
    pub threshold_ns: i64,
    /// Samples that reached it.
    pub over: u64,
    /// Of these, samples whose context was not kept: neither among the first nor among the largest.
    pub not_kept: u64,
    /// File with the contexts, relative to the run; none where no sample reached the threshold.
    pub contexts_file: Option<String>,
}

/// The recorded trace and its accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRecord {
    /// File, relative to the run.
    pub file: String,
    /// Trace clock.
    pub clock: String,
    /// Name of the private instance.
    pub instance: String,
    /// Buffer size per CPU, KiB.
    pub buffer_kib: u64,
    /// Events that were recorded, `system:name`.
    pub events: Vec<String>,
    /// Catalogue events that this kernel does not have.
    pub absent: Vec<String>,
    /// The kernel's own account of each CPU's buffer.
    pub cpus: Vec<TraceCpu>,
    /// Since when the file has every event, where earlier ones gave way to later ones;
    /// CLOCK_MONOTONIC, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<i64>,
    /// What the other CPUs aimed at the measured ones; absent where nothing of that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<SenderRecord>,
    /// What only tasks of a watched program did; absent where no program was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<SenderRecord>,
    /// Where the trace holds stretches around the largest samples only: which; absent where it
    /// holds the windows as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotsRecord>,
    /// The control groups of the threads that were there before or after a window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<TaskGroup>,
}

impl TraceRecord {
    /// The stretches of a window whose events the trace holds, except lost ones: the window itself,
    /// or its parts in snapshots. By time, CLOCK_MONOTONIC ns.
    pub fn stretches(&self, window: [i64; 2]) -> Vec<[i64; 2]> {
        let Some(snapshots) = &self.snapshots else { return vec![window] };
        let inside = |kept: &SnapshotRecord| [kept.t0_ns.max(window[0]), kept.t1_ns.min(window[1])];
        let mut stretches: Vec<_> = snapshots.kept.iter().map(inside).filter(|one| one[0] < one[1]).collect();
        stretches.sort_unstable();
        stretches
    }
}

/// A buffer beside the top one: what CPUs that are not measured did to those that are, or what a
/// watched program did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderRecord {
    /// Its name in the file.
    pub buffer: String,
    /// Name of the private instance.
    pub instance: String,
    /// Buffer size per CPU, KiB.
    pub buffer_kib: u64,
    /// Events that were recorded, `system:name`.
    pub events: Vec<String>,
    /// Catalogue events that this kernel does not have.
    pub absent: Vec<String>,
    /// The kernel's own account of each CPU's buffer.
    pub cpus: Vec<TraceCpu>,
}

/// The kernel's account of one CPU's buffer (`per_cpu/cpuN/stats`), after recording ended and the
/// buffer was drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TraceCpu {
    /// The CPU.
    pub cpu: u32,
    /// Events left unread.
    pub left: u64,
    /// Events overwritten.
    pub overrun: u64,
    /// Events lost to nested commits.
    pub commit_overrun: u64,
    /// Events dropped because the buffer was full.
    pub dropped: u64,
    /// Events read.
    pub read: u64,
    /// Events read and not kept, because they lie in no kept snapshot, or before
    /// [`TraceRecord::from_ns`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub discarded: u64,
    /// Pages stored.
    pub pages: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Everything that got lost, in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Losses {
    /// Releases that passed unserved.
    pub missed_releases: u64,
    /// Samples that found the ring full.
    pub ring_samples: u64,
    /// Trace events overwritten, dropped or left unread.
    pub trace_events: u64,
    /// Stressor operations that failed.
    pub failed_operations: u64,
}

/// What the measuring costs, measured on this machine just before the run. `None`: not measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ObserverCost {
    /// One read of CLOCK_MONOTONIC, ns, minimum of many batches.
    pub clock_read_ns: Option<f64>,
    /// One read of the CPU's counter, ns, minimum of many batches.
    pub counter_read_ns: Option<f64>,
    /// One recorded trace event, ns.
    pub trace_event_ns: Option<f64>,
    /// One recorded stack of the kernel, of a short system call, ns.
    #[serde(default)]
    pub trace_stack_ns: Option<f64>,
    /// One recorded stack of user space, ns.
    #[serde(default)]
    pub trace_user_stack_ns: Option<f64>,
    /// One call of a function with a probe at its entry and one at its return, ns more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_function_ns: Option<f64>,
    /// Locking and unlocking a free lock, where both are recorded, ns more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_lock_ns: Option<f64>,
    /// CPU time of the wake-up probe per sample, ns, sleep and wake-up included.
    pub wakeup_sample_ns: Option<f64>,
    /// One iteration of the noise loop, ns.
    pub noise_turn_ns: Option<f64>,
    /// One reading of the kernel's counters while the probes ran, on a housekeeping CPU, ns.
    #[serde(default)]
    pub look_ns: Option<f64>,
    /// Peak resident memory of this process, which drains and writes, KiB.
    pub drain_rss_kib: Option<u64>,
}
