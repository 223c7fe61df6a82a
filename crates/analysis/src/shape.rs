//! The result of an analysis: one section per question, plain data, written as `analysis.json`.

mod paths;
mod threads;

use crate::attribute::Confidence;
use crate::attribute::blocking::Blocking;
pub use crate::attribute::watch::shape::WatchSection;
use crate::clocks::Clocks;
use crate::graph::GraphSection;
use crate::ipi::Way;
use crate::noise_causes::NoiseCauses;
use crate::overheads::Overheads;
use crate::periodic::Process;
use crate::schedule::Schedule;
use crate::snapshots::SnapshotSection;
use crate::tail::Tail;
use crate::taskset::MeasuredTask;
use crate::time::TimeSection;
use model::EventClass;
use model::groups::TaskGroup;
use model::run::{Losses, TraceCpu};
use model::sample::{Policy, ProbeKind};
use serde::{Deserialize, Serialize};
pub use stats::extremal::Extremal;
pub use stats::sampled::{Dependence, Exceedance, Quantile};
use std::collections::BTreeMap;

pub use paths::{PathBox, PathSection, SamplePath, TaskText};
pub use threads::{CpuSources, ThreadPaths};

/// Schema of `analysis.json`.
pub const SCHEMA: &str = "stillcore.analysis/1";

/// Conclusions drawn from one run directory; derived and rebuildable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// [`SCHEMA`].
    pub schema: String,
    /// Whether the run was complete.
    pub complete: bool,
    /// Losses, and whether the accounts balance.
    pub losses: LossSection,
    /// One distribution a window and CPU.
    pub distributions: Vec<Distribution>,
    /// Interference events a window and CPU.
    pub events: Vec<WindowEvents>,
    /// Which share of the samples each class overlaps.
    pub overlaps: Vec<Overlap>,
    /// Disturbed against the idle controls.
    pub comparisons: Vec<Comparison>,
    /// Who took the time of busy loops beside which counters were read.
    #[serde(default)]
    pub noise_causes: Vec<NoiseCauses>,
    /// Who caused the events, a window and CPU each.
    #[serde(default)]
    pub attribution: Vec<Attribution>,
    /// The critical paths of wake-ups, a window and CPU each.
    #[serde(default)]
    pub paths: Vec<PathSection>,
    /// What this kernel shows of events and of their sources; empty without a trace.
    #[serde(default)]
    pub coverage: Vec<Coverage>,
    /// What this kernel shows of waiting where nothing else runs.
    #[serde(default)]
    pub blocking: Vec<BlockingCoverage>,
    /// The samples that the trace was kept around, where it holds no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotSection>,
    /// Wake-ups of one CPU by another: an entry a pair and method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipi: Vec<Way>,
    /// Periodic jobs: an entry a process, the victim first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub periodic: Vec<Process>,
    /// The tasks of a task set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taskset: Vec<MeasuredTask>,
    /// What their jobs did when, of a stretch behind the first ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// What may lie beyond the largest samples, a window and CPU each; only on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<Tail>,
    /// What the kernel's own work costs: an entry a CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overheads: Vec<Overheads>,
    /// The clocks against one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// Samples over time: changes, drift and periods, a window and CPU each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time: Vec<TimeSection>,
    /// The edges of a graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphSection>,
    /// The watched program, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<WatchSection>,
}

/// The sources of one window's events on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// Number of its thread in the window.
    #[serde(default)]
    pub thread: u32,
    /// Events whose source is known exactly; events of the probe itself and ticks are not among these three.
    pub exact: u64,
    /// Events whose source is known by order in time.
    pub by_order: u64,
    /// Events whose source is not known.
    pub unknown: u64,
    /// Senders that served the same event as others and are on no row.
    pub more_senders: u64,
    /// Most time first; at most 100.
    pub rows: Vec<AttributedRow>,
}

/// What one source has caused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributedRow {
    /// The class.
    pub class: EventClass,
    /// What ran.
    pub label: String,
    /// Who caused it; absent where that is not known.
    pub source: Option<SourceText>,
    /// How the source is known.
    pub confidence: Option<Confidence>,
    /// Events that it took part in.
    pub count: u64,
    /// Pieces of time in which one of them continued after an interruption: no separate events.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resumed: u64,
    /// Its share of their time, nested events excluded.
    pub net_ns: u64,
    /// Median of one event's share.
    pub p50_ns: u64,
    /// Its 99th percentile.
    pub p99_ns: u64,
    /// The longest observed.
    pub max_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A source in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// Where it acted.
    pub cpu: u32,
    /// A task's name, `idle`, or the interrupt, timer or device.
    pub who: String,
    /// The task's number.
    pub pid: Option<i32>,
    /// The kernel function that asked; where its stack was recorded, the innermost one that does
    /// not only pass on what another asks for.
    pub site: Option<String>,
    /// What it was in the kernel for, by that stack: `system call munmap`, `page fault`, `kernel
    /// thread`, `interrupt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<String>,
    /// The functions of that stack, innermost first; in a sum, of one of its events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<String>,
    /// Where the task was in user space, innermost first, in the same event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// The task's container, service, or control group; absent where none was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl SourceText {
    /// Nothing more is known of it.
    pub fn new(cpu: u32, who: &str, pid: Option<i32>) -> Self {
        let (frames, users) = (Vec::new(), Vec::new());
        Self { cpu, who: who.to_owned(), pid, site: None, began: None, frames, users, group: None }
    }

    /// The functions of the kernel, and those of the program that called it, innermost first.
    pub fn functions(&self) -> Vec<String> {
        self.frames.iter().chain(&self.users).cloned().collect()
    }

    /// Whether both are the same source, whatever their stacks.
    pub fn is(&self, other: &Self) -> bool {
        (self.cpu, &self.who, self.pid, &self.site, &self.began)
            == (other.cpu, &other.who, other.pid, &other.site, &other.began)
    }

    /// Names its group, where one was seen.
    pub fn find_group(&mut self, groups: &BTreeMap<i32, &TaskGroup>) {
        self.group = self.pid.and_then(|pid| groups.get(&pid)).map(|group| group.words());
    }

    /// Its name, with number and group: `bash[812] (cron.service)`.
    pub fn name(&self) -> String {
        let pid = self.pid.filter(|pid| *pid > 0).map(|pid| format!("[{pid}]")).unwrap_or_default();
        let group = self.group.as_ref().map(|group| format!(" ({group})")).unwrap_or_default();
        format!("{}{pid}{group}", self.who)
    }

    /// Where in the kernel it acted, and what for: `flush_tlb_mm_range (system call munmap)`.
    pub fn place(&self) -> Option<String> {
        let began = self.began.as_deref().filter(|began| *began != crate::stacks::INTERRUPT);
        match (&self.site, began) {
            (Some(site), Some(began)) => Some(format!("{site} ({began})")),
            (site, began) => site.clone().or(began.map(str::to_owned)),
        }
    }
}

/// How a class is observed on this kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The class.
    pub class: EventClass,
    /// Whether its events are recorded.
    pub seen: bool,
    /// How well their sources can be known at best; absent where not at all.
    pub sources: Option<Confidence>,
    /// By what.
    pub how: String,
    /// Further events to record, to know the sources, or to know them better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// What is known of waiting where nothing else runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockingCoverage {
    /// What keeps it waiting.
    pub blocking: Blocking,
    /// Whether its events are recorded.
    pub seen: bool,
    /// By what, or where the time is instead.
    pub how: String,
    /// Events that would have to be recorded for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// Losses, and whether the accounts balance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossSection {
    /// The run's own totals.
    pub totals: Losses,
    /// The trace's accounts, CPU by CPU.
    pub trace: Vec<TraceAccount>,
    /// Whether every account balances; `None` without a trace.
    pub reconciled: Option<bool>,
    /// What that means for the verdicts, one sentence each.
    pub statements: Vec<String>,
}

/// One CPU's trace account: events read + left + overrun + dropped = events written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceAccount {
    /// The kernel's own counters.
    pub kernel: TraceCpu,
    /// Events decoded from the stored trace.
    pub decoded: u64,
    /// Whether `decoded` and what was discarded are the kernel's `read`.
    pub balanced: bool,
    /// Whether it is of a CPU that is not measured, of which only what it aims at measured ones is recorded.
    #[serde(default)]
    pub sender: bool,
    /// Whether its buffer is a ring that was read for snapshots only, so that what was overwritten or left in it is not lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ring: bool,
}

/// The distribution of one probe's samples in one window on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// Number of the measuring thread in the window.
    #[serde(default)]
    pub thread: u32,
    /// Policy the kernel reported for the measuring thread.
    pub policy: Policy,
    /// Samples that statistics include.
    pub n: u64,
    /// Samples stored but not counted (first, warm-up, clock step).
    pub excluded: u64,
    /// Releases that passed unserved (wake-up).
    pub missed: u64,
    /// Samples lost to a full ring; none where that is not known, because the window was cut off.
    pub ring_lost: Option<u64>,
    /// Length of the measurement, ns: the window, or for noise the time the loop was running.
    pub duration_ns: u64,
    /// Samples with a negative value: woken early.
    pub early: u64,
    /// Smallest value.
    pub min_ns: Option<i64>,
    /// Observed maximum: of these n samples, no bound on any other.
    pub observed_max_ns: Option<i64>,
    /// All values together, ns; missed releases charged.
    #[serde(default)]
    pub sum_ns: i64,
    /// When it was observed, CLOCK_MONOTONIC ns.
    pub observed_max_at_ns: Option<i64>,
    /// Quantiles of the served samples.
    pub quantiles: Vec<Quantile>,
    /// Quantiles with every missed release charged with the lateness it had; only for wake-up.
    pub corrected_quantiles: Vec<Quantile>,
    /// Observed maximum with missed releases charged (wake-up).
    pub corrected_max_ns: Option<i64>,
    /// How the releases, missed ones charged, or gaps depend on each other; none for fewer than twenty.
    #[serde(default)]
    pub dependence: Option<Dependence>,
    /// Shares of the releases, missed ones charged, or of the gaps, at or above thresholds.
    pub exceedances: Vec<Exceedance>,
    /// Time stolen (noise).
    pub stolen: Option<Stolen>,
    /// Logarithmic histogram for charts: `[low_ns, high_ns, count]`, low ≤ value < high.
    pub histogram: Vec<[i64; 3]>,
    /// Samples by whole microsecond: `[µs, count]`, bins without a sample left out; what is beyond the last is in none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_us: Vec<[i64; 2]>,
    /// Maxima over time for charts: `[t_ns, max_ns, n]`, at most 400 entries of equal length; t is the start of each.
    pub timeline: Vec<[i64; 3]>,
}

/// Time stolen from a busy loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stolen {
    /// Sum of all stored gaps, ns.
    pub total_ns: u64,
    /// `total_ns` over the time that the loop was running.
    pub share: f64,
    /// Shortest gap that was stored, ns.
    pub threshold_ns: u64,
    /// Gaps, and the time in them, that no recorded event overlaps. `None` where the CPU has no whole trace.
    pub unexplained: Option<CountNs>,
}

/// A count with a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountNs {
    /// How many.
    pub count: u64,
    /// How long together, ns.
    pub ns: u64,
}

/// The interference events of one window on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowEvents {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// Number of its thread in the window.
    #[serde(default)]
    pub thread: u32,
    /// Time over which events were counted, ns: the probe's own span, for noise only the stretches in which the loop ran.
    pub duration_ns: u64,
    /// Start of the first slot of [`ClassCount::over_time`], CLOCK_MONOTONIC ns.
    #[serde(default)]
    pub t0_ns: i64,
    /// Length of a slot, ns; 0 where the window is shorter than one.
    #[serde(default)]
    pub slot_ns: u64,
    /// Every class, those with a zero count included.
    pub classes: Vec<ClassCount>,
    /// Raw counts of every recorded event inside the counted time, `system:name` → count.
    pub by_event: BTreeMap<String, u64>,
    /// The kernel's own counters beside the trace's, over the whole window.
    pub cross_checks: Vec<CrossCheck>,
}

/// One class in one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassCount {
    /// The class.
    pub class: EventClass,
    /// Whether this kernel has an event of this class, so that zero means zero. False for a zero count where the CPU's trace is
    /// not whole; a count above zero is a lower bound there.
    pub observable: bool,
    /// Events.
    pub count: u64,
    /// Time they took, nested events excluded, ns. A lower bound: entry and exit code lies outside the tracepoints.
    pub net_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Events per second.
    pub per_s: f64,
    /// One-sided 95 % upper bound of the rate per second (Poisson, exact; 3/T for a zero count). Bounds nothing where the class
    /// is not observable or the CPU's trace is not whole.
    pub upper_per_s: f64,
    /// What ran, most frequent first, at most ten.
    pub labels: Vec<LabelCount>,
    /// Events in each slot of the window, at most 200; empty where none came. What came behind the last whole slot is in none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<u32>,
}

/// What ran, within a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelCount {
    /// Function, interrupt name, softirq name or task.
    pub label: String,
    /// Events.
    pub count: u64,
    /// Time they took, nested events excluded, ns.
    pub net_ns: u64,
}

/// The kernel's own counter beside the trace's count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossCheck {
    /// Row of `/proc/interrupts` or `/proc/softirqs`.
    pub row: String,
    /// Growth of the kernel's counter, read just before and just after the window.
    pub kernel: u64,
    /// Events in the trace.
    pub traced: u64,
    /// Whether the two agree: the trace never has more, and at most a few less (the edges of the window).
    pub agrees: bool,
}

/// Which share of the samples a class overlaps. Overlap is not cause. Where the CPU's trace is not whole, classes that overlap no
/// sample are left out, and the other shares are lower bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// The class.
    pub class: EventClass,
    /// Samples whose interval touches at least one event of the class.
    pub samples: u64,
    /// `samples / n`.
    pub share: f64,
    /// The same among the largest hundredth of the samples (at least ten samples), where there are that many.
    pub share_of_largest: Option<f64>,
}

/// Whether the disturbed phase can be distinguished from the idle controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Disturbed is higher than both controls, by more than the controls differ.
    Worse,
    /// Disturbed is lower than both controls, by more than the controls differ.
    Better,
    /// The run cannot distinguish the two.
    CannotTell,
    /// Losses or too few samples forbid a verdict.
    Withheld,
}

/// One statistic in the disturbed phase against the same statistic in both idle controls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared, such as `wakeup p50`, `noise share`, `ipi.call per second`.
    pub figure: String,
    /// Unit of the values: `ns`, `share`, `per s`.
    pub unit: String,
    /// The CPU.
    pub cpu: u32,
    /// The value in the first idle control.
    pub idle_before: Option<f64>,
    /// The value in the disturbed phase.
    pub disturbed: Option<f64>,
    /// The value in the second idle control.
    pub idle_after: Option<f64>,
    /// 95 % interval of disturbed minus first control, where one was computed.
    pub versus_before: Option<[f64; 2]>,
    /// 95 % interval of disturbed minus second control, where one was computed.
    pub versus_after: Option<[f64; 2]>,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict with its reason in plain words.
    pub sentence: String,
}
