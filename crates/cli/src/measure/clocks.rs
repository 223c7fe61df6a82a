//! `stillcore measure clocks`: how fast the machine's clocks run against CLOCK_MONOTONIC, the
//! scheduler's above all, and what reading them costs. It reads them in this process: nothing has
//! to be woken, so no measuring process is needed.

use super::Common;
use super::carry_out::{Ended, Outcome, place, run_around};
use super::table::found;
use crate::run::facts::{own_cost, write_findings, write_snapshot};
use crate::run::output::RunOutput;
use crate::run::place::Place;
use crate::run::progress::Reporter;
use analysis::drift::frequency_hz;
use anyhow::Context;
use clap::Args;
use machine::Root;
use measure::clocks::{self, Reading};
use model::clocks::ClocksRecord;
use model::machine::Clocksource;
use model::probe::{ClocksDetail, ProbeDetail};
use model::quantity::duration;
use model::run::{Phase, ProbeRecord};
use model::sample::{ProbeKind, SampleMeta};
use model::{Cpus, Error, store};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use sys::counter::{self, Counter};
use sys::signals::EndSignals;
use sys::{clock, policy, sched};

/// Name of the only phase.
const PHASE: &str = "measured";

/// Arguments of `measure clocks`.
#[derive(Debug, Args)]
pub(crate) struct ClocksArgs {
    /// Options common to all measurements. Clocks are read on one CPU: the first of --cpus.
    #[command(flatten)]
    pub(crate) common: Common,
    /// How long to read the clocks; the error of a rate falls as 1/duration^1.5.
    #[arg(long, short = 'D', default_value = "5s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Interval between readings.
    #[arg(long, default_value = "10ms", value_name = "TIME", value_parser = duration)]
    pub(crate) step: Duration,
}

/// Measures and prints.
pub(crate) fn run(args: &ClocksArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    check(args)?;
    let mut place = place(&args.common, true)?;
    let cpu = place.measured.iter().next().context("there is no CPU to read clocks on")?;
    place.measured = Cpus::one(cpu);
    let outcome = run_around(&place, &args.common, |output| {
        let signal = measure(args, &place, cpu, output, signals)?;
        Ok(Ended { signal, taken: None })
    })?;
    if args.common.json {
        println!("{}", object(&outcome)?);
    } else {
        print!("{}", found(&outcome));
    }
    Ok(u8::from(outcome.interrupted.is_some()))
}

fn check(args: &ClocksArgs) -> Result<(), Error> {
    if let Some(name) = args.common.disturbing.disturb.first() {
        return Err(Error::invalid(
            "--disturb",
            name,
            "nothing here: clocks run at their rates under any load",
        ));
    }
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

/// Reads the clocks into the run; returns the signal that ended it.
fn measure(
    args: &ClocksArgs,
    place: &Place,
    cpu: u32,
    output: &mut RunOutput,
    signals: &EndSignals,
) -> anyhow::Result<Option<&'static str>> {
    write_snapshot(place, &output.dir, store::MACHINE_BEFORE)?;
    write_findings(place, &output.dir)?;
    output.hold_latency(args.common.dma_latency());
    output.run.observer = own_cost();
    // CPUs are compared that it may use: it is pinned to one of them only while it reads.
    let allowed = sched::affinity()?;
    sched::pin(&place.measured).with_context(|| format!("cannot read clocks on CPU {cpu}"))?;
    let reporter = Reporter::new(args.common.quiet || args.common.json);
    let step = reporter.step("reading clocks", args.duration);
    let mut signal = None;
    let nanos = |time: Duration| time.as_nanos() as i64;
    let t0_ns = clock::now_ns();
    let reading = clocks::read(nanos(args.duration), nanos(args.step), || {
        signal = signal.or_else(|| signals.arrived());
        signal.is_none()
    });
    let t1_ns = clock::now_ns();
    step.done();
    sched::pin(&allowed)?;
    let record = record(args, cpu, &reading, [t0_ns, t1_ns], &output.dir)?;
    output.run.probes.push(record);
    output.run.phases.push(Phase { name: PHASE.to_owned(), t0_ns, t1_ns, disturbed: false });
    output.release_latency();
    write_snapshot(place, &output.dir, store::MACHINE_AFTER)?;
    output.run.machine_after = Some(store::MACHINE_AFTER.to_owned());
    Ok(signal)
}

/// Writes the pairs, and records what else was found.
fn record(
    args: &ClocksArgs,
    cpu: u32,
    reading: &Reading,
    [t0_ns, t1_ns]: [i64; 2],
    dir: &Path,
) -> anyhow::Result<ProbeRecord> {
    let policy = policy::effective()?;
    let file = store::samples_name(ProbeKind::Clocks.name(), cpu, 0);
    let step_ns = args.step.as_nanos() as u64;
    let meta = SampleMeta {
        probe: ProbeKind::Clocks,
        cpu,
        thread: 0,
        phase: PHASE.to_owned(),
        unit: "ns".to_owned(),
        clock: "CLOCK_MONOTONIC".to_owned(),
        counter: Counter::choose().name().to_owned(),
        policy_asked: policy.clone(),
        policy_effective: policy.clone(),
        period_ns: Some(step_ns),
        threshold_ns: None,
    };
    let samples = clocks::store(reading, &dir.join(&file), &meta)?;
    Ok(ProbeRecord {
        detail: ProbeDetail::Clocks(ClocksDetail { clocks: Some(facts(step_ns, reading)) }),
        phase: meta.phase,
        pid: i32::try_from(std::process::id()).unwrap_or(0),
        tid: sched::tid(),
        file,
        t0_ns,
        t1_ns,
        counter: meta.counter,
        timer_slack_ns: sched::timer_slack(),
        samples,
        rss_kib: clock::peak_rss_kib(),
        ..ProbeRecord::of(ProbeKind::Clocks, cpu, policy)
    })
}

fn facts(step_ns: u64, reading: &Reading) -> ClocksRecord {
    let counted = reading.series.iter().find(|series| series.clock == Counter::Cpu.name());
    let hz = counted.and_then(|series| frequency_hz(&series.pairs));
    let offsets = hz.map(|(hz, _)| clocks::core_offsets(1e9 / hz)).transpose();
    let Clocksource { current, available } = machine::clocksource(&Root::live());
    ClocksRecord {
        names: reading.series.iter().map(|series| series.clock.clone()).collect(),
        step_ns,
        mult: reading.conversion.map(|one| one.mult),
        shift: reading.conversion.map(|one| one.shift),
        scheduler_unread: reading.scheduler_unread.clone(),
        nominal_hz: counter::nominal_hz(),
        source: current,
        sources: available,
        ntp: reading.ntp.clone(),
        costs: reading.costs.clone(),
        core_offsets_unread: offsets.as_ref().err().map(ToString::to_string),
        core_offsets: offsets.ok().flatten().unwrap_or_default(),
    }
}

fn object(outcome: &Outcome) -> anyhow::Result<Value> {
    let run = &outcome.document.run;
    let analysis = outcome.document.analysis.clocks.as_ref().context("no clock was read")?;
    let record = run.probes.iter().find(|record| record.clocks().is_some());
    let record = record.context("the run has no clocks")?;
    let facts = record.clocks();
    let limits: Vec<&String> = run.limits.iter().chain(&analysis.limits).collect();
    let clocks = analysis.rates.iter().map(|rate| json!({ "clock": rate.clock, "drift": rate.drift }));
    Ok(json!({
        "schema": "stillcore.measure-clocks/1",
        "run": outcome.dir,
        "complete": run.complete,
        "against": "CLOCK_MONOTONIC",
        "duration_ns": analysis.span_ns,
        "step_ns": facts.map(|facts| facts.step_ns),
        "cpu": record.cpu,
        "file": record.file,
        "interrupted": outcome.interrupted,
        "clocksource": facts.map(|facts| json!({ "current": facts.source, "available": facts.sources })),
        "ntp": facts.and_then(|facts| facts.ntp.as_ref()),
        "clocks": clocks.collect::<Vec<_>>(),
        "counter": analysis.counter,
        "core_offsets": facts.map(|facts| &facts.core_offsets),
        "scheduler": analysis.scheduler,
        "costs": facts.map(|facts| &facts.costs),
        "limits": limits,
    }))
}
