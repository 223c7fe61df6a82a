//! One window of probes as a run of its own: machine, audit, probes, machine again; then its conclusions. Stopped by a signal it keeps
//! what it has and says so.

use super::Common;
use crate::run::facts::{own_cost, write_findings, write_snapshot};
use crate::run::interrupted::Interrupted;
use crate::run::output::{self, RunOutput};
use crate::run::place::{Asked, Place, default_out};
use crate::run::progress::Teller;
use crate::{conclude, failure};
use analysis::shape::Analysis;
use linux::measure::spec::ProbeSpec;
use linux::session::Session;
use linux::sys::clock;
use linux::sys::sched;
use linux::sys::signals::EndSignals;
use linux::window::{self, Go, Order, Progress};
use model::run::{Phase, Run};
use model::store;
use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

/// Name of the only phase.
const PHASE: &str = "measured";

/// A measurement on disk.
pub(crate) struct Outcome {
    /// The run directory.
    pub(crate) dir: PathBuf,
    /// What it says of itself.
    pub(crate) run: Run,
    /// What the samples say.
    pub(crate) analysis: Analysis,
    /// The signal that ended it early.
    pub(crate) interrupted: Option<&'static str>,
}

/// Resolves the common arguments.
pub(crate) fn place(common: &Common, all_cpus: bool) -> anyhow::Result<Place> {
    let asked =
        Asked { cpus: common.cpus.as_ref(), state: common.state.as_deref(), all_cpus, ..Asked::default() };
    Place::resolve(&asked)
}

/// Measures and concludes.
pub(crate) fn carry_out(
    place: &Place,
    common: &Common,
    probes: Vec<ProbeSpec>,
    signals: &EndSignals,
) -> anyhow::Result<Outcome> {
    sched::pin(&place.housekeeping)?;
    let dir = common.out.clone().unwrap_or_else(default_out);
    let mut session = Session::open(&place.program, &place.state)?;
    let mut output = RunOutput::create(&dir, place)?;
    let ended = measure(place, common, probes, &mut output, signals, &mut session);
    output.run.limits.extend(session.close().into_iter().map(|what| format!("not restored: {what}")));
    let stopped = ended.as_ref().ok().copied().flatten();
    let reason = match (&ended, stopped) {
        (Err(error), _) => Some(failure::sentence(error)),
        (Ok(_), Some(signal)) => Some(Interrupted(signal).to_string()),
        (Ok(_), None) => None,
    };
    let whole = reason.is_none();
    output.close(reason)?;
    if let Err(error) = ended {
        return Err(error.context(format!("the partial run is kept in {}", dir.display())));
    }
    let document = conclude::document(&dir)?;
    conclude::write(&document, &dir)?;
    if whole {
        output::mark_complete(&dir)?;
    }
    Ok(Outcome { dir, run: document.run, analysis: document.analysis, interrupted: stopped })
}

/// The window; gives the signal that ended it.
fn measure(
    place: &Place,
    common: &Common,
    probes: Vec<ProbeSpec>,
    output: &mut RunOutput,
    signals: &EndSignals,
    session: &mut Session,
) -> anyhow::Result<Option<&'static str>> {
    write_snapshot(place, &output.dir, store::MACHINE_BEFORE)?;
    write_findings(place, &output.dir)?;
    output.run.observer = own_cost();
    let length = probes.iter().map(|spec| spec.duration_ns).max().unwrap_or(0);
    let teller = Teller::new(common.quiet);
    let step =
        teller.step(&format!("measuring CPUs {}", place.measured), Duration::from_nanos(length as u64));
    let signal = Cell::new(None);
    let mut watch = |progress: Progress<'_>| {
        step.show(progress);
        signal.set(signal.get().or_else(|| signals.arrived()));
        if signal.get().is_some() { Go::Stop } else { Go::On }
    };
    let order = Order { run: &output.dir, phase: PHASE, k: 0, probes };
    let t0_ns = clock::now_ns();
    let measured = window::measure(session, None, &order, &mut watch);
    step.done();
    let measured = measured?;
    output.run.windows.push(measured.window);
    output.run.probes = measured.probes;
    output.run.limits.extend(measured.limits);
    let phase = Phase { name: PHASE.to_owned(), t0_ns, t1_ns: clock::now_ns(), disturbed: false };
    output.run.phases.push(phase);
    write_snapshot(place, &output.dir, store::MACHINE_AFTER)?;
    output.run.machine_after = Some(store::MACHINE_AFTER.to_owned());
    output.run.observer.drain_rss_kib = Some(clock::peak_rss_kib());
    Ok(signal.get())
}
