//! What can be typed: the verbs and their arguments, exactly as given.

use clap::{Args, Parser, Subcommand, ValueEnum};
use model::Cpus;
pub(crate) use model::quantity::{bytes, duration};
use std::path::PathBuf;
use std::time::Duration;

/// Is this core still: who disturbs it, at what cost, how to stop it, and what can then be guaranteed.
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
    /// Audit, measure, disturb and judge this machine; write a run directory with a report.
    Assess(AssessArgs),
    /// Judge every isolation mechanism of this machine, or of a captured one.
    Audit(crate::audit::AuditArgs),
    /// Explain a mechanism, an event class or a kernel fix.
    Explain(crate::explain_verb::ExplainArgs),
    /// Provoke interference: workloads, confined, counted, and proven to have worked.
    Disturb(crate::disturb_verb::DisturbArgs),
    /// List everything that may touch one CPU: asked, in force, observed, whose it is.
    Resources(crate::resources_verb::ResourcesArgs),
    /// Take what an audit reads into an archive, to audit it elsewhere.
    Snapshot(crate::snapshot_verb::SnapshotArgs),
    /// Draw the conclusions of a run directory again and write its report.
    Report(ReportArgs),
    /// Summarise samples files, however long, in bounded memory: losses, quantiles with intervals, deadlines, the largest.
    Summary(crate::summary_verb::SummaryArgs),
    /// Compare groups of runs: better, worse, equivalent, or how many more runs it takes.
    Compare(crate::compare_verb::CompareArgs),
    /// Keep CPUs still: plan, apply, verify and undo.
    Isolate {
        /// What to do.
        #[command(subcommand)]
        verb: Box<crate::isolate::IsolateVerb>,
    },
    /// Measure one thing: wake-up latency, noise, wake-ups across cores, overheads, jobs, clocks.
    Measure {
        /// What to measure.
        #[command(subcommand)]
        verb: Box<crate::measure::MeasureVerb>,
    },
    /// What can be guaranteed: schedulability of task sets.
    Sched {
        /// What to ask.
        #[command(subcommand)]
        verb: Box<crate::sched_verb::SchedVerb>,
    },
    /// Run end-to-end communication graphs: latency of every message, and where all of them went.
    Graph {
        /// What to do.
        #[command(subcommand)]
        verb: Box<crate::graph_verb::GraphVerb>,
    },
    /// Look into a recorded trace.
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
    /// CPUs to measure, as a list such as 2,3 or 4-7 [default: the isolated CPUs, else the highest one].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Length of each of the three phases; half of it measures wake-ups, half noise.
    #[arg(long, default_value = "20s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// New or empty directory for the run [default: stillcore-TIME in the current directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of the summary.
    #[arg(long)]
    pub(crate) json: bool,
    /// Distance of the wake-up probe's releases.
    #[arg(long, default_value = "200us", value_name = "TIME", value_parser = duration)]
    pub(crate) period: Duration,
    /// Shortest gap the noise probe stores [default: five turns of its loop, at least 500 ns].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) threshold: Option<Duration>,
    /// SCHED_FIFO priority of the probes; 0 measures under SCHED_OTHER.
    #[arg(long, default_value_t = 80, value_name = "0-98", value_parser = clap::value_parser!(u32).range(0..=98))]
    pub(crate) priority: u32,
    /// Leave idle states to the machine. Else /dev/cpu_dma_latency is held at 0 us meanwhile, as cyclictest does.
    #[arg(long)]
    pub(crate) no_dma_latency: bool,
    /// Stressors for the disturbed phase [default: those of the suite `ordinary`].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) stressors: Vec<String>,
    /// Whether to record the kernel's events: auto does so where it can and says so where it cannot.
    #[arg(long, default_value = "auto")]
    pub(crate) trace: TraceMode,
    /// Where this kernel has no events for the senders of IPIs (before 6.4), probe its functions for them.
    #[arg(long)]
    pub(crate) kprobes: bool,
    /// Record the kernel's stack on the measured CPUs too, where an ordinary task gives one to a
    /// real-time task: tells kernel code that could not be preempted, and adds microseconds to each
    /// wake-up of a busy CPU.
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Record where senders were in user space, too: functions that keep frame pointers. They pay some
    /// microseconds for each event.
    #[arg(long)]
    pub(crate) user_stacks: bool,
    /// Read the mechanisms from this directory instead of the built-in catalogue.
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Directory for the journal [default: /var/lib/stillcore; without root .local/state/stillcore in the home directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// Whether to record events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceMode {
    /// Where it can be done.
    Auto,
    /// Fail where it cannot be done.
    On,
    /// Do not.
    Off,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run directory.
    pub(crate) run: PathBuf,
    /// Count the releases that were at least this late, with intervals, also an hour; may be given several times.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) deadline: Vec<Duration>,
    /// Estimate what lies beyond the largest sample by laws of extremes, or say why it cannot be estimated.
    #[arg(long)]
    pub(crate) tail: bool,
    /// With --tail, the level that is reached once in so many releases, beside n, 10 n and 100 n; may be given several times.
    #[arg(long, value_name = "RELEASES", requires = "tail", value_parser = releases)]
    pub(crate) once_in: Vec<f64>,
    /// Write the page there, and nothing into the run directory.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub(crate) html: Option<PathBuf>,
    /// Print the run's figures in this format instead of the summary, and write nothing into the run directory.
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) format: Option<ReportFormat>,
    /// With --format, where to: a file, of latex a directory [default: standard output].
    #[arg(long, value_name = "PATH", requires = "format")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of the summary.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Formats of a run's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// OpenMetrics text: for Prometheus, as a file of the node exporter's textfile collector as well.
    Openmetrics,
    /// Comma-separated values, one line a figure.
    Csv,
    /// Tables in Markdown.
    Markdown,
    /// pgfplots data with a document that draws them, and a table; needs --out.
    Latex,
    /// The table of csv as Parquet; needs --out.
    Parquet,
}

/// Verbs under `trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceVerb {
    /// Count the events of a trace.dat by name and CPU.
    Counts(CountsArgs),
    /// Count what the function tracer recorded, by list, function and CPU.
    Functions(FunctionsArgs),
    /// Say who interrupted the measured CPUs of a run, and where the latency of its wake-ups went.
    Explain(TraceExplainArgs),
    /// Write every event of the measured CPUs with its source, and the samples, for other tools.
    Export(TraceExportArgs),
    /// Watch any program: what released its threads, how long they waited for a CPU, who preempted them.
    Watch(Box<crate::trace_verb::WatchArgs>),
}

/// Arguments of `trace explain`.
#[derive(Debug, Args)]
pub(crate) struct TraceExplainArgs {
    /// A run directory, or any trace.dat: of trace-cmd, rtla or stillcore.
    #[arg(value_name = "RUN|FILE")]
    pub(crate) run: PathBuf,
    #[command(flatten)]
    pub(crate) threads: TraceThreads,
    /// How many of the latest wake-ups of each window or thread, or of timerlat's samples, to take apart.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) worst: usize,
    /// Only wake-ups that were at least this late.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) over: Option<Duration>,
    /// Only the wake-up that was due at this time, as listed.
    #[arg(long, value_name = "NS", conflicts_with = "over")]
    pub(crate) sample: Option<i64>,
    /// Print the kernel's stack of each source, whole, where one was recorded.
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Print one JSON object instead of words.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose wake-ups of a trace that others have recorded.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TraceThreads {
    /// Of a FILE: the wake-ups of threads of this name [default: of threads under real-time policies].
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    pub(crate) comm: Option<String>,
    /// Of a FILE: the wake-ups of these threads, by the number that the trace gives each.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Vec<i32>,
    /// Of a FILE: only what ran on these CPUs [default: those that the threads ran on].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Of a FILE: only from T0 to T1, seconds as `trace-cmd report` prints them; either may be left out.
    #[arg(long, value_name = "T0..T1", value_parser = seconds_range)]
    pub(crate) window: Option<[i64; 2]>,
}

/// `T0..T1` in seconds, ns.
fn seconds_range(text: &str) -> Result<[i64; 2], String> {
    let wrong =
        || format!("{text:?} is no stretch of time; expected seconds such as 812.25..812.5, or 812.25..");
    let (from, until) = text.split_once("..").ok_or_else(wrong)?;
    let ns = |text: &str, unsaid: i64| if text.is_empty() { Some(unsaid) } else { seconds(text) };
    let window = [ns(from, i64::MIN).ok_or_else(wrong)?, ns(until, i64::MAX).ok_or_else(wrong)?];
    if window[0] > window[1] { Err(wrong()) } else { Ok(window) }
}

/// Seconds with up to nine decimals, exactly; a fraction of a floating-point number would lose ns.
fn seconds(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 9 || !digits(whole) || !digits(part) {
        return None;
    }
    whole.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(format!("{part:0<9}").parse().ok()?)
}

/// Arguments of `trace export`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("formats").required(true).multiple(true))]
pub(crate) struct TraceExportArgs {
    /// A run directory, or a trace.dat of stillcore or trace-cmd.
    #[arg(value_name = "RUN|FILE")]
    pub(crate) source: PathBuf,
    /// Perfetto's own format: for ui.perfetto.dev and its trace processor.
    #[arg(long, value_name = "FILE", group = "formats")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Chrome trace events: JSON.
    #[arg(long, value_name = "FILE", group = "formats")]
    pub(crate) chrome: Option<PathBuf>,
    /// Folded stacks, the time taken by who asked for it and by which functions: for flame graphs.
    #[arg(long, value_name = "FILE", group = "formats")]
    pub(crate) folded: Option<PathBuf>,
    /// The trace as it was recorded: for KernelShark and trace-cmd.
    #[arg(long, value_name = "FILE", group = "formats")]
    pub(crate) dat: Option<PathBuf>,
    /// With --dat, the version of the file [default: that of the trace]; trace-cmd 3 and later write version 7.
    #[arg(long, value_name = "6|7", requires = "dat", value_parser = clap::value_parser!(u32).range(6..=7))]
    pub(crate) version: Option<u32>,
    /// With --version 7, how it is compressed.
    #[arg(long, value_name = "HOW", requires = "version")]
    pub(crate) compression: Option<CompressionName>,
    /// A table, one row an event: for pandas, Polars, DuckDB or R.
    #[arg(long, value_name = "FILE", group = "formats")]
    pub(crate) parquet: Option<PathBuf>,
    /// Only these CPUs [default: those measured; of a plain trace.dat every CPU].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Tell this many events, the first ones, each with its source; what the measuring task causes is not among them.
    #[arg(long, value_name = "N", group = "formats", value_parser = clap::value_parser!(u32).range(1..=4000))]
    pub(crate) events: Option<u32>,
    /// With --events, those about the first event of this class, such as ipi.call.
    #[arg(long, value_name = "CLASS", requires = "events")]
    pub(crate) around: Option<model::EventClass>,
    /// Print one JSON object instead of words.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a trace.dat of version 7 is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressionName {
    /// Not at all.
    None,
    /// zstd, in pure Rust: quick, and larger than what trace-cmd makes.
    Zstd,
}

/// Arguments of `trace counts`.
#[derive(Debug, Args)]
pub(crate) struct CountsArgs {
    /// A trace.dat, of stillcore or trace-cmd, or the text of tracefs' `trace` or `trace_pipe`.
    #[arg(required_unless_present = "raw")]
    pub(crate) file: Option<PathBuf>,
    /// Count raw pages instead: a directory with cpuN.raw, or with cpuN/trace_pipe_raw.
    #[arg(long, value_name = "DIR", requires = "formats", conflicts_with = "file")]
    pub(crate) raw: Option<PathBuf>,
    /// The `events` directory of the kernel that wrote raw pages, or a copy.
    #[arg(long, value_name = "DIR", requires = "raw")]
    pub(crate) formats: Option<PathBuf>,
    /// Count another buffer than the top one: its name, or all for every buffer.
    #[arg(long, value_name = "NAME|all", conflicts_with = "raw")]
    pub(crate) buffer: Option<String>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `trace functions`.
#[derive(Debug, Args)]
pub(crate) struct FunctionsArgs {
    /// A trace.dat with entries of the function or function_graph tracer.
    pub(crate) file: PathBuf,
    /// Only these CPUs [default: all].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Read another buffer than the top one: its name, or all for every buffer.
    #[arg(long, value_name = "NAME|all")]
    pub(crate) buffer: Option<String>,
    /// Beside the events the lines that a published grep finds in the text of the trace, and why they are no events.
    #[arg(long)]
    pub(crate) paper_grep: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Verbs under `lab`.
#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// Boot a kernel under QEMU, run a command there as root, bring its files back.
    Run(Box<crate::lab_verb::RunArgs>),
    /// Boot kernels with several ways of isolating, and compare their exposure to each stressor.
    Matrix(Box<crate::lab_matrix::MatrixArgs>),
}

/// A number of releases: a count, or a power of ten such as 1e8.
fn releases(text: &str) -> Result<f64, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".e".contains(&byte));
    let number = text.parse::<f64>().ok().filter(|number| plain && number.is_finite() && *number >= 1.0);
    number.ok_or_else(|| "expected a number of releases, such as 100000000 or 1e8".to_owned())
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
