//! `stillcore measure spin`: a busy loop that stores every gap.

use super::Common;
use super::carry_out::{Outcome, carry_out, place};
use super::schedule::Schedule;
use super::table::{ending, json, quantile, table, threads, time};
use crate::args::duration;
use clap::Args;
use linux::measure::spec::{NoiseSpec, ProbeSpec, Task};
use linux::sys::signals::EndSignals;
use model::{Cpus, Error};
use report::format;
use std::time::Duration;

/// Above most real-time threads, below what must not wait for a busy loop.
const PRIORITY: u32 = 80;

/// Arguments of `measure spin`.
#[derive(Debug, Args)]
pub(crate) struct SpinArgs {
    /// What all measurements take.
    #[command(flatten)]
    pub(crate) common: Common,
    /// How long to measure.
    #[arg(long, short = 'D', default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Shortest gap that is stored [default: five turns of the loop, at least 500 ns].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) threshold: Option<Duration>,
    /// How long the loop runs at a stretch.
    #[arg(long, default_value = "800ms", value_name = "TIME", value_parser = duration)]
    pub(crate) stretch: Duration,
    /// How long it pauses then, so that neither throttling nor the fair server has to end it.
    #[arg(long, default_value = "200ms", value_name = "TIME", value_parser = duration)]
    pub(crate) pause: Duration,
    /// What a turn does besides reading the counter: none, or memmove:SIZE with SIZE in bytes, K or M.
    #[arg(long, default_value = "none", value_name = "WHAT", value_parser = workload)]
    pub(crate) workload: u64,
    /// How threads are scheduled.
    #[command(flatten)]
    pub(crate) schedule: Schedule,
}

/// Bytes that a turn copies.
fn workload(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no workload; expected none or memmove:SIZE, such as memmove:4K");
    if text == "none" {
        return Ok(0);
    }
    let size = text.strip_prefix("memmove:").ok_or_else(wrong)?;
    let (digits, unit) = match size.char_indices().last() {
        Some((at, 'K' | 'k')) => (&size[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&size[..at], 1 << 20),
        _ => (size, 1),
    };
    let bytes = digits.parse::<u64>().map_err(|_| wrong())?.saturating_mul(unit);
    if (1..=64 << 20).contains(&bytes) { Ok(bytes) } else { Err(wrong()) }
}

/// Measures and prints.
pub(crate) fn run(args: &SpinArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    check(args)?;
    let place = place(&args.common, false)?;
    let policy = args.schedule.policy(args.stretch + args.pause, PRIORITY)?;
    let nanos = |time: Duration| time.as_nanos() as i64;
    let spec = |(thread, cpu)| ProbeSpec {
        thread,
        cpus: Cpus::one(cpu),
        policy: policy.clone(),
        timer_slack_ns: nanos(args.schedule.timer_slack) as u64,
        duration_ns: nanos(args.duration),
        task: Task::Noise(NoiseSpec {
            threshold_ns: args.threshold.map_or(0, |time| nanos(time) as u64),
            spin_ns: nanos(args.stretch),
            pause_ns: nanos(args.pause),
            memmove_bytes: args.workload,
        }),
    };
    let probes = (0..).zip(place.measured.iter()).map(spec).collect();
    let outcome = carry_out(&place, &args.common, probes, signals)?;
    if args.common.json {
        println!("{}", json(&outcome, "stillcore.measure-spin/1"));
    } else {
        print!("{}", text(&outcome));
    }
    Ok(u8::from(outcome.interrupted.is_some()))
}

fn check(args: &SpinArgs) -> Result<(), Error> {
    let refuse = |option: &str, found: Duration, expected: &str| {
        Err(Error::invalid(option.to_owned(), format!("{found:?}"), expected.to_owned()))
    };
    if args.stretch < Duration::from_millis(1) {
        return refuse("--stretch", args.stretch, "at least 1ms");
    }
    if args.duration < args.stretch {
        return refuse("--duration", args.duration, "at least one --stretch");
    }
    if args.duration > Duration::from_secs(7 * 86400) {
        return refuse("--duration", args.duration, "at most 168h");
    }
    Ok(())
}

fn text(outcome: &Outcome) -> String {
    let rows = threads(outcome).map(|(record, figures)| {
        let stolen = figures.stolen.as_ref();
        let turn = record.spin_ns as f64 / record.iterations.max(1) as f64;
        vec![
            record.cpu.to_string(),
            format::count(record.iterations),
            format!("{turn:.1} ns"),
            format::count(figures.n),
            stolen.map_or_else(String::new, |stolen| format::share(stolen.share)),
            time(quantile(&figures.quantiles, 0.5)),
            time(quantile(&figures.quantiles, 0.99)),
            time(figures.observed_max_ns),
        ]
    });
    let first = outcome.document.run.probes.first();
    let mut text = first.map_or_else(String::new, |probe| {
        format!(
            "noise: gaps of a busy loop of {} and longer; {} {}, counter {}\n",
            time(probe.threshold_ns.map(|ns| ns as i64)),
            probe.policy_effective.name,
            probe.policy_effective.priority,
            probe.counter
        )
    });
    let head = ["CPU", "turns", "a turn", "gaps", "stolen", "p50", "p99", "observed max"];
    text += &table(&head, rows.collect());
    text + &ending(outcome)
}
