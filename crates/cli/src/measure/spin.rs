//! `stillcore measure spin`: a busy loop that stores every gap.

use super::carry_out::{Beside, Outcome, carry_out, place};
use super::repeating::{Repeating, STOPS};
use super::schedule::Schedule;
use super::stopping::Stopping;
use super::table::json;
use super::tracing::Tracing;
use super::{Common, contexts, spin_text};
use analysis::buckets::Buckets;
use clap::Args;
use measure::spec::{NoiseSpec, ProbeSpec, Task};
use measure::watch::Watch;
use model::quantity::duration;
use model::run::ProbeRecord;
use model::{Cpus, Error, samples_file};
use serde_json::{Value, json};
use std::time::Duration;
use sys::signals::EndSignals;

/// Above most real-time threads, below what must not wait for a busy loop.
const PRIORITY: u32 = 80;

/// Arguments of `measure spin`.
#[derive(Debug, Args)]
pub(crate) struct SpinArgs {
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
    /// Show live what is measured, and what happens on these CPUs; with --trace, also who causes
    /// it. q ends the measurement.
    #[arg(long)]
    pub(crate) live: bool,
    /// How long to measure, after --preheat.
    #[arg(long, short = 'D', default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Shortest gap to store [default: five loop iterations, at least 500 ns].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) threshold: Option<Duration>,
    /// How long the loop runs without a pause.
    #[arg(long, default_value = "800ms", value_name = "TIME", value_parser = duration)]
    pub(crate) stretch: Duration,
    /// Pause after each --stretch, so that neither RT throttling nor the fair server interrupts the
    /// loop.
    #[arg(long, default_value = "200ms", value_name = "TIME", value_parser = duration)]
    pub(crate) pause: Duration,
    /// Warm-up of the loop before --duration; its gaps are stored, flagged as warm-up, and excluded
    /// from the statistics.
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = duration)]
    pub(crate) preheat: Duration,
    /// Subtract the shortest loop iteration, measured before the window, from every gap. Stored
    /// samples are unchanged.
    #[arg(long)]
    pub(crate) bias: bool,
    /// Also count gaps in a histogram with this bucket width [default with --buckets: 1us].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) bucket_width: Option<Duration>,
    /// Number of buckets; longer gaps are counted separately [default with --bucket-width: 32].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) buckets: Option<u32>,
    /// Report gaps at or above this length, with the kernel's counters around them; exit 2 if any.
    /// Does not stop the run.
    #[arg(long, short = 'T', value_name = "TIME", value_parser = duration)]
    pub(crate) over: Option<Duration>,
    /// CPUs of the main thread, which stores the samples [default: the housekeeping CPUs].
    #[arg(long, short = 'C', value_name = "LIST")]
    pub(crate) main_cpus: Option<Cpus>,
    /// Work per loop iteration besides reading the counter: none, or memmove:SIZE with SIZE in
    /// bytes, K or M.
    #[arg(long, default_value = "none", value_name = "WHAT", value_parser = workload)]
    pub(crate) workload: u64,
    /// Scheduling of the threads.
    #[command(flatten)]
    pub(crate) schedule: Schedule,
}

/// Bytes that a turn copies.
fn workload(text: &str) -> Result<u64, String> {
    let wrong = || format!("invalid workload {text:?}: expected none or memmove:SIZE, such as memmove:4K");
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
    let buckets_wanted = args.bucket_width.is_some() || args.buckets.is_some();
    let unfit = [
        ("--live", args.live, "shows one measurement"),
        ("--stop-over", args.stopping.stop_over.is_some(), STOPS),
        ("--buckets", buckets_wanted, "prints a histogram of one run"),
    ];
    if let Some(status) = args.repeating.carry_out("measure spin", &args.common, &unfit, signals)? {
        return Ok(status);
    }
    let mut place = place(&args.common, false)?;
    if let Some(cpus) = &args.main_cpus {
        place.run_on(cpus)?;
    }
    let policy = args.schedule.policy(args.stretch + args.pause, PRIORITY)?;
    let spec = |(thread, cpu)| ProbeSpec {
        thread,
        cpus: Cpus::one(cpu),
        policy: policy.clone(),
        timer_slack_ns: nanos(args.schedule.timer_slack) as u64,
        duration_ns: nanos(args.preheat + args.duration),
        task: Task::Noise(NoiseSpec {
            threshold_ns: args.threshold.map_or(0, |time| nanos(time) as u64),
            spin_ns: nanos(args.stretch),
            pause_ns: nanos(args.pause),
            memmove_bytes: args.workload,
            preheat_ns: nanos(args.preheat) as u64,
            bias: args.bias,
        }),
    };
    let probes = (0..).zip(place.measured.iter()).map(spec).collect();
    let keep = Some(Watch { threshold_ns: args.over.map(nanos) });
    let beside = Beside {
        keep,
        tracing: args.tracing.clone(),
        stopping: args.stopping,
        live: args.live.then_some("measure spin"),
    };
    let outcome = carry_out(&place, &args.common, probes, beside, signals)?;
    let buckets = buckets(args, &outcome)?;
    if args.common.json {
        println!("{}", object(&outcome, &buckets));
    } else {
        print!("{}", spin_text::text(&outcome, &buckets));
    }
    let over = contexts::over(&outcome).is_some_and(|n| n > 0);
    Ok(outcome.status_or(over))
}

fn nanos(time: Duration) -> i64 {
    time.as_nanos() as i64
}

/// The buckets of each thread, if the user asked for them.
fn buckets(args: &SpinArgs, outcome: &Outcome) -> Result<Vec<Buckets>, Error> {
    if args.bucket_width.is_none() && args.buckets.is_none() {
        return Ok(Vec::new());
    }
    let width_ns = args.bucket_width.map_or(1_000, |width| nanos(width) as u64);
    let count = args.buckets.unwrap_or(32) as usize;
    let one = |record: &ProbeRecord| {
        let (_, samples) = samples_file::read(&outcome.dir.join(&record.file))?;
        Ok(analysis::buckets::buckets(&samples, record.bias_ns(), width_ns, count))
    };
    outcome.document.run.probes.iter().map(one).collect()
}

fn object(outcome: &Outcome, buckets: &[Buckets]) -> Value {
    let mut value = json(outcome, "stillcore.measure-spin/2");
    value["over_threshold"] = contexts::over(outcome).into();
    let threads = value["threads"].as_array_mut().into_iter().flatten();
    for (at, thread) in threads.enumerate() {
        thread["causes"] = json!(outcome.document.analysis.noise_causes.get(at));
        if let Some(buckets) = buckets.get(at) {
            thread["buckets"] = json!(buckets);
        }
    }
    value
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
    if args.bucket_width.is_some_and(|width| width.is_zero()) {
        return refuse("--bucket-width", Duration::ZERO, "at least 1ns");
    }
    if args.preheat > Duration::from_secs(600) {
        return refuse("--preheat", args.preheat, "at most 10m");
    }
    if args.duration > Duration::from_secs(7 * 86400) {
        return refuse("--duration", args.duration, "at most 168h");
    }
    Ok(())
}
