//! `stillcore measure wakeup`: periodic tasks that sleep until their release and look at the clock
//! when they run.

use super::carry_out::{Beside, Outcome, carry_out, place};
use super::repeating::{Repeating, STOPS};
use super::schedule::{PolicyName, Schedule};
use super::stopping::Stopping;
use super::table::{found, json, quantile, table, threads, time};
use super::tracing::Tracing;
use super::{Common, below, contexts, cyclictest};
use crate::folded::folded;
use crate::run::place::Place;
use crate::run::progress::Reporter;
use clap::{Args, ValueEnum};
use measure::class::Class;
use measure::spec::{ProbeSpec, Task, WakeupSpec};
use measure::watch::Watch;
use model::quantity::duration;
use model::run::ProbeRecord;
use model::sample::flag;
use model::samples_stream::{Batch, SampleStream};
use model::{Cpus, Error};
use report::format;
use std::ffi::OsString;
use std::time::Duration;
use sys::clock::ClockId;
use sys::signals::EndSignals;

/// The priority of the papers' cyclictest runs.
const PRIORITY: u32 = 99;
/// Where no CPU is left for anything else, below the kernel's own real-time threads.
const CROWDED_PRIORITY: u32 = 49;

/// The flags of samples of the warm-up.
const EXCLUDED: i32 = (flag::FIRST | flag::WARM_UP).cast_signed();

/// Arguments of `measure wakeup`.
#[derive(Debug, Args)]
pub(crate) struct WakeupArgs {
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
    /// How long to measure, after the warm-up.
    #[arg(long, short = 'D', default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Stop after this many releases per thread, not counting the warm-up, if that is earlier than
    /// --duration.
    #[arg(long, short, value_name = "N")]
    pub(crate) loops: Option<u64>,
    /// Release interval of each thread.
    #[arg(long, short = 'i', default_value = "1ms", value_name = "TIME", value_parser = duration)]
    pub(crate) period: Duration,
    /// Added to the interval of each further thread.
    #[arg(long, short, default_value = "0s", value_name = "TIME", value_parser = duration)]
    pub(crate) distance: Duration,
    /// Added to the first release of each further thread; 0s releases all at the same time.
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = duration)]
    pub(crate) stagger: Duration,
    /// Number of threads; more threads than CPUs share them round-robin [default: one per CPU].
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: Option<u32>,
    /// Affinity of each thread.
    #[arg(long, short, default_value = "each", value_name = "HOW")]
    pub(crate) affinity: Affinity,
    /// Scheduling of the threads.
    #[command(flatten)]
    pub(crate) schedule: Schedule,
    /// Clock of the releases.
    #[arg(long, default_value = "monotonic", value_name = "NAME")]
    pub(crate) clock: ClockName,
    /// Warm-up releases before --duration and --loops count, stored but excluded from the
    /// statistics.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(crate) warm_up: u32,
    /// Report samples at or above this latency, with the kernel's counters around them; exit 2 if
    /// any. Does not stop the run.
    #[arg(long = "over", short = 'b', value_name = "TIME", value_parser = duration)]
    pub(crate) threshold: Option<Duration>,
    /// CPUs of the main thread, which stores the samples [default: the housekeeping CPUs].
    #[arg(long, value_name = "LIST")]
    pub(crate) main_cpus: Option<Cpus>,
    /// Accept cyclictest's own options after a --, and print cyclictest's output, for scripts that
    /// parse it.
    #[arg(long, conflicts_with_all = [
        "cpus", "duration", "loops", "period", "distance", "stagger", "threads", "affinity", "policy", "priority", "runtime",
        "deadline", "timer_slack", "clock", "warm_up", "threshold",
        "main_cpus", "runs", "live", "stop_over", "trace", "kprobes", "stacks", "user_stacks", "trace_over", "keep", "keep_before",
    ])]
    pub(crate) cyclictest_compat: bool,
    /// Options of cyclictest, such as -p 80 -t4 -a -i 200 -l 10000 -h 400 -q.
    #[arg(last = true, value_name = "CYCLICTEST OPTIONS", requires = "cyclictest_compat")]
    pub(crate) cyclictest: Vec<OsString>,
}

/// Affinity of the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Affinity {
    /// Each thread on one CPU of the list, round-robin.
    Each,
    /// Each thread on all CPUs of the list.
    Set,
    /// Each thread on all CPUs of the machine.
    None,
}

/// Clocks of the releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClockName {
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// CLOCK_REALTIME.
    Realtime,
    /// CLOCK_TAI.
    Tai,
    /// CLOCK_BOOTTIME.
    Boottime,
}

impl ClockName {
    fn id(self) -> ClockId {
        match self {
            Self::Monotonic => ClockId::Monotonic,
            Self::Realtime => ClockId::Realtime,
            Self::Tai => ClockId::Tai,
            Self::Boottime => ClockId::Boottime,
        }
    }
}

/// Measures and prints.
pub(crate) fn run(args: &WakeupArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    if args.cyclictest_compat {
        return cyclictest::run(&args.cyclictest, &args.common, signals);
    }
    check(args)?;
    let unfit = [
        ("--live", args.live, "shows one measurement"),
        ("--stop-over", args.stopping.stop_over.is_some(), STOPS),
    ];
    if let Some(status) = args.repeating.carry_out("measure wakeup", &args.common, &unfit, signals)? {
        return Ok(status);
    }
    let mut place = place(&args.common, true)?;
    if let Some(cpus) = &args.main_cpus {
        place.run_on(cpus)?;
    }
    let probes = probes(args, &place)?;
    let first = probes.first();
    let below =
        first.and_then(|probe| below::limit(&probe.policy, &place.measured, &place.machine.topology.online));
    if let (Some(below), false) = (&below, args.common.json) {
        // Whoever reads it at the end has measured for nothing.
        Reporter::say(&format!("note: {below}"));
    }
    place.limits.extend(below);
    let threshold_ns = args.threshold.map(|time| time.as_nanos() as i64);
    let keep = threshold_ns.map(|_| Watch { threshold_ns });
    let beside = Beside {
        keep,
        tracing: args.tracing.clone(),
        stopping: args.stopping,
        live: args.live.then_some("measure wakeup"),
    };
    let outcome = carry_out(&place, &args.common, probes, beside, signals)?;
    let over = contexts::over(&outcome);
    if args.common.json {
        let mut value = json(&outcome, "stillcore.measure-wakeup/2");
        value["over_threshold"] = over.into();
        println!("{value}");
    } else {
        print!("{}", text(args, &outcome));
    }
    Ok(outcome.status_or(over.is_some_and(|n| n > 0)))
}

fn probes(args: &WakeupArgs, place: &Place) -> Result<Vec<ProbeSpec>, Error> {
    let crowded =
        place.housekeeping == place.machine.topology.online || place.housekeeping.is_subset(&place.measured);
    let priority = if crowded { CROWDED_PRIORITY } else { PRIORITY };
    let cpus: Vec<u32> = place.measured.iter().collect();
    let threads = args.threads.unwrap_or(if args.affinity == Affinity::None { 1 } else { cpus.len() as u32 });
    let one = |thread: u32| {
        let period = args.period + args.distance * thread;
        let allowed = match args.affinity {
            Affinity::Each => Cpus::one(cpus[thread as usize % cpus.len()]),
            Affinity::Set => place.measured.clone(),
            Affinity::None => place.machine.topology.online.clone(),
        };
        let nanos = |time: Duration| time.as_nanos() as i64;
        // The duration and the number of releases are those behind the warm-up.
        let warm_up = period * args.warm_up;
        Ok(ProbeSpec {
            thread,
            cpus: allowed,
            policy: args.schedule.policy_of_sleeper(period, priority)?,
            timer_slack_ns: nanos(args.schedule.timer_slack) as u64,
            duration_ns: nanos(warm_up + length(args, period)),
            task: Task::Wakeup(WakeupSpec {
                period_ns: nanos(period),
                offset_ns: nanos(args.stagger * thread),
                warm_up: args.warm_up,
                clock: args.clock.id(),
                loops: args.loops.map_or(0, |loops| loops.saturating_add(args.warm_up.into())),
            }),
        })
    };
    (0..threads).map(one).collect()
}

/// The duration, or as long as the releases take where that is shorter.
fn length(args: &WakeupArgs, period: Duration) -> Duration {
    match args.loops {
        Some(loops) => args.duration.min(period.saturating_mul(u32::try_from(loops).unwrap_or(u32::MAX))),
        None => args.duration,
    }
}

fn check(args: &WakeupArgs) -> Result<(), Error> {
    let refuse = |option: &str, found: Duration, expected: &str| {
        Err(Error::invalid(option.to_owned(), format!("{found:?}"), expected.to_owned()))
    };
    if args.period < Duration::from_micros(20) {
        return refuse("--period", args.period, "at least 20us");
    }
    if args.duration < args.period * 2 && args.loops.is_none() {
        return refuse("--duration", args.duration, "room for two releases");
    }
    if args.schedule.policy == PolicyName::Deadline && args.clock != ClockName::Monotonic {
        let what = "a clock for the releases of --policy deadline, which are the kernel's";
        return Err(Error::invalid("--clock", what, "no --clock, or another --policy"));
    }
    let of_cobalt = matches!(args.clock, ClockName::Monotonic | ClockName::Realtime);
    if args.schedule.class == Some(Class::Cobalt) && !of_cobalt {
        let what = "a clock that Cobalt does not have";
        return Err(Error::invalid("--clock", what, "monotonic or realtime, or another --class"));
    }
    if args.duration > Duration::from_secs(7 * 86400) {
        return refuse("--duration", args.duration, "at most 168h");
    }
    if args.loops == Some(0) {
        return Err(Error::invalid("--loops", "0 releases", "at least one"));
    }
    Ok(())
}

fn text(args: &WakeupArgs, outcome: &Outcome) -> String {
    let rows = threads(outcome).map(|(record, figures)| {
        vec![
            record.thread.to_string(),
            record.cpus.as_ref().map_or_else(|| record.cpu.to_string(), ToString::to_string),
            format::count(figures.n),
            format::count(record.missed()),
            format::count(figures.early),
            time(figures.min_ns),
            time(quantile(&figures.quantiles, 0.5)),
            time(quantile(&figures.quantiles, 0.99)),
            time(quantile(&figures.quantiles, 0.999)),
            time(figures.observed_max_ns),
            time(quantile(&figures.corrected_quantiles, 0.999)),
        ]
    });
    let policy = outcome.document.run.probes.first().map(|probe| &probe.policy_effective);
    let by_kernel = policy.is_some_and(|policy| policy.reservation.is_some());
    let policy = policy.map_or_else(String::new, |policy| match policy.reservation {
        Some(one) => format!("{} {}", policy.name, format::ns(one.runtime_ns as i64)),
        None => format!("{} {}", policy.name, policy.priority),
    });
    let mut text = format!(
        "wake-up latency from the intended release; {policy}, period {}, {}\n",
        format::ns(args.period.as_nanos() as i64),
        if by_kernel { "the scheduler's clock" } else { args.clock.id().name() }
    );
    let head =
        ["T", "CPU", "n", "missed", "early", "min", "p50", "p99", "p99.9", "observed max", "p99.9 charged"];
    text += &table(&head, rows.collect());
    let legend = "charged: with every missed release at the lateness it had; -: fewer than ten effective samples above";
    text += &folded(legend, "  ");
    text + &missed(outcome) + &contexts::text(outcome) + &found(outcome)
}

/// When the missed releases passed: of those before the statistics begin the table has none.
fn missed(outcome: &Outcome) -> String {
    let records = outcome.document.run.probes.iter().filter(|record| record.missed() > 0);
    let line = |record: &ProbeRecord| {
        let (mut before, mut served) = (0, 0);
        // A file that cannot be read is the analysis's to report.
        let stream = SampleStream::open(&outcome.dir.join(&record.file)).ok()?;
        let sum = |batch: &Batch<'_>| {
            let rows = batch.missed.iter().zip(batch.flags);
            let excluded = rows.filter(|(_, flags)| **flags & EXCLUDED != 0);
            excluded.for_each(|(missed, _)| {
                before += u64::from(missed.unsigned_abs());
                served += 1;
            });
            Ok::<(), Error>(())
        };
        stream.batches(sum).ok()?;
        // The sample behind it may have swallowed the last releases of the warm-up.
        let warm_up = record.detail.releases().and_then(|releases| releases.warm_up).unwrap_or(0);
        if warm_up > 0 {
            before = warm_up.saturating_sub(served).min(record.missed());
        }
        let line = format!(
            "thread {}: {} passed unserved while an earlier one was late, {} of them in the warm-up, before the statistics begin",
            record.thread,
            format::plural(record.missed(), "release"),
            format::count(before)
        );
        (before > 0).then(|| folded(&line, "  "))
    };
    records.filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_missed_in_the_warm_up_are_said() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small");
        let mut document = crate::conclude::document(&dir).unwrap();
        document.run.probes.retain(|record| record.missed() > 0);
        document.run.probes.truncate(1);
        let outcome = Outcome { dir, document, interrupted: None, stop_over_ns: None };
        let text = missed(&outcome).replace("\n  ", " ");
        let expected = "thread 0: 45 releases passed unserved while an earlier one was late, ";
        assert!(text.starts_with(expected) && text.contains(" of them in the warm-up"), "{text}");
    }
}
