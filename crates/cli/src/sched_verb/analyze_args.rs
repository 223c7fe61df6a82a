//! Arguments of `sched analyze`.

use crate::sched_verb::jitter::JitterArgs;
use crate::sched_verb::overheads::OverheadsArgs;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use machine::Root;
use sched::asked::Unit;
use sched::global::sched_deadline::FairServer;
use sched::locks::{Protocol, Semantics};
use sched::{Heuristic, Order, Test};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `sched analyze`.
#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// Task sets: JSON lines, one object a set, or a Parquet or Arrow table, one row a task;
    /// - = standard input (JSON lines).
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Schedulability test.
    #[arg(long, value_name = "NAME", default_value = "fp-rta", value_parser = PossibleValuesParser::new(Test::ALL.map(Test::name)))]
    pub(crate) test: String,
    /// Assign tasks to cores first, by bin packing: first, worst, best or next fit; d = decreasing
    /// utilization.
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(Heuristic::ALL.map(|(name, _)| name)))]
    pub(crate) partition: Option<String>,
    /// Give priorities anew, core by core: rate or deadline monotonic, deadlines less jitter, or
    /// Audsley's search for an order that holds.
    #[arg(long, value_name = "HOW", conflicts_with_all = ["certificate", "probabilistic"], value_parser = PossibleValuesParser::new(Order::ALL.map(Order::name)))]
    pub(crate) order: Option<String>,
    /// Locking protocol for shared resources: waiters spin, or suspend under pip
    /// (PTHREAD_PRIO_INHERIT), mpcp, fmlp+, dpcp, omlp and omlp-rw; omlp also with global tests.
    #[arg(long, value_name = "PROTOCOL", value_parser = PossibleValuesParser::new(Protocol::ALL.map(Protocol::name)))]
    pub(crate) locks: Option<String>,
    /// Hold resources of a single core at their priority ceiling (PTHREAD_PRIO_PROTECT) instead of
    /// non-preemptively; msrp-*, mpcp and dpcp always do.
    #[arg(long, requires = "locks")]
    pub(crate) ceilings: bool,
    /// Bound blocking once, from the given response times; no verdict.
    #[arg(long, requires = "locks", conflicts_with = "overheads")]
    pub(crate) blocking_only: bool,
    /// Counting rules of --blocking-only; verdicts are always sound.
    #[arg(long, value_name = "WHOSE", default_value = "schedcat", requires = "blocking_only", value_parser = PossibleValuesParser::new(Semantics::ALL.map(Semantics::name)))]
    pub(crate) semantics: String,
    #[command(flatten)]
    pub(crate) jitter: JitterArgs,
    #[command(flatten)]
    pub(crate) probabilistic: ProbabilisticArgs,
    /// Effect of release jitter under edf-qpa.
    #[arg(long, value_name = "HOW", value_enum, default_value = "d")]
    pub(crate) edf_jitter: EdfJitter,
    #[command(flatten)]
    pub(crate) overheads: OverheadsArgs,
    /// CPU time for real-time tasks per core and --rt-period, us; -1 = unlimited (sched-deadline;
    /// kernel.sched_rt_runtime_us).
    #[arg(long, value_name = "US", default_value_t = 950_000, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-1..=1 << 40))]
    pub(crate) rt_runtime: i64,
    /// Period of --rt-runtime, us (kernel.sched_rt_period_us).
    #[arg(long, value_name = "US", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub(crate) rt_period: u64,
    /// Reservation of each core's fair server: RUNTIME/PERIOD in us, none, or here = this machine's
    /// (sched-deadline).
    #[arg(long, value_name = "WHAT", default_value = "50000/1000000", value_parser = fair_server)]
    pub(crate) fair_server: FairServer,
    /// Add a certificate that proves each answer (fp-rta, edf-qpa), for check-certificate; with
    /// --json.
    #[arg(long, requires = "json", conflicts_with_all = ["locks", "overheads"])]
    pub(crate) certificate: bool,
    /// Unit of the times in a table, JSON lines name theirs [default: ns].
    #[arg(long, value_name = "UNIT", conflicts_with = "probabilistic", value_parser = PossibleValuesParser::new(Unit::ALL.map(Unit::name)))]
    pub(crate) unit: Option<String>,
    /// Number of threads [default: one per CPU].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Report a line that is not a task set, and continue.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Acceptable probability of late jobs.
#[derive(Debug, Args)]
pub(crate) struct ProbabilisticArgs {
    /// Compute the probability of a late job, from all wake-ups of --jitter-from instead of the
    /// maximum (fp-rta).
    #[arg(long, requires = "jitter_from", conflicts_with_all = ["jitter_at", "edf_jitter", "locks", "overheads", "certificate"])]
    pub(crate) probabilistic: bool,
    /// Highest acceptable probability of a late job.
    #[arg(long, value_name = "P", default_value_t = 0.001, requires = "probabilistic", value_parser = probability)]
    pub(crate) late_at_most: f64,
    /// Assumed upper limit of release lateness, measured or not [default: the shortest period of
    /// the task's core].
    #[arg(long, value_name = "TIME", requires = "probabilistic", value_parser = model::quantity::duration)]
    pub(crate) latest: Option<Duration>,
}

/// Effect of release jitter under EDF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EdfJitter {
    /// Shorten deadlines, D - J: exact
    D,
    /// Shorten periods and deadlines, T - J and D - J: as SchedCAT does, pessimistic
    Td,
}

/// A fair server as it is given.
pub(super) fn fair_server(text: &str) -> Result<FairServer, String> {
    match text {
        "none" => Ok(FairServer::NONE),
        "here" => Ok(measure::budgets::largest_fair_server(&Root::live()).map_or(FairServer::NONE, |one| {
            FairServer {
                runtime_us: one.runtime_ns.div_ceil(1_000),
                period_us: (one.period_ns / 1_000).max(1),
            }
        })),
        _ => {
            let parts = text.split_once('/').map(|(runtime, period)| (runtime.parse(), period.parse()));
            match parts {
                Some((Ok(runtime_us), Ok(period_us)))
                    if runtime_us <= period_us && (1..=1 << 40).contains(&period_us) =>
                {
                    Ok(FairServer { runtime_us, period_us })
                }
                _ => {
                    let expected = "RUNTIME/PERIOD in us, such as 50000/1000000, or none, or here";
                    Err(format!("invalid reservation {text:?}: expected {expected}"))
                }
            }
        }
    }
}

pub(super) fn probability(text: &str) -> Result<f64, String> {
    let known = text.parse().ok().filter(|p: &f64| *p > 0.0 && *p < 1.0);
    known.ok_or_else(|| format!("invalid probability {text:?}: expected a number between 0 and 1"))
}
