//! The arguments of `measure periodic`, and which of them cannot be carried out.

use crate::measure::Common;
use crate::measure::repeating::Repeating;
use crate::measure::schedule::{PolicyName, Schedule};
use crate::measure::stopping::Stopping;
use crate::measure::tracing::Tracing;
use clap::{Args, ValueEnum};
use measure::job::Work;
use model::quantity::{bytes, duration};
use model::{Cpus, Error};
use std::path::PathBuf;
use std::time::Duration;
use sys::perf::Event;

/// Arguments of `measure periodic`.
#[derive(Debug, Args)]
pub(crate) struct PeriodicArgs {
    /// Options common to all measurements.
    #[command(flatten)]
    pub(crate) common: Common,
    /// Events to record.
    #[command(flatten)]
    pub(crate) tracing: Tracing,
    /// What ends it before its time.
    #[command(flatten)]
    pub(crate) stopping: Stopping,
    /// How often to measure.
    #[command(flatten)]
    pub(crate) repeating: Repeating,
    /// How long to measure, after the warm-up.
    #[arg(long, short = 'D', default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Jobs per second.
    #[arg(long, default_value = "8", value_name = "HZ", conflicts_with = "period", value_parser = rate)]
    pub(crate) rate: f64,
    /// Release interval, instead of --rate.
    #[arg(long, short = 'i', value_name = "TIME", value_parser = duration)]
    pub(crate) period: Option<Duration>,
    /// Computation of each job.
    #[arg(long, default_value = "attitude", value_name = "WHAT")]
    pub(crate) work: WorkName,
    /// Size of the array for --work array; bytes, K or M [default: 64K].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) size: Option<u64>,
    /// CPU time of each job, for --work busy.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) busy: Option<Duration>,
    /// Compute nothing, to measure the cost of measuring.
    #[arg(long, conflicts_with_all = ["work", "size", "busy"])]
    pub(crate) empty: bool,
    /// Source of a job's inputs. With pipe, one process fills it and another compares the outputs.
    #[arg(long, default_value = "pipe", value_name = "FROM")]
    pub(crate) input: InputName,
    /// Number of parallel copies; the first is the victim, the others run anywhere.
    #[arg(long, short = 'n', default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) copies: u32,
    /// Affinity of the victim: pinned = the first measured CPU; free = any CPU that stillcore may
    /// use, measured or not [default: pinned; under deadline free].
    #[arg(long, value_name = "HOW")]
    pub(crate) victim: Option<Victim>,
    /// CPUs of the processes at the pipes [default: any].
    #[arg(long, value_name = "LIST")]
    pub(crate) io_cpus: Option<Cpus>,
    /// Executable, input and output file of the copies: shared, or inodes of their own.
    #[arg(long, default_value = "same", value_name = "WHOSE")]
    pub(crate) files: Files,
    /// Measure twice, with shared files and then with separate ones; print both.
    #[arg(long, conflicts_with = "files")]
    pub(crate) compare_files: bool,
    /// Directory for these files while measuring [default: that of the journal].
    #[arg(long, value_name = "DIR")]
    pub(crate) files_in: Option<PathBuf>,
    /// Events to count around each job, as a list of names, or NAME=rHEX for a raw event of this
    /// CPU.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = DEFAULT_COUNTERS)]
    pub(crate) counters: Vec<Event>,
    /// Release of a job [default: timer; under deadline scheduler].
    #[arg(long, value_name = "WHAT")]
    pub(crate) wake: Option<WakeName>,
    /// Scheduling of the jobs.
    #[command(flatten)]
    pub(crate) schedule: Schedule,
    /// Warm-up releases before --duration counts, stored but excluded from the statistics.
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) warm_up: u32,
}

/// No more than the six counters of a small core, so that nothing is multiplexed; then what every
/// kernel counts.
const DEFAULT_COUNTERS: &str =
    "l1d_refill,l1i_refill,l2d_refill,ll_refill,bus_access,switches,migrations,faults";

/// Computation of each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkName {
    /// An attitude-control step.
    Attitude,
    /// The sum of an array (--size).
    Array,
    /// A calibrated loop (--busy).
    Busy,
}

/// Source of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputName {
    /// Memory of the job.
    Memory,
    /// A file.
    File,
    /// A pipe.
    Pipe,
}

/// Affinity of the victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Victim {
    /// One CPU.
    Pinned,
    /// Any CPU.
    Free,
}

/// Files of the copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Files {
    /// One set for all copies.
    Same,
    /// One set per copy.
    Own,
}

/// Release of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WakeName {
    /// Timer of CLOCK_MONOTONIC.
    Timer,
    /// SCHED_DEADLINE, by the scheduler's clock.
    Scheduler,
}

impl Files {
    /// As the directory of a group is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Own => "own",
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let hz = text.strip_suffix("Hz").unwrap_or(text).trim().parse::<f64>().ok();
    hz.filter(|hz| (1e-3..=50_000.0).contains(hz))
        .ok_or_else(|| format!("invalid rate {text:?}: expected 0.001 to 50000 jobs per second"))
}

fn size(text: &str) -> Result<u64, String> {
    bytes(text)
        .filter(|bytes| (1..=1 << 30).contains(bytes))
        .ok_or_else(|| format!("invalid size {text:?}: expected 1 to 1024M, such as 64K"))
}

/// What a job computes.
pub(super) fn work(args: &PeriodicArgs) -> Work {
    const SIZE: u64 = 64 << 10;
    match args.work {
        _ if args.empty => Work::Empty,
        WorkName::Attitude => Work::Attitude,
        WorkName::Array => Work::Array { bytes: args.size.unwrap_or(SIZE) },
        WorkName::Busy => Work::Busy { ns: args.busy.unwrap_or_default().as_nanos() as u64 },
    }
}

/// Interval between releases.
pub(super) fn period(args: &PeriodicArgs) -> Duration {
    args.period.unwrap_or_else(|| Duration::from_secs_f64(1.0 / args.rate))
}

/// Refuses what cannot be carried out.
pub(super) fn check(args: &PeriodicArgs) -> Result<(), Error> {
    let refuse = |option: &str, found: String, expected: &str| {
        Err(Error::invalid(option.to_owned(), found, expected.to_owned()))
    };
    let period = period(args);
    if period < Duration::from_micros(20) {
        return refuse("--period", format!("{period:?}"), "at least 20us");
    }
    if args.duration < period * 2 {
        return refuse("--duration", format!("{:?}", args.duration), "room for two jobs");
    }
    if args.duration > Duration::from_secs(7 * 86400) {
        return refuse("--duration", format!("{:?}", args.duration), "at most 168h");
    }
    if args.size.is_some() && args.work != WorkName::Array {
        return refuse("--size", "a size without an array".to_owned(), "--work array");
    }
    if args.busy.is_some() != (args.work == WorkName::Busy) {
        return refuse("--busy", "not both of a time and --work busy".to_owned(), "--work busy --busy TIME");
    }
    if args.busy.is_some_and(|time| time > Duration::from_secs(2)) {
        return refuse("--busy", format!("{:?}", args.busy.unwrap_or_default()), "at most 2s");
    }
    if args.wake == Some(WakeName::Scheduler) && args.schedule.policy != PolicyName::Deadline {
        return refuse(
            "--wake",
            "the scheduler's releases without SCHED_DEADLINE".to_owned(),
            "--policy deadline",
        );
    }
    Ok(())
}
