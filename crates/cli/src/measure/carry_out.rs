//! One window of probes as a run of its own: machine, audit, probes, machine again; then its
//! conclusions. A run that a signal stops keeps what it has and says so.

use super::Common;
use super::disturbing::Running;
use super::stopping::Stopping;
use super::tracing::{self, Tracing};
use crate::run::facts::{own_cost, write_findings, write_snapshot};
use crate::run::interrupted::Interrupted;
use crate::run::off_stretches;
use crate::run::output::{self, RunOutput};
use crate::run::place::{Asked, Place, default_out};
use crate::run::progress::Reporter;
use crate::top::beside::{Pane, Sources};
use crate::top::engine::Feed;
use crate::top::shot::Facts;
use crate::{conclude, failure, top};
use disturb::Order as Stressor;
use journal::session::Session;
use measure::spec::ProbeSpec;
use measure::watch::Watch;
use measure::window::{self, Go, Order, Progress};
use model::run::Phase;
use model::{Run, store};
use record::recorder::Recorder;
use record::snapshots::SnapshotOrder;
use report::Document;
use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;
use sys::clock::{self, ClockId};
use sys::sched;
use sys::signals::EndSignals;

/// Name of the only phase.
const PHASE: &str = "measured";

/// A measurement on disk.
pub(crate) struct Outcome {
    /// The run directory.
    pub(crate) dir: PathBuf,
    /// The facts of the run, and the conclusions from them.
    pub(crate) document: Document,
    /// The signal that ended it early.
    pub(crate) interrupted: Option<&'static str>,
    /// The value of a sample that would have ended it, ns.
    pub(crate) stop_over_ns: Option<i64>,
}

impl Outcome {
    /// The exit status of a measurement without a criterion: 1 where it is incomplete, 2 where a
    /// sample ended it.
    pub(crate) fn status(&self) -> u8 {
        self.status_or(false)
    }

    /// The exit status of one with a criterion.
    pub(crate) fn status_or(&self, failed: bool) -> u8 {
        let run = &self.document.run;
        if run.complete { 2 * u8::from(failed || run.stopped_at.is_some()) } else { 1 }
    }
}

/// How a measurement ended.
#[derive(Default)]
pub(crate) struct Ended {
    /// The signal that ended it early.
    pub(crate) signal: Option<&'static str>,
    /// That the kernel took a CPU from a probe.
    pub(crate) taken: Option<String>,
}

/// Resolves the common arguments.
pub(crate) fn place(common: &Common, all_cpus: bool) -> anyhow::Result<Place> {
    let asked =
        Asked { cpus: common.cpus.as_ref(), state: common.state.as_deref(), all_cpus, ..Asked::default() };
    Place::resolve(&asked)
}

/// What comes after the window, in the same run; returns the signal that ended it.
pub(crate) type After<'a> =
    &'a mut dyn FnMut(&mut RunOutput, &mut Session) -> anyhow::Result<Option<&'static str>>;

/// What goes with the probes of a window.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    /// What to keep besides samples, if anything.
    pub(crate) keep: Option<Watch>,
    /// Which events to record.
    pub(crate) tracing: Tracing,
    /// What ends the window before its time.
    pub(crate) stopping: Stopping,
    /// Show it live, under this name of the verb.
    pub(crate) live: Option<&'static str>,
}

/// A window and what goes with it.
pub(crate) struct Course<'a> {
    /// The measuring threads.
    pub(crate) probes: Vec<ProbeSpec>,
    /// The clock whose next full second the window starts at; none starts it at once.
    pub(crate) align: Option<ClockId>,
    /// Whether only a signal ends it; then the signal does not make the run partial.
    pub(crate) endless: bool,
    /// What goes with the probes.
    pub(crate) beside: Beside,
    /// Called with what is stored, some fifty times per second. It may end the window, which does
    /// not make the run partial.
    pub(crate) watch: &'a mut dyn FnMut(Progress<'_>) -> Go,
    /// What comes behind it.
    pub(crate) after: After<'a>,
}

/// Measures and concludes.
pub(crate) fn carry_out(
    place: &Place,
    common: &Common,
    probes: Vec<ProbeSpec>,
    beside: Beside,
    signals: &EndSignals,
) -> anyhow::Result<Outcome> {
    let (watch, after) = (&mut |_: Progress<'_>| Go::On, &mut |_: &mut RunOutput, _: &mut Session| Ok(None));
    follow(place, common, Course { probes, align: None, endless: false, beside, watch, after }, signals)
}

/// Without events, and with something after the window.
pub(crate) fn carry_out_and(
    place: &Place,
    common: &Common,
    probes: Vec<ProbeSpec>,
    signals: &EndSignals,
    after: After<'_>,
) -> anyhow::Result<Outcome> {
    let (watch, beside) = (&mut |_: Progress<'_>| Go::On, Beside::default());
    follow(place, common, Course { probes, align: None, endless: false, beside, watch, after }, signals)
}

/// Follows a course and concludes.
pub(crate) fn follow(
    place: &Place,
    common: &Common,
    course: Course<'_>,
    signals: &EndSignals,
) -> anyhow::Result<Outcome> {
    follow_in(open_session, place, common, course, signals)
}

/// A session on the CPUs that are not measured.
pub(crate) fn open_session(place: &Place) -> anyhow::Result<Session> {
    sched::pin(&place.housekeeping)?;
    Ok(Session::open(&place.program, &place.state)?)
}

/// The same in a session that is already open, whose guardian undoes what was made since.
pub(crate) fn carry_out_in(
    session: Session,
    place: &Place,
    common: &Common,
    probes: Vec<ProbeSpec>,
    beside: Beside,
    signals: &EndSignals,
) -> anyhow::Result<Outcome> {
    let (watch, after) = (&mut |_: Progress<'_>| Go::On, &mut |_: &mut RunOutput, _: &mut Session| Ok(None));
    let course = Course { probes, align: None, endless: false, beside, watch, after };
    follow_in(|_| Ok(session), place, common, course, signals)
}

fn follow_in(
    open: impl FnOnce(&Place) -> anyhow::Result<Session>,
    place: &Place,
    common: &Common,
    course: Course<'_>,
    signals: &EndSignals,
) -> anyhow::Result<Outcome> {
    // What cannot be carried out is refused before anything is written.
    let Beside { ref tracing, stopping, live, .. } = course.beside;
    anyhow::ensure!(
        live.is_none() || top::is_looked_at(),
        "--live needs a terminal as standard input and output; leave it out where nobody looks on"
    );
    let snapshots = tracing.snapshots(&course.probes, stopping.limit_ns())?;
    let stressors = common.disturbing.orders(place)?;
    let mut session = open(place)?;
    off_stretches::check(tracing.off_stretches.as_deref(), &mut session)?;
    let outcome = run_around(place, common, |output| {
        let endless = course.endless;
        let before = Before { snapshots, stressors: &stressors };
        let ended = measure(place, common, course, before, output, signals, &mut session);
        output.run.limits.extend(session.close().into_iter().map(|what| format!("not restored: {what}")));
        ended.map(|ended| Ended { signal: ended.signal.filter(|_| !endless), ..ended })
    })?;
    Ok(Outcome { stop_over_ns: stopping.limit_ns(), ..outcome })
}

/// Makes a run directory of what `measure` writes into it, and concludes.
pub(crate) fn run_around(
    place: &Place,
    common: &Common,
    measure: impl FnOnce(&mut RunOutput) -> anyhow::Result<Ended>,
) -> anyhow::Result<Outcome> {
    let dir = common.out.clone().unwrap_or_else(default_out);
    let mut output = RunOutput::create(&dir, place)?;
    let ended = measure(&mut output);
    let (stopped, taken) = match &ended {
        Ok(ended) => (ended.signal, ended.taken.clone()),
        Err(_) => (None, None),
    };
    let reason = match &ended {
        Err(error) => Some(failure::sentence(error)),
        Ok(_) => stopped.map(|signal| Interrupted(signal).to_string()).or(taken),
    };
    let whole = reason.is_none();
    let closed = output.close(reason);
    // On a full disk the second fails as well, and says less.
    if let Err(error) = ended {
        if common.private {
            return Err(error);
        }
        return Err(error.context(format!("the partial run is kept in {}", dir.display())));
    }
    closed?;
    let document = conclude::document(&dir)?;
    conclude::write(&document, &dir)?;
    if whole {
        output::mark_complete(&dir)?;
    }
    Ok(Outcome { dir, document, interrupted: stopped, stop_over_ns: None })
}

/// What was resolved before anything was written.
struct Before<'a> {
    snapshots: Option<SnapshotOrder>,
    stressors: &'a [Stressor],
}

/// What has ended a window whose user left its live view.
const LEFT: &str = "a key in its live view";

/// The live view, where one is wanted.
fn live_view(
    beside: &Beside,
    place: &Place,
    common: &Common,
    (recorder, snapshots): (Option<&Recorder>, Option<SnapshotOrder>),
    run: &Run,
    signals: &EndSignals,
) -> anyhow::Result<Option<Pane>> {
    let Some(title) = beside.live else { return Ok(None) };
    let sources = match (recorder, snapshots) {
        (None, _) => Sources::No("no trace: counters only, no sources (--trace shows them)"),
        (Some(_), Some(_)) => Sources::No("the trace is in a ring: counters only, no sources"),
        (Some(recorder), None) => Sources::Of(Box::new(Feed::of(recorder, beside.tracing.events()?, run))),
    };
    let facts = Facts::of(title, place, false);
    Pane::begin(&place.measured, facts, common.state.clone(), sources, signals).map(Some)
}

/// The window, and what ended it early.
fn measure(
    place: &Place,
    common: &Common,
    course: Course<'_>,
    before: Before<'_>,
    output: &mut RunOutput,
    signals: &EndSignals,
    session: &mut Session,
) -> anyhow::Result<Ended> {
    write_snapshot(place, &output.dir, store::MACHINE_BEFORE)?;
    write_findings(place, &output.dir)?;
    output.hold_latency(common.dma_latency());
    output.run.observer = own_cost();
    let Course { probes, align, beside, watch: on_progress, after, .. } = course;
    let Beside { keep, ref tracing, stopping, live } = beside;
    let mut recorder = tracing.prepare(place, before.snapshots, live.is_some(), output, session)?;
    let length = probes.iter().map(|spec| spec.duration_ns).max().unwrap_or(0);
    let reporter = Reporter::new(common.quiet || live.is_some());
    let step =
        reporter.step(&format!("measuring CPUs {}", place.measured), Duration::from_nanos(length as u64));
    let stop_over_ns = stopping.limit_ns();
    let order = Order { run: &output.dir, phase: PHASE, k: 0, probes, align, watch: keep, stop_over_ns };
    let window = Duration::from_nanos(length as u64);
    let running = Running::start(before.stressors, window, place, session, &mut output.run.limits, signals)?;
    let disturbed = running.any();
    let signal = Cell::new(None);
    let mut pane =
        live_view(&beside, place, common, (recorder.as_ref(), before.snapshots), &output.run, signals)?;
    let mut watch = |progress: Progress<'_>| {
        step.show(progress);
        let left = pane.as_mut().is_some_and(|pane| pane.post(progress).left());
        signal.set(signal.get().or_else(|| signals.arrived()).or(left.then_some(LEFT)));
        let said = on_progress(progress);
        if signal.get().is_some() { Go::Stop } else { said }
    };
    let t0_ns = clock::now_ns();
    let measured = window::measure(session, recorder.as_mut(), &order, &mut watch);
    let t1_ns = clock::now_ns();
    step.done();
    if let Some(Err(error)) = pane.map(Pane::end) {
        eprintln!("the live view ended before the measurement: {error:#}");
    }
    output.run.stressors = running.stop(session)?;
    tracing::finish(recorder, output, session, measured.is_err())?;
    let measured = measured?;
    output.run.observer.look_ns = measured.look_ns;
    output.run.windows.push(measured.window);
    output.run.probes = measured.probes;
    output.run.limits.extend(measured.limits);
    output.stopped_at(measured.stopped_at);
    let phase = Phase { name: PHASE.to_owned(), t0_ns, t1_ns, disturbed };
    output.run.phases.push(phase);
    if signal.get().is_none() {
        signal.set(after(output, session)?);
    }
    output.release_latency();
    write_snapshot(place, &output.dir, store::MACHINE_AFTER)?;
    output.run.machine_after = Some(store::MACHINE_AFTER.to_owned());
    output.run.observer.drain_rss_kib = Some(clock::peak_rss_kib());
    Ok(Ended { signal: signal.get(), taken: measured.taken })
}
