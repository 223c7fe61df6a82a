//! Arguments of the verbs of `trace`.

use clap::{Args, ValueEnum};
use model::Cpus;
use model::quantity::duration;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `trace explain`.
#[derive(Debug, Clone, Args)]
pub(crate) struct TraceExplainArgs {
    /// Run directory, or any trace.dat of trace-cmd, rtla or stillcore.
    #[arg(value_name = "RUN|FILE")]
    pub(crate) run: PathBuf,
    #[command(flatten)]
    pub(crate) threads: TraceThreads,
    /// Number of worst wake-ups to break down per window or thread, or of timerlat's samples
    /// [default: 3 in all; with --json 3 of each].
    #[arg(long, value_name = "N")]
    pub(crate) worst: Option<usize>,
    /// Only wake-ups at least this late.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) over: Option<Duration>,
    /// Only the wake-up due at this time, as listed: seconds with a point, or ns without.
    #[arg(long, value_name = "TIME", conflicts_with = "over", value_parser = sample_time)]
    pub(crate) sample: Option<i64>,
    /// Print the full kernel stack of each source, if recorded.
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Also print what the trace shows of each class of sources, and the command that records more.
    #[arg(long)]
    pub(crate) sources: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Samples that are taken apart unless the user gives a number.
const WORST: usize = 3;

impl TraceExplainArgs {
    /// Samples to take apart of each window or thread.
    pub(crate) fn of_each(&self) -> usize {
        self.worst.unwrap_or(WORST)
    }

    /// Samples to print in all, of `groups` windows or threads.
    pub(crate) fn in_all(&self, groups: usize) -> usize {
        self.worst.map_or(WORST, |each| each.saturating_mul(groups))
    }
}

/// Selection of wake-ups in a trace of another tool.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TraceThreads {
    /// For a FILE: wake-ups of threads with this name [default: threads under real-time policies].
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    pub(crate) comm: Option<String>,
    /// For a FILE: wake-ups of these threads, by thread ID as recorded in the trace.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Vec<i32>,
    /// For a FILE: only these CPUs [default: those that the threads ran on].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// For a FILE: only from T0 to T1, seconds as `trace-cmd report` prints them; both optional.
    #[arg(long, value_name = "T0..T1", value_parser = seconds_range)]
    pub(crate) window: Option<[i64; 2]>,
}

/// `T0..T1` in seconds, ns.
pub(crate) fn seconds_range(text: &str) -> Result<[i64; 2], String> {
    let wrong =
        || format!("invalid time range {text:?}: expected seconds such as 812.25..812.5, or 812.25..");
    let (from, until) = text.split_once("..").ok_or_else(wrong)?;
    let ns = |text: &str, unsaid: i64| if text.is_empty() { Some(unsaid) } else { seconds(text) };
    let window = [ns(from, i64::MIN).ok_or_else(wrong)?, ns(until, i64::MAX).ok_or_else(wrong)?];
    if window[0] > window[1] { Err(wrong()) } else { Ok(window) }
}

/// The time of a sample, ns: seconds with a point, as they are listed, or ns.
fn sample_time(text: &str) -> Result<i64, String> {
    let ns = if text.contains('.') { seconds(text) } else { text.parse().ok() };
    ns.ok_or_else(|| format!("invalid time {text:?}: expected seconds such as 6.832140330, or ns"))
}

/// Seconds with up to nine decimals, exactly; a fraction of a floating-point number would lose ns.
pub(crate) fn seconds(text: &str) -> Option<i64> {
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
    /// Run directory, or a trace.dat of stillcore or trace-cmd.
    #[arg(value_name = "RUN|FILE")]
    pub(crate) source: PathBuf,
    /// Native Perfetto trace, for ui.perfetto.dev and its trace processor.
    #[arg(long, value_name = "FILE", group = "formats")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Chrome trace events, JSON.
    #[arg(long, value_name = "FILE", group = "formats")]
    pub(crate) chrome: Option<PathBuf>,
    /// Folded stacks for flame graphs: time taken by each source and its functions.
    #[arg(long, value_name = "FILE", group = "formats")]
    pub(crate) folded: Option<PathBuf>,
    /// The trace as recorded, for KernelShark and trace-cmd.
    #[arg(long, value_name = "FILE", group = "formats")]
    pub(crate) dat: Option<PathBuf>,
    /// With --dat, file version; trace-cmd 3 and later write version 7 [default: that of the
    /// trace].
    #[arg(long, value_name = "6|7", requires = "dat", value_parser = clap::value_parser!(u32).range(6..=7))]
    pub(crate) version: Option<u32>,
    /// With --version 7, compression of the file.
    #[arg(long, value_name = "HOW", requires = "version")]
    pub(crate) compression: Option<CompressionName>,
    /// Table with one row per event, for pandas, Polars, DuckDB or R.
    #[arg(long, value_name = "FILE", group = "formats")]
    pub(crate) parquet: Option<PathBuf>,
    /// Only these CPUs [default: the measured CPUs; of a plain trace.dat all].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Print the first N events, each with its source; excludes those that the measuring task
    /// causes.
    #[arg(long, value_name = "N", group = "formats", value_parser = clap::value_parser!(u32).range(1..=4000))]
    pub(crate) events: Option<u32>,
    /// With --events, print the events around the first event of this class, such as ipi.call.
    #[arg(long, value_name = "CLASS", requires = "events")]
    pub(crate) around: Option<model::EventClass>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Compression of a trace.dat of version 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressionName {
    /// No compression.
    None,
    /// zstd in pure Rust: fast, but larger files than trace-cmd's.
    Zstd,
}

/// Arguments of `trace counts`.
#[derive(Debug, Args)]
pub(crate) struct CountsArgs {
    /// A run directory, a trace.dat of stillcore or trace-cmd, or the text of tracefs' `trace` or
    /// `trace_pipe`.
    #[arg(required_unless_present = "raw")]
    pub(crate) file: Option<PathBuf>,
    /// Count raw pages instead, in a directory with cpuN.raw or cpuN/trace_pipe_raw.
    #[arg(long, value_name = "DIR", requires = "formats", conflicts_with = "file")]
    pub(crate) raw: Option<PathBuf>,
    /// The `events` directory of the kernel that wrote the raw pages, or a copy.
    #[arg(long, value_name = "DIR", requires = "raw")]
    pub(crate) formats: Option<PathBuf>,
    /// Buffer to count, by name; all = every buffer [default: the top-level buffer].
    #[arg(long, value_name = "NAME|all", conflicts_with = "raw")]
    pub(crate) buffer: Option<String>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `trace functions`.
#[derive(Debug, Args)]
pub(crate) struct FunctionsArgs {
    /// A run directory, or a trace.dat, with entries of the function or function_graph tracer.
    pub(crate) file: PathBuf,
    /// Only these CPUs [default: all].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Buffer to read, by name; all = every buffer [default: the top-level buffer].
    #[arg(long, value_name = "NAME|all")]
    pub(crate) buffer: Option<String>,
    /// Also print the lines that a published grep finds in the trace's text, and why they are not
    /// events.
    #[arg(long)]
    pub(crate) paper_grep: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}
