//! The run itself: machine, audit, recorder, three phases of two windows, recorder's end, machine
//! again.
//!
//! Facts are written to the run directory as they come, so that an interrupted run keeps them. In
//! every case, the session undoes every change before this returns.

use super::plan::Plan;
use crate::run::disturbed::{Disturbed, Groups};
use crate::run::facts::{own_cost, write_findings, write_snapshot};
use crate::run::interrupted::{Interrupted, Stopped};
use crate::run::output::RunOutput;
use crate::run::progress::Reporter;
use crate::run::recording;
use crate::values::TraceMode;
use journal::session::Session;
use measure::window::{self, Go, Order, Progress};
use model::run::{ObserverCost, Phase, ProbeRecord};
use model::sample::ProbeKind;
use model::store;
use record::recorder::Recorder;
use std::cell::Cell;
use std::time::Duration;
use sys::clock;
use sys::signals::EndSignals;

const PHASES: [(&str, bool); 3] = [("idle-before", false), ("disturbed", true), ("idle-after", false)];

/// Does what the plan says and writes the facts down.
pub(crate) fn execute(
    plan: &Plan,
    output: &mut RunOutput,
    signals: &EndSignals,
    mut session: Session,
) -> anyhow::Result<()> {
    let reporter = Reporter::new(false);
    let result = measure(plan, output, signals, &reporter, &mut session);
    let failed = session.close();
    for what in &failed {
        Reporter::say(&format!("not restored: {what}"));
        output.run.limits.push(format!("not restored: {what}"));
    }
    output.release_latency();
    let whole = |error: &anyhow::Error| error.is::<Interrupted>() || error.is::<Stopped>();
    if result.as_ref().err().is_none_or(whole) {
        write_snapshot(&plan.place, &output.dir, store::MACHINE_AFTER)?;
        output.run.machine_after = Some(store::MACHINE_AFTER.to_owned());
    }
    result
}

fn measure(
    plan: &Plan,
    output: &mut RunOutput,
    signals: &EndSignals,
    reporter: &Reporter,
    session: &mut Session,
) -> anyhow::Result<()> {
    Reporter::say(&format!(
        "measuring CPUs {}, housekeeping on {}; run directory {}",
        plan.place.measured,
        plan.place.housekeeping,
        output.dir.display()
    ));
    write_snapshot(&plan.place, &output.dir, store::MACHINE_BEFORE)?;
    write_findings(&plan.place, &output.dir)?;
    output.hold_latency(plan.dma_latency);
    output.run.observer = own_cost();
    let groups = Groups::make(&plan.orders(), &plan.place.measured, session, &mut output.run.limits)?;
    let mut recorder = recorder(plan, output, session)?;
    let stage = Stage { plan, signals, reporter, groups };
    let result = phases(&stage, recorder.as_mut(), output, session);
    stage.groups.remove(session)?;
    // An interrupted run keeps its trace; a failed one keeps what it can.
    if let Some(recorder) = recorder
        && let Err(error) = recording::finish(recorder, session, output)
    {
        if result.is_ok() {
            return Err(error.into());
        }
        output.run.limits.push(format!("the trace is lost: {error}"));
    }
    add_probe_cost(&mut output.run.observer, &output.run.probes);
    result
}

/// What the probes' own records say about their cost.
fn add_probe_cost(cost: &mut ObserverCost, probes: &[ProbeRecord]) {
    let of = |kind| probes.iter().filter(move |probe| probe.probe() == kind);
    let per = |ns: u64, n: u64| (n > 0).then(|| ns as f64 / n as f64);
    let sum = |kind, field: fn(&ProbeRecord) -> u64| of(kind).map(field).sum::<u64>();
    cost.wakeup_sample_ns =
        per(sum(ProbeKind::Wakeup, |p| p.cpu_time_ns), sum(ProbeKind::Wakeup, |p| p.samples));
    let noise = || probes.iter().filter_map(ProbeRecord::noise);
    cost.noise_turn_ns = per(noise().map(|one| one.spin_ns).sum(), noise().map(|one| one.iterations).sum());
    cost.drain_rss_kib = Some(clock::peak_rss_kib());
}

/// The recorder, or the reason why there is none.
fn recorder(plan: &Plan, output: &mut RunOutput, session: &mut Session) -> anyhow::Result<Option<Recorder>> {
    if plan.trace == TraceMode::Off {
        output.run.limits.push("no events were recorded because --trace off was given".to_owned());
        return Ok(None);
    }
    match recording::prepare(session, output, &plan.events, &plan.place, plan.kprobes, &[], None) {
        Ok(recorder) => Ok(Some(recorder)),
        Err(error) if plan.trace == TraceMode::Auto => {
            let why = format!("no events were recorded ({error}): what interrupted the CPU is not known");
            output.run.limits.push(why);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// What stays the same over all windows.
struct Stage<'a> {
    plan: &'a Plan,
    signals: &'a EndSignals,
    reporter: &'a Reporter,
    groups: Groups,
}

fn phases(
    stage: &Stage<'_>,
    mut recorder: Option<&mut Recorder>,
    output: &mut RunOutput,
    session: &mut Session,
) -> anyhow::Result<()> {
    for (name, disturbed) in PHASES {
        let t0_ns = clock::now_ns();
        let longest = stage.plan.window * 3 + Duration::from_secs(60);
        let measured = &stage.plan.place.measured;
        let start = || {
            Disturbed::start(&stage.plan.orders(), longest, measured, &stage.groups, session, stage.signals)
        };
        let disturbance = disturbed.then(start).transpose()?;
        let result = windows(stage, recorder.as_deref_mut(), output, session, name);
        if let Some(disturbance) = disturbance {
            output.run.stressors = disturbance.stop(session)?;
        }
        output.run.phases.push(Phase { name: name.to_owned(), t0_ns, t1_ns: clock::now_ns(), disturbed });
        output.save()?;
        result?;
    }
    Ok(())
}

fn windows(
    stage: &Stage<'_>,
    mut recorder: Option<&mut Recorder>,
    output: &mut RunOutput,
    session: &mut Session,
    phase: &str,
) -> anyhow::Result<()> {
    let Stage { plan, signals, reporter, .. } = stage;
    for kind in [ProbeKind::Wakeup, ProbeKind::Noise] {
        let step = reporter.step(&format!("{phase}: {}", kind.name()), plan.window);
        let signal = Cell::new(None);
        let mut watch = |progress: Progress<'_>| {
            step.show(progress);
            signal.set(signal.get().or_else(|| signals.arrived()));
            if signal.get().is_some() { Go::Stop } else { Go::On }
        };
        let k = output.run.windows.len();
        let (probes, stop_over_ns) = (plan.probes(kind), plan.stop_over_ns);
        let order = Order { run: &output.dir, phase, k, probes, align: None, watch: None, stop_over_ns };
        let measured = window::measure(session, recorder.as_deref_mut(), &order, &mut watch);
        step.done();
        let measured = measured?;
        output.run.windows.push(measured.window);
        output.run.probes.extend(measured.probes);
        for limit in measured.limits {
            if !output.run.limits.contains(&limit) {
                Reporter::say(&format!("note: {limit}"));
                output.run.limits.push(limit);
            }
        }
        if let Some(taken) = measured.taken {
            anyhow::bail!(taken);
        }
        if let Some(at) = measured.stopped_at {
            output.stopped_at(Some(at.clone()));
            return Err(Stopped(at).into());
        }
        if let Some(name) = signal.get().or_else(|| signals.arrived()) {
            return Err(Interrupted(name).into());
        }
    }
    Ok(())
}
