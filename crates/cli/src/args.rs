//! What can be typed: the verbs and their arguments, exactly as given.

use crate::trace_verb::TraceVerb;
use crate::values::TraceMode;
use clap::{Args, Parser, Subcommand, ValueEnum};
use model::Cpus;
use model::quantity::duration;
use std::path::PathBuf;
use std::time::Duration;

/// Measure, attribute and remove interference on isolated CPUs; bound what remains.
#[derive(Debug, Parser)]
#[command(name = "stillcore", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Audit, measure, disturb and judge this machine; write a run directory and report.
    Assess(AssessArgs),
    /// Check every isolation mechanism of this machine or of a snapshot.
    Audit(crate::audit::AuditArgs),
    /// Explain a mechanism, an event class or a kernel fix.
    Explain(crate::explain_verb::ExplainArgs),
    /// Run interference workloads: confined, counted, and verified to have worked.
    Disturb(crate::disturb_verb::DisturbArgs),
    /// List everything that may use one CPU: requested, effective, observed, owner.
    Resources(crate::resources_verb::ResourcesArgs),
    /// Archive everything that an audit reads, to audit it elsewhere.
    Snapshot(crate::snapshot_verb::SnapshotArgs),
    /// Recompute the conclusions of a run directory and write its report.
    Report(ReportArgs),
    /// Summarise samples files in bounded memory: losses, quantiles, deadlines, maxima.
    Summary(crate::summary_verb::SummaryArgs),
    /// Compare groups of runs: better, worse, equivalent, or runs still needed.
    Compare(crate::compare_verb::CompareArgs),
    /// Isolate CPUs: plan, apply, verify and undo.
    Isolate {
        /// What to do.
        #[command(subcommand)]
        verb: Box<crate::isolate::IsolateVerb>,
    },
    /// Measure wake-up latency, noise, cross-CPU wake-ups, overheads, jobs or clocks.
    Measure {
        /// What to measure.
        #[command(subcommand)]
        verb: Box<crate::measure::MeasureVerb>,
    },
    /// Analyze the schedulability of task sets.
    Sched {
        /// What to ask.
        #[command(subcommand)]
        verb: Box<crate::sched_verb::SchedVerb>,
    },
    /// Run communication graphs: end-to-end latency and outcome of every message.
    Graph {
        /// What to do.
        #[command(subcommand)]
        verb: Box<crate::graph_verb::GraphVerb>,
    },
    /// Analyze or export a trace; watch a program.
    #[command(subcommand)]
    Trace(TraceVerb),
    /// Run a declared matrix of measurements, cell by cell.
    Study {
        /// What to do.
        #[command(subcommand)]
        verb: crate::study_verb::StudyVerb,
    },
    /// Run stillcore on other kernels, in QEMU.
    #[command(subcommand)]
    Lab(LabVerb),
}

impl Verb {
    /// Whether the verb changes the machine, if only while it runs. Such a verb first undoes what a
    /// killed one has left, and undoes its own changes when a signal ends it.
    pub(crate) fn touches_the_machine(&self) -> bool {
        match self {
            Self::Assess(_) | Self::Disturb(_) | Self::Measure { .. } => true,
            Self::Audit(_)
            | Self::Explain(_)
            | Self::Resources(_)
            | Self::Snapshot(_)
            | Self::Report(_)
            | Self::Summary(_)
            | Self::Compare(_)
            | Self::Sched { .. }
            | Self::Lab(_) => false,
            Self::Isolate { verb } => verb.touches_the_machine(),
            Self::Graph { verb } => verb.touches_the_machine(),
            Self::Trace(verb) => matches!(verb, TraceVerb::Watch(_)),
            Self::Study { verb } => verb.touches_the_machine(),
        }
    }

    /// Whether answers and errors are to be JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Assess(args) => args.json,
            Self::Audit(args) => args.json,
            Self::Explain(args) => args.json,
            Self::Disturb(args) => args.json,
            Self::Resources(args) => args.json,
            Self::Snapshot(args) => args.json,
            Self::Report(args) => args.json,
            Self::Summary(args) => args.json,
            Self::Compare(args) => args.json,
            Self::Isolate { verb } => verb.json(),
            Self::Measure { verb } => verb.json(),
            Self::Sched { verb } => verb.json(),
            Self::Graph { verb } => verb.json(),
            Self::Trace(TraceVerb::Counts(args)) => args.json,
            Self::Trace(TraceVerb::Explain(args)) => args.json,
            Self::Trace(TraceVerb::Export(args)) => args.json,
            Self::Trace(TraceVerb::Functions(args)) => args.json,
            Self::Trace(TraceVerb::Watch(args)) => args.json,
            Self::Study { verb } => verb.json(),
            Self::Lab(LabVerb::Run(args)) => args.json,
            Self::Lab(LabVerb::Matrix(args)) => args.json,
        }
    }
}

/// Arguments of `assess`.
#[derive(Debug, Args)]
pub(crate) struct AssessArgs {
    /// CPUs to measure, as a list such as 2,3 or 4-7 [default: the isolated CPUs, else the highest
    /// one].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Length of each of the three phases; half measures wake-ups, half noise.
    #[arg(long, default_value = "20s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// New or empty directory for the run [default: stillcore-TIME in the current directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of the summary.
    #[arg(long)]
    pub(crate) json: bool,
    /// Release interval of the wake-up probe.
    #[arg(long, default_value = "200us", value_name = "TIME", value_parser = duration)]
    pub(crate) period: Duration,
    /// Shortest gap that the noise probe stores [default: five loop iterations, at least 500 ns].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) threshold: Option<Duration>,
    /// SCHED_FIFO priority of the probes; 0 = SCHED_OTHER.
    #[arg(long, default_value_t = 80, value_name = "0-98", value_parser = clap::value_parser!(u32).range(0..=98))]
    pub(crate) priority: u32,
    /// Leave idle states enabled. By default, hold /dev/cpu_dma_latency at 0 us while measuring, as
    /// cyclictest does.
    #[arg(long)]
    pub(crate) no_dma_latency: bool,
    /// Stressors for the disturbed phase [default: those of the suite `ordinary`].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) stressors: Vec<String>,
    /// Record kernel events; auto records them where possible and reports where not.
    #[arg(long, default_value = "auto")]
    pub(crate) trace: TraceMode,
    /// If the kernel has no events for senders of IPIs (before 6.4), find them with kprobes.
    #[arg(long)]
    pub(crate) kprobes: bool,
    /// Also record the kernel stack on the measured CPUs when a real-time task replaces an ordinary
    /// task. Shows kernel code that could not be preempted. Adds microseconds to each wake-up of a
    /// busy CPU.
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Also record the user-space stacks of senders, for functions with frame pointers. Costs them
    /// some microseconds per event.
    #[arg(long)]
    pub(crate) user_stacks: bool,
    /// Directory of mechanisms to use instead of the built-in catalogue.
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Directory for the journal [default: /var/lib/stillcore; without root .local/state/stillcore
    /// in the home directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run directory.
    pub(crate) run: PathBuf,
    /// Count the releases at least this late, also per hour, with confidence intervals; repeatable.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) deadline: Vec<Duration>,
    /// Estimate the tail beyond the observed maximum by extreme value theory, or report why that is
    /// impossible.
    #[arg(long)]
    pub(crate) tail: bool,
    /// With --tail, also estimate the level reached once in this many releases, besides n, 10 n and
    /// 100 n; repeatable.
    #[arg(long, value_name = "RELEASES", requires = "tail", value_parser = releases)]
    pub(crate) once_in: Vec<f64>,
    /// Write the page to this file, and nothing into the run directory.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub(crate) html: Option<PathBuf>,
    /// Print the run's results in this format instead of the summary; write nothing into the run
    /// directory.
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) format: Option<ReportFormat>,
    /// With --format, output file; for latex a directory [default: standard output].
    #[arg(long, value_name = "PATH", requires = "format")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of the summary.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Formats of a run's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// OpenMetrics text, for Prometheus or node exporter's textfile collector.
    Openmetrics,
    /// Comma-separated values, one line per value.
    Csv,
    /// Markdown tables.
    Markdown,
    /// pgfplots data, a document that draws them, and a table; needs --out.
    Latex,
    /// The same table as csv, as Parquet; needs --out.
    Parquet,
}

/// Verbs under `lab`.
#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// Boot a kernel under QEMU, run a command there as root, copy its files back.
    Run(Box<crate::lab_verb::RunArgs>),
    /// Boot kernels under several isolation profiles; compare exposure to each stressor.
    Matrix(Box<crate::lab_matrix::MatrixArgs>),
}

/// A number of releases: a count, or a power of ten such as 1e8.
fn releases(text: &str) -> Result<f64, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".e".contains(&byte));
    let number = text.parse::<f64>().ok().filter(|number| plain && number.is_finite() && *number >= 1.0);
    number.ok_or_else(|| format!("invalid number of releases {text:?}: expected such as 100000000 or 1e8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
