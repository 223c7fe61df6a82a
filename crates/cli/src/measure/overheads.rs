//! `stillcore measure overheads`: what the kernel's own work costs, in the form schedulability
//! analysis takes.

mod traced;

use super::Common;
use super::carry_out::{Outcome, carry_out_and, place};
use super::schedule::{PolicyName, Schedule};
use super::table::{ending, json};
use crate::run::place::Place;
use crate::values::TraceMode;
use analysis::overheads::{Accounting, Take, accounting};
use anyhow::Context;
use clap::{Args, ValueEnum};
use measure::spec::{OverheadsSpec, ProbeSpec, Task};
use model::quantity::bytes;
use model::{Cpus, Error};
use serde_json::json;
use std::time::Duration;
use sys::signals::EndSignals;
use traced::Traced;

/// Above most real-time threads, below what must not wait for a busy loop.
const PRIORITY: u32 = 80;
/// The first sample of each term is stored and not counted.
const WARM_UP: u32 = 1;
/// How long the loop looks for ticks: less than real-time throttling leaves per second.
const GAPS_NS: i64 = 700_000_000;
/// A window that this is too short for ends with what it has: nothing here takes as long.
const LONGEST_NS: i64 = 60_000_000_000;

/// Arguments of `measure overheads`.
#[derive(Debug, Args)]
pub(crate) struct OverheadsArgs {
    /// Options common to all measurements. Exactly one CPU is measured: the first of --cpus.
    #[command(flatten)]
    pub(crate) common: Common,
    /// Samples per overhead term.
    #[arg(long, short = 'n', default_value_t = 1200, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=100_000))]
    pub(crate) count: u32,
    /// Samples of the cache terms per working set.
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=10_000))]
    pub(crate) cache_count: u32,
    /// Working sets for the cache terms, rounded up to a power of two; bytes, K or M.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4K,16K,32K,64K,256K,1M,4M", value_parser = size)]
    pub(crate) sizes: Vec<u64>,
    /// Second CPU, for inter-processor interrupts and migration [default: the highest housekeeping
    /// CPU].
    #[arg(long, value_name = "CPU")]
    pub(crate) partner: Option<u32>,
    /// Statistic of each distribution for schedulability analysis.
    #[arg(long, default_value = "max", value_name = "WHAT")]
    pub(crate) take: TakeName,
    /// Record events afterwards, to measure the same terms with the kernel's tracepoints.
    #[arg(long, value_name = "MODE", default_value = "auto", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) trace: TraceMode,
    /// Scheduling of the threads.
    #[command(flatten)]
    pub(crate) schedule: Schedule,
}

/// Statistics of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TakeName {
    /// The median.
    Median,
    /// The 99th percentile.
    P99,
    /// The observed maximum.
    Max,
}

impl TakeName {
    pub(crate) fn take(self) -> Take {
        match self {
            Self::Median => Take::Median,
            Self::P99 => Take::P99,
            Self::Max => Take::Max,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Median => "medians",
            Self::P99 => "99th percentiles",
            Self::Max => "observed maxima",
        }
    }
}

fn size(text: &str) -> Result<u64, String> {
    let size = bytes(text).and_then(|bytes| bytes.max(1).checked_next_power_of_two());
    size.filter(|size| (64..=64 << 20).contains(size))
        .ok_or_else(|| format!("invalid size {text:?}: expected 64 bytes to 64M, such as 256K"))
}

/// Measures and prints.
pub(crate) fn run(args: &OverheadsArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    if args.schedule.policy == PolicyName::Deadline {
        let expected = "fifo, rr or other: a reservation would end in the middle of a term";
        return Err(Error::invalid("--policy", "deadline", expected).into());
    }
    let mut place = place(&args.common, false)?;
    let cpu = place.measured.iter().next().context("there is no CPU to measure")?;
    place.measured = Cpus::one(cpu);
    let partner = partner(args, &place, cpu)?;
    let probe = ProbeSpec {
        thread: 0,
        cpus: Cpus::one(cpu),
        policy: args.schedule.policy(Duration::from_secs(1), PRIORITY)?,
        timer_slack_ns: args.schedule.timer_slack.as_nanos() as u64,
        duration_ns: LONGEST_NS,
        task: Task::Overheads(OverheadsSpec {
            count: args.count + WARM_UP,
            cache_count: args.cache_count + WARM_UP,
            bytes: args.sizes.clone(),
            partner,
            gaps_ns: GAPS_NS,
        }),
    };
    let order = Traced { mode: args.trace, cpu, partner, policy: probe.policy.clone() };
    let outcome = carry_out_and(&place, &args.common, vec![probe], signals, &mut |output, session| {
        traced::window(&order, &place, output, session, signals)
    })?;
    let record = outcome.document.run.probes.first().context("the probe left no record")?;
    let section = outcome.document.analysis.overheads.first().context("the probe left no samples")?;
    let given = accounting(section, args.take.take());
    if args.common.json {
        let mut value = json(&outcome, "stillcore.measure-overheads/2");
        value["threads"] = json!([record]);
        value["cpu"] = cpu.into();
        value["partner"] = partner.into();
        value["tick_period_ns"] = section.tick_period_ns.into();
        value["terms"] = serde_json::to_value(&section.terms)?;
        value["traced"] = serde_json::to_value(&section.traced)?;
        value["taken"] = args.take.words().into();
        value["overheads_ns"] = serde_json::to_value(&given)?;
        println!("{value}");
    } else {
        print!("{}", text(args, &outcome, &given));
    }
    Ok(outcome.status())
}

fn partner(args: &OverheadsArgs, place: &Place, cpu: u32) -> Result<Option<u32>, Error> {
    let Some(asked) = args.partner else {
        return Ok(place.housekeeping.iter().filter(|other| *other != cpu).last());
    };
    if asked == cpu || !place.machine.topology.online.contains(asked) {
        let expected = format!("an online CPU other than {cpu}");
        return Err(Error::invalid("--partner", asked.to_string(), expected));
    }
    Ok(Some(asked))
}

fn text(args: &OverheadsArgs, outcome: &Outcome, given: &Accounting) -> String {
    let given = serde_json::to_string(given).unwrap_or_default();
    let found = report::measured(&outcome.document, crate::terminal::plain_options());
    format!(
        "{found}for schedulability analysis ({}, ns; null: not measured, or too few samples for this):\n{given}\n{}",
        args.take.words(),
        ending(outcome)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two() {
        assert_eq!(size("4K"), Ok(4096));
        assert_eq!(size("3M"), Ok(4 << 20));
        for wrong in ["", "K", "-4K", "65M", "4G", "0x10", "99999999999999999999"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
