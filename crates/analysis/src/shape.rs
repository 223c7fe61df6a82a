//! The result of an analysis: one section per question, plain data, written as `analysis.json`.

use crate::clocks::Clocks;
use crate::compare::Comparison;
use crate::distribution::Distribution;
use crate::events::WindowEvents;
use crate::graph::GraphSection;
use crate::ipi::Way;
pub use crate::losses::LossSection;
use crate::noise_causes::NoiseCauses;
use crate::overheads::Overheads;
use crate::overlap::Overlap;
use crate::periodic::Process;
use crate::schedule::Schedule;
use crate::snapshots::SnapshotSection;
use crate::tail::Tail;
use crate::taskset::MeasuredTask;
use crate::time::TimeSection;
use attribution::attribute::off::OffSection;
use attribution::attribute::path_section::PathSection;
use attribution::attribute::section::{Attribution, BlockingCoverage, Coverage};
use attribution::attribute::watch::shape::WatchSection;
use serde::{Deserialize, Serialize};

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
    /// Stretches with interrupts or preemption off, and calls of probed functions, a phase and CPU
    /// each; empty where none were recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<OffSection>,
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
