//! `stillcore measure clocks`: how fast the machine's clocks run against CLOCK_MONOTONIC, the scheduler's above all, and what reading
//! them costs.

use super::table::table;
use crate::args::duration;
use crate::run::progress::Teller;
use analysis::drift::{self, Drift, Frequency};
use anyhow::Context;
use clap::Args;
use linux::measure::clocks::{self, Reading, SCHEDULER};
use linux::sys::counter::{self, Counter};
use linux::sys::sched;
use linux::sys::signals::EndSignals;
use model::clocks::CoreOffset;
use model::{Cpus, Error};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `measure clocks`.
#[derive(Debug, Args)]
pub(crate) struct ClocksArgs {
    /// How long to read the clocks; the error of a rate falls with its power of 1.5.
    #[arg(long, short = 'D', default_value = "5s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Distance of two readings.
    #[arg(long, default_value = "10ms", value_name = "TIME", value_parser = duration)]
    pub(crate) step: Duration,
    /// CPU to read on [default: wherever the scheduler puts it].
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<u32>,
    /// Write every pair of readings to this file, as CSV.
    #[arg(long, value_name = "FILE")]
    pub(crate) pairs: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show nothing while it measures.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What the readings say.
struct Answer {
    reading: Reading,
    /// Clock source in use and those there are.
    sources: (Option<String>, Vec<String>),
    drifts: Vec<(String, Option<Drift>)>,
    counter: Option<CounterRate>,
    offsets: Vec<CoreOffset>,
    scheduler: Scheduler,
    interrupted: Option<&'static str>,
    limits: Vec<String>,
}

/// The CPU's counter.
#[derive(Serialize)]
struct CounterRate {
    name: &'static str,
    /// Against CLOCK_MONOTONIC.
    hz: f64,
    hz_error: f64,
    /// As the kernel knows it: told by the CPU (arm64), or the nearest whole kHz (x86).
    kernel: Option<Frequency>,
}

/// The scheduler's clock.
#[derive(Serialize)]
struct Scheduler {
    measured: Option<Drift>,
    /// What the rounding of the two clocks' fractions makes of it, without NTP, ppb.
    predicted_ppb: Option<f64>,
    /// NTP's part: CLOCK_MONOTONIC is corrected, the scheduler's clock is not, ppb.
    ntp_ppb: Option<f64>,
    /// Where the prediction has the scheduler's fraction from.
    predicted_from: Option<String>,
    /// ns a tick as mult / 2^shift, where the kernel tells.
    mult: Option<u32>,
    shift: Option<u16>,
    unread: Option<String>,
}

/// Measures and prints.
pub(crate) fn run(args: &ClocksArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    check(args)?;
    // Before it is pinned: CPUs are compared that it may use.
    let cpus = sched::affinity()?;
    if let Some(cpu) = args.cpu {
        sched::pin(&Cpus::one(cpu)).with_context(|| format!("cannot read clocks on CPU {cpu}"))?;
    }
    let teller = Teller::new(args.quiet || args.json);
    let step = teller.step("reading clocks", args.duration);
    let mut interrupted = None;
    let nanos = |time: Duration| time.as_nanos() as i64;
    let reading = clocks::read(nanos(args.duration), nanos(args.step), || {
        interrupted = interrupted.or_else(|| signals.arrived());
        interrupted.is_none()
    });
    step.done();
    if let Some(path) = &args.pairs {
        write_pairs(path, &reading)?;
    }
    sched::pin(&cpus)?;
    let answer = conclude(reading, interrupted);
    if args.json {
        println!("{}", json(args, &answer));
    } else {
        print!("{}", text(args, &answer));
    }
    Ok(u8::from(answer.interrupted.is_some()))
}

fn check(args: &ClocksArgs) -> Result<(), Error> {
    let refuse = |option: &str, found: Duration, expected: &str| {
        Err(Error::invalid(option.to_owned(), format!("{found:?}"), expected.to_owned()))
    };
    if args.step < Duration::from_millis(1) {
        return refuse("--step", args.step, "at least 1ms");
    }
    if args.duration < args.step * 10 {
        return refuse("--duration", args.duration, "at least ten steps");
    }
    if args.duration.as_nanos() / args.step.as_nanos() > 10_000_000 {
        return refuse("--duration", args.duration, "at most ten million steps; a longer --step");
    }
    Ok(())
}

/// From readings to rates.
fn conclude(reading: Reading, interrupted: Option<&'static str>) -> Answer {
    let is_counter = |clock: &str| clock == Counter::Cpu.name();
    let series = |name: &str| reading.series.iter().find(|series| series.clock == name);
    let drifts: Vec<_> = reading
        .series
        .iter()
        .filter(|series| !is_counter(&series.clock))
        .map(|series| (series.clock.clone(), drift::drift(&series.pairs)))
        .collect();
    let found =
        |name: &str| drifts.iter().find(|(clock, _)| clock == name).and_then(|(_, drift)| drift.clone());
    let hz = series(Counter::Cpu.name()).and_then(|series| drift::frequency_hz(&series.pairs));
    // RAW runs by the fraction itself, MONOTONIC by what NTP makes of it.
    let raw_hz = |hz: f64| hz / (1.0 + found("CLOCK_MONOTONIC_RAW").map_or(0.0, |drift| drift.ppb) / 1e9);
    let counter = hz.map(|(hz, hz_error)| CounterRate {
        name: Counter::Cpu.name(),
        hz,
        hz_error,
        kernel: counter::nominal_hz().map(Frequency::Hz).or_else(|| {
            cfg!(target_arch = "x86_64").then(|| Frequency::Khz((raw_hz(hz) / 1000.0).round() as u64))
        }),
    });
    let sources = clocks::sources(Path::new("/"));
    let from_counter = sources.0.as_deref().is_some_and(|name| matches!(name, "tsc" | "arch_sys_counter"));
    let ntp_ppb = reading.ntp.as_ref().map(|[before, _]| before.frequency_ppb);
    let offsets = counter.as_ref().map(|counter| clocks::core_offsets(1e9 / counter.hz));
    let kernel = counter.as_ref().and_then(|counter| counter.kernel).filter(|_| from_counter);
    let guest = sources.1.iter().any(|name| name == "kvm-clock");
    // RAW is what MONOTONIC would be without NTP.
    let ppb = |name: &str| found(name).map(|drift| drift.ppb);
    let measured_ppb = ppb(SCHEDULER).zip(ppb("CLOCK_MONOTONIC_RAW")).map(|(sched, raw)| sched - raw);
    let predicted = kernel.and_then(|frequency| match (reading.conversion, frequency) {
        (Some(conversion), _) => {
            let ppb = drift::predicted_ppb(conversion.ns_per_tick(), frequency);
            Some((ppb, "the kernel's own mult and shift".to_owned()))
        }
        // The hypervisor says how fast the counter is, in whole kHz; the guest's kernel found its own figure.
        (None, Frequency::Khz(khz)) if guest => {
            let rate = 1.0 + measured_ppb? / 1e9;
            let exact = 1.0 / (drift::timekeeping(frequency).ns_per_tick() * rate) * 1e6;
            let ppb = drift::predicted_ppb(1e6 / exact.round(), frequency);
            Some((
                ppb,
                format!(
                    "kvm-clock at {} kHz, the nearest to what was measured; the guest has {khz}",
                    exact.round()
                ),
            ))
        }
        (None, _) => {
            let ppb = drift::predicted_ppb(drift::scheduler(frequency).ns_per_tick(), frequency);
            Some((ppb, "the counter's frequency, rounded as the kernel rounds it".to_owned()))
        }
    });
    let scheduler = Scheduler {
        measured: found(SCHEDULER),
        predicted_ppb: predicted.as_ref().map(|(ppb, _)| *ppb),
        ntp_ppb,
        predicted_from: predicted.as_ref().map(|(_, from)| from.clone()),
        mult: reading.conversion.map(|one| one.mult),
        shift: reading.conversion.map(|one| one.shift),
        unread: reading.scheduler_unread.clone(),
    };
    let mut limits = Vec::new();
    if let Some(why) = &reading.scheduler_unread {
        limits.push(format!("the scheduler's clock could not be read by perf ({why})"));
    }
    if predicted.is_none() {
        let source = sources.0.as_deref().unwrap_or("unknown");
        limits.push(format!("no prediction: the clock source is {source}, not the CPU's counter"));
    }
    if let Some(Err(error)) = &offsets {
        limits.push(format!("the counters of the CPUs could not be compared ({error})"));
    }
    let offsets = offsets.and_then(Result::ok).unwrap_or_default();
    Answer { reading, sources, drifts, counter, offsets, scheduler, interrupted, limits }
}

fn json(args: &ClocksArgs, answer: &Answer) -> Value {
    let clocks: Vec<_> =
        answer.drifts.iter().map(|(clock, drift)| json!({ "clock": clock, "drift": drift })).collect();
    json!({
        "schema": "stillcore.measure-clocks/1",
        "against": "CLOCK_MONOTONIC",
        "duration_ns": args.duration.as_nanos() as u64,
        "step_ns": args.step.as_nanos() as u64,
        "cpu": args.cpu,
        "interrupted": answer.interrupted,
        "clocksource": { "current": answer.sources.0, "available": answer.sources.1 },
        "ntp": answer.reading.ntp.as_ref().map(|[before, after]| json!({ "before": before, "after": after })),
        "clocks": clocks,
        "counter": answer.counter,
        "core_offsets": answer.offsets,
        "scheduler": answer.scheduler,
        "costs": answer.reading.costs,
        "pairs": args.pairs,
        "limits": answer.limits,
    })
}

fn write_pairs(path: &Path, reading: &Reading) -> Result<(), Error> {
    let mut text = "clock,mono_ns,value,error_ns\n".to_owned();
    for series in &reading.series {
        for pair in &series.pairs {
            let _ = writeln!(text, "{},{},{},{}", series.clock, pair.mono_ns, pair.value, pair.error_ns);
        }
    }
    std::fs::write(path, text).map_err(|source| Error::io("write", path, source))
}

fn text(args: &ClocksArgs, answer: &Answer) -> String {
    let reading = &answer.reading;
    let mut text =
        format!("clocks against CLOCK_MONOTONIC over {:?}, a reading every {:?}\n", args.duration, args.step);
    let cost = |name: &str| reading.costs.iter().find(|cost| cost.read == name);
    let cost_of = |name: &str| cost(name).map_or_else(|| "-".to_owned(), |cost| format!("{:.0} ns", cost.ns));
    let rows = answer.drifts.iter().map(|(clock, drift)| {
        let of = |show: &dyn Fn(&Drift) -> String| drift.as_ref().map_or_else(|| "-".to_owned(), show);
        vec![
            clock.clone(),
            of(&|drift| format!("{:+.2}", drift.ppb)),
            of(&|drift| format!("{:.2}", drift.ppb_error)),
            of(&|drift| format!("{:+.1} us", drift.us_per_hour)),
            of(&|drift| drift.steps.to_string()),
            of(&|drift| format!("{}/{}", drift.pairs, drift.read)),
            of(&|drift| format!("{} ns", drift.bracket_ns)),
            cost_of(clock),
        ]
    });
    let head = ["clock", "faster by, ppb", "+-", "an hour", "set", "pairs", "bracket", "a read"];
    text += &table(&head, rows.collect());
    text +=
        "+-: standard error of the rate; bracket: each pair is known to so much; set: jumps, taken out\n\n";
    scheduler_text(&mut text, &answer.scheduler);
    if let Some(counter) = &answer.counter {
        let known = match counter.kernel {
            Some(Frequency::Khz(khz)) => format!("; the kernel takes it for {khz} kHz"),
            Some(Frequency::Hz(hz)) => format!("; it is said to run at {hz} Hz"),
            None => String::new(),
        };
        let _ = writeln!(text, "{}: {:.1} +- {:.1} Hz{known}", counter.name, counter.hz, counter.hz_error);
    }
    // The one that may be furthest off.
    let furthest = answer.offsets.iter().max_by(|a, b| reach(a).total_cmp(&reach(b)));
    if let Some(one) = furthest {
        let _ = writeln!(
            text,
            "counters of {} CPUs against CPU {}: at most {:.0} +- {:.0} ns apart (CPU {})",
            answer.offsets.len(),
            one.from,
            one.ns.abs(),
            one.bound_ns,
            one.to
        );
    }
    let costs = ["CLOCK_MONOTONIC", Counter::Cpu.name(), "rdtscp"];
    let costs: Vec<_> = costs
        .iter()
        .filter_map(|name| cost(name))
        .map(|cost| {
            let trap = if cost.ns > 1000.0 { " (it traps)" } else { "" };
            format!("{} {:.0} ns{trap}", cost.read, cost.ns)
        })
        .collect();
    let _ = writeln!(text, "a read costs: {}", costs.join(", "));
    let (current, available) = &answer.sources;
    let _ = writeln!(
        text,
        "clock source {}, of {}",
        current.as_deref().unwrap_or("unknown"),
        if available.is_empty() { "unknown".to_owned() } else { available.join(" ") }
    );
    if let Some([before, after]) = &reading.ntp {
        let kept = if before.synchronised { "kept in step by NTP or PTP" } else { "kept in step by nobody" };
        let changed = if (after.frequency_ppb - before.frequency_ppb).abs() > 0.0 {
            format!(", {:+.3} ppm at the end", after.frequency_ppb / 1000.0)
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "time keeping: {kept}; rate corrected by {:+.3} ppm{changed}; {} us to slew; TAI - UTC {} s",
            before.frequency_ppb / 1000.0,
            before.offset_ns / 1000,
            before.tai_s
        );
    }
    for limit in &answer.limits {
        let _ = writeln!(text, "note: {limit}");
    }
    if let Some(signal) = answer.interrupted {
        let _ = writeln!(text, "interrupted by {signal}: the figures are of the part that was measured");
    }
    text
}

fn reach(offset: &CoreOffset) -> f64 {
    offset.ns.abs() + offset.bound_ns
}

fn scheduler_text(text: &mut String, scheduler: &Scheduler) {
    if let Some(drift) = &scheduler.measured {
        let sooner = if drift.ppb > 0.0 { "earlier" } else { "later" };
        // Two standard errors: what is within them is no drift that was seen.
        let line = if drift.ppb.abs() <= 2.0 * drift.ppb_error {
            format!(
                "SCHED_DEADLINE tasks: no drift against CLOCK_MONOTONIC seen; at most {:.1} us an hour",
                (drift.ppb.abs() + 2.0 * drift.ppb_error) * 3.6
            )
        } else {
            format!(
                "SCHED_DEADLINE tasks drift: every hour they are released {:.1} +- {:.1} us {sooner}, by CLOCK_MONOTONIC",
                drift.us_per_hour.abs(),
                2.0 * drift.ppb_error * 3.6
            )
        };
        let _ = writeln!(text, "{line}");
    }
    if let (Some(ppb), Some(from)) = (scheduler.predicted_ppb, &scheduler.predicted_from) {
        let ntp = scheduler.ntp_ppb.filter(|ppb| ppb.abs() > 0.0);
        let ntp = ntp.map_or_else(String::new, |ntp| format!(", and {:+.2} ppb from NTP", -ntp));
        let _ = writeln!(text, "predicted: {ppb:+.2} ppb by rounding{ntp} (from {from})");
    }
}
