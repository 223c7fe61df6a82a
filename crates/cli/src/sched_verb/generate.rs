//! `stillcore sched generate`: random task sets, one question per line.

use super::jitter::JitterArgs;
use crate::stdout;
use clap::{Args, ValueEnum};
use model::Error;
use sched::asked::Unit;
use sched::generate::{
    GenerateError, Generator, Periods, Sharing, Spec, Utilizations, read_periods, read_time,
};
use sched::question_line;
use std::io::{self, Write};

/// Arguments of `sched generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Number of sets.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Number of the first set; set I of a seed is always the same.
    #[arg(long, default_value_t = 0, value_name = "I")]
    first: u64,
    /// Random seed.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    set: SetArgs,
    /// Release jitter of every task.
    #[arg(long, default_value = "0us", value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    jitter: u64,
    #[command(flatten)]
    from: JitterArgs,
}

/// Properties of a set.
#[derive(Debug, Args)]
struct SetArgs {
    /// Tasks per set.
    #[arg(long = "n", default_value_t = 40, value_name = "N")]
    tasks: usize,
    /// Sum of the tasks' utilizations.
    #[arg(long, default_value_t = 0.8, value_name = "U", allow_negative_numbers = true)]
    utilization: f64,
    /// Method that divides --utilization [default: uunifast, above 1 randfixedsum].
    #[arg(long, value_name = "HOW")]
    utilizations: Option<Division>,
    /// Distribution of periods: uniform:LOW:HIGH[:STEP], log-uniform:LOW:HIGH[:STEP],
    /// harmonic:LOW:HIGH[:FACTOR], list:T,T.
    #[arg(long, default_value = "uniform:10ms:100ms", value_name = "LAW", value_parser = periods)]
    periods: Periods,
    /// Range of deadlines as shares of the period, uniformly distributed.
    #[arg(long, default_value = "1:1", value_name = "LOW:HIGH", value_parser = shares, allow_hyphen_values = true)]
    deadlines: [f64; 2],
    /// Cores of the system.
    #[arg(long, default_value_t = 1, value_name = "M")]
    cores: u32,
    /// Draw --n tasks with --utilization for each core.
    #[arg(long)]
    per_core: bool,
    /// Number of shared resources.
    #[arg(long, default_value_t = 0, value_name = "N")]
    resources: u32,
    /// Probability that a task requests a resource.
    #[arg(long, default_value_t = 1.0, value_name = "P", requires = "resources")]
    access: f64,
    /// Most requests of a job per resource.
    #[arg(long, default_value_t = 1, value_name = "N", requires = "resources")]
    requests: u64,
    /// Shortest and longest critical section.
    #[arg(long, default_value = "100us:100us", value_name = "LOW:HIGH", value_parser = times, requires = "resources")]
    section: [u64; 2],
    /// Share of the tasks that only read.
    #[arg(long, default_value_t = 0.0, value_name = "P", requires = "resources")]
    readers: f64,
}

/// Method that divides a utilization.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Division {
    Uunifast,
    Randfixedsum,
}

fn time(text: &str) -> Result<u64, String> {
    read_time(text).map_err(|error| error.to_string())
}

fn periods(text: &str) -> Result<Periods, String> {
    read_periods(text).map_err(|error| error.to_string())
}

fn pair(text: &str) -> Result<(&str, &str), String> {
    text.split_once(':').ok_or_else(|| format!("invalid range {text:?}: expected two values, as in LOW:HIGH"))
}

fn times(text: &str) -> Result<[u64; 2], String> {
    let (low, high) = pair(text)?;
    Ok([time(low)?, time(high)?])
}

fn shares(text: &str) -> Result<[f64; 2], String> {
    let (low, high) = pair(text)?;
    let number =
        |text: &str| text.parse::<f64>().map_err(|_| format!("invalid share {text:?}: expected a number"));
    Ok([number(low)?, number(high)?])
}

impl SetArgs {
    fn spec(&self, jitter_ns: u64) -> Spec {
        let usual = if self.utilization > 1.0 { Division::Randfixedsum } else { Division::Uunifast };
        Spec {
            tasks: self.tasks,
            utilization: self.utilization,
            utilizations: match self.utilizations.unwrap_or(usual) {
                Division::Uunifast => Utilizations::UUniFast,
                Division::Randfixedsum => Utilizations::RandFixedSum,
            },
            periods: self.periods.clone(),
            deadlines: self.deadlines,
            jitter_ns,
            cores: self.cores,
            per_core: self.per_core,
            sharing: (self.resources > 0).then_some(Sharing {
                resources: self.resources,
                probability: self.access,
                requests: self.requests,
                length_ns: self.section,
                readers: self.readers,
            }),
        }
    }
}

/// What is wrong with a specification, in the shape of every error.
pub(crate) fn refused(place: &str, error: GenerateError) -> anyhow::Error {
    match error {
        GenerateError::Spec { field, found, expected } => {
            // A file says `tasks`, the command line --n.
            let field = if place == "--" && field == "tasks" { "n" } else { field };
            Error::invalid(format!("{place}{field}"), found, expected).into()
        }
        other => other.into(),
    }
}

/// Draws and prints.
pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<u8> {
    let jitter_ns = args.jitter.saturating_add(args.from.resolve()?);
    let generator =
        Generator::new(args.set.spec(jitter_ns), args.seed).map_err(|error| refused("--", error))?;
    let Some(end) = args.first.checked_add(args.count) else {
        return Err(Error::invalid("--first", args.first, "a number with room for --count behind it").into());
    };
    let mut out = stdout::long(stdout::ROOM);
    for set in args.first..end {
        let system = generator.system(set)?;
        // Every time is a whole number of ns.
        let line = question_line(&system, Unit::Ns).unwrap_or_default();
        match writeln!(out, "{line}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(0),
            result => result?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        result => Ok(result.map(|()| 0)?),
    }
}
