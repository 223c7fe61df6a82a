//! `stillcore measure`: one file per probe. They share `carry_out`: one window of probes, its run
//! directory, its conclusions.

mod below;
pub(crate) mod carry_out;
pub(crate) mod clocks;
mod contexts;
pub(crate) mod cyclictest;
pub(crate) mod disturbing;
pub(crate) mod exposure;
pub(crate) mod ipi;
pub(crate) mod overheads;
pub(crate) mod periodic;
mod repeating;
mod schedule;
pub(crate) mod spin;
mod spin_text;
pub(crate) mod stopping;
pub(crate) mod table;
pub(crate) mod taskset;
pub(crate) mod tracing;
pub(crate) mod wakeup;

use clap::Args;
use model::Cpus;
use std::path::PathBuf;

verbs! {
    /// Verbs under `measure`.
    MeasureVerb {
        /// Wake-up latency of periodic tasks, every release accounted for.
        Wakeup(wakeup::WakeupArgs) => changes(wakeup::run),
        /// Noise: time stolen from a busy loop, with a timestamp for every gap.
        Spin(spin::SpinArgs) => changes(spin::run),
        /// Wake-up latency from one CPU to another, for every pair and several methods.
        Ipi(ipi::IpiArgs) => changes(ipi::run),
        /// Interference events that one operation of a stressor costs the measured CPUs.
        Exposure(exposure::ExposureArgs) => changes(exposure::run),
        /// Kernel overheads, as input to schedulability analysis.
        Overheads(overheads::OverheadsArgs) => changes(overheads::run),
        /// Relative rates of the clocks, above all the scheduler's, and their read costs.
        Clocks(clocks::ClocksArgs) => changes(clocks::run),
        /// Periodic computing job: execution and response times, counters, wake-up drift.
        Periodic(periodic::PeriodicArgs) => changes(periodic::run),
        /// Measured and calculated response times of a task set on one core.
        Taskset(taskset::TasksetArgs) => changes(taskset::run),
    }
}

/// Options common to all measurements.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// CPUs to measure, as a list such as 2,3 or 4-7 [default: the isolated CPUs, else the highest
    /// one].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// New or empty directory for the run [default: stillcore-TIME in the current directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of the summary.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress while measuring.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Directory for the journal [default: /var/lib/stillcore; without root .local/state/stillcore
    /// in the home directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Leave idle states enabled. By default, hold /dev/cpu_dma_latency at 0 us while measuring, as
    /// cyclictest does.
    #[arg(long)]
    pub(crate) no_dma_latency: bool,
    /// Whether the run directory is this process's own, and removed at its end.
    #[arg(skip)]
    pub(crate) private: bool,
    /// Limit held in /dev/cpu_dma_latency, us.
    #[arg(skip)]
    pub(crate) dma_latency_us: i32,
    /// Stressors during the measurement.
    #[command(flatten)]
    pub(crate) disturbing: disturbing::Disturbing,
}

impl Common {
    /// The value to hold in `/dev/cpu_dma_latency` while it measures, us.
    pub(crate) fn dma_latency(&self) -> Option<i32> {
        (!self.no_dma_latency).then_some(self.dma_latency_us)
    }
}
