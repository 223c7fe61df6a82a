//! One cell: a stressor alone between two idle controls, on CPUs that are busy in user space, as a
//! run directory; then its facts.
//!
//! The stressor is started and prepared before the disturbed window opens, and held. It begins
//! inside the window and lingers after its last operation; the window closes once it has ended. A
//! stressor that must have a thread on the measured CPUs keeps them busy itself. There the probe
//! sleeps through the window: if both shared the CPU, a random part of the operations would miss.

use super::ExposureArgs;
use crate::run::disturbed::{Disturbed, Groups};
use crate::run::facts::{write_findings, write_snapshot};
use crate::run::interrupted::Interrupted;
use crate::run::output::{self, RunOutput};
use crate::run::place::Place;
use crate::run::progress::Reporter;
use crate::run::recording;
use crate::{conclude, failure};
use analysis::exposure::{self, CellFacts, Ground};
use disturb::{Order, catalogue};
use journal::session::Session;
use measure::spec::{NoiseSpec, ProbeSpec, Task, WakeupSpec};
use measure::window::{self, Go, Progress};
use model::machine::Snapshot;
use model::run::Phase;
use model::sample::Policy;
use model::{Cpus, store};
use record::recorder::Recorder;
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;
use sys::clock::{self, ClockId};
use sys::signals::EndSignals;

/// From the window's start to the first operation: the probe's own beginning is over.
const LEAD: Duration = Duration::from_millis(200);
/// After the last operation: what it has set off, such as a work item or a grace period, comes to
/// its end.
const LINGER: Duration = Duration::from_millis(300);
/// How much longer than requested a stressor's last operation and end may take. Emulated machines
/// are slow.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same where the probe sleeps, and can only be woken at a time set before.
const SLEEP_OVER: Duration = Duration::from_secs(2);
/// When it wakes, before the window's end.
const WAKE_BEFORE_END: Duration = Duration::from_millis(20);
/// How long the busy loop runs before it looks whether the window is over.
const STRETCH: Duration = Duration::from_millis(100);
/// A real-time loop pauses for a fifth of the time: RT throttling begins at 95 %.
const FIFO_SPIN: Duration = Duration::from_millis(80);
const FIFO_PAUSE: Duration = Duration::from_millis(20);
/// The shortest gap stored: the samples are no result here.
const THRESHOLD: Duration = Duration::from_millis(1);

/// What all cells share.
pub(super) struct Asking<'a> {
    pub(super) place: &'a Place,
    pub(super) args: &'a ExposureArgs,
    pub(super) signals: &'a EndSignals,
}

/// Measures into `output` and counts.
pub(super) fn measure(
    asking: &Asking<'_>,
    order: &Order,
    mut output: RunOutput,
) -> anyhow::Result<CellFacts> {
    let place = asking.place;
    let dir = output.dir.clone();
    let mut session = Session::open(&place.program, &place.state)?;
    let result = phases(asking, order, &mut output, &mut session);
    output.run.limits.extend(session.close().into_iter().map(|what| format!("not restored: {what}")));
    write_snapshot(place, &dir, store::MACHINE_AFTER)?;
    output.run.machine_after = Some(store::MACHINE_AFTER.to_owned());
    let t_ns = output.run.phases.first().map(|phase| phase.t0_ns);
    output.close(result.as_ref().err().map(failure::sentence))?;
    result?;
    if !asking.args.count_only {
        conclude::write(&conclude::document(&dir)?, &dir)?;
    }
    output::mark_complete(&dir)?;
    Ok(CellFacts { ground: ground(&dir, t_ns)?, ..exposure::facts(&dir)? })
}

/// The machine when the cell began.
fn ground(dir: &Path, t_ns: Option<i64>) -> anyhow::Result<Option<Ground>> {
    let Some(t_ns) = t_ns else { return Ok(None) };
    let before: Snapshot = store::read_json(&dir.join(store::MACHINE_BEFORE))?;
    Ok(Some(Ground { boot_id: journal::boot_id()?, t_ns, state: before.state }))
}

/// What stays the same over the windows of a cell.
struct Stage<'a> {
    asking: &'a Asking<'a>,
    recorder: Recorder,
}

fn phases(
    asking: &Asking<'_>,
    order: &Order,
    output: &mut RunOutput,
    session: &mut Session,
) -> anyhow::Result<()> {
    let place = asking.place;
    write_snapshot(place, &output.dir, store::MACHINE_BEFORE)?;
    if !asking.args.count_only {
        write_findings(place, &output.dir)?;
    }
    let orders = std::slice::from_ref(order);
    // Groups are made before the first control and removed after the last: the first cpuset of a
    // machine interrupts every CPU.
    let groups = Groups::make(orders, &place.measured, session, &mut output.run.limits)?;
    let events = recording::events(model::events::Stacks::default())?;
    let recorder = recording::prepare(session, output, &events, place, asking.args.kprobes, &[], None)?;
    let mut stage = Stage { asking, recorder };
    let result = windows(&mut stage, order, &groups, output, session);
    let removed = groups.remove(session);
    let recorded = recording::finish(stage.recorder, session, output);
    result?;
    removed?;
    Ok(recorded?)
}

fn windows(
    stage: &mut Stage<'_>,
    order: &Order,
    groups: &Groups,
    output: &mut RunOutput,
    session: &mut Session,
) -> anyhow::Result<()> {
    let asked = stage.asking.args.duration;
    stage.window(output, session, "idle-before", spinner(stage.asking, asked), None)?;
    let options = disturb::Options {
        duration: asked,
        measured: stage.asking.place.measured.clone(),
        held: true,
        linger: LINGER,
        ..disturb::Options::default()
    };
    let orders = std::slice::from_ref(order);
    let disturbed = Disturbed::with(orders, options, groups, session, stage.asking.signals)?;
    if disturbed.over() {
        // It cannot be run here; nothing is to be measured beside it.
        output.run.stressors = disturbed.stop(session)?;
        return Ok(());
    }
    let probe = if catalogue::find(&order.name)?.colocated {
        sleeper(LEAD + asked + LINGER + SLEEP_OVER)
    } else {
        spinner(stage.asking, LEAD + asked + LINGER + PATIENCE)
    };
    let result = stage.window(output, session, "disturbed", probe, Some(&disturbed));
    output.run.stressors = disturbed.stop(session)?;
    result?;
    stage.window(output, session, "idle-after", spinner(stage.asking, asked), None)
}

/// A busy loop that reads the counter: user space all the time, and under SCHED_FIFO for four
/// fifths of it.
fn spinner(asking: &Asking<'_>, length: Duration) -> (Duration, Task) {
    let real_time = asking.args.priority > 0;
    let (spin, pause) = if real_time { (FIFO_SPIN, FIFO_PAUSE) } else { (STRETCH, Duration::ZERO) };
    let noise = NoiseSpec {
        threshold_ns: nanos(THRESHOLD) as u64,
        spin_ns: nanos(spin),
        pause_ns: nanos(pause),
        memmove_bytes: 0,
        preheat_ns: 0,
        bias: false,
    };
    (length, Task::Noise(noise))
}

/// One wake-up shortly before the end, and none before.
fn sleeper(length: Duration) -> (Duration, Task) {
    let wakeup = WakeupSpec {
        period_ns: nanos(Duration::from_secs(1)),
        offset_ns: nanos(length) - nanos(WAKE_BEFORE_END),
        warm_up: 0,
        clock: ClockId::Monotonic,
        loops: 0,
    };
    (length, Task::Wakeup(wakeup))
}

fn nanos(time: Duration) -> i64 {
    time.as_nanos() as i64
}

impl Stage<'_> {
    /// One window. A disturbance begins inside it, and its end is that of the window.
    fn window(
        &mut self,
        output: &mut RunOutput,
        session: &mut Session,
        phase: &str,
        (length, task): (Duration, Task),
        disturbed: Option<&Disturbed>,
    ) -> anyhow::Result<()> {
        let Asking { place, args, signals } = self.asking;
        let spec = |(thread, cpu)| ProbeSpec {
            thread,
            cpus: Cpus::one(cpu),
            policy: Policy::fifo(args.priority),
            timer_slack_ns: 1,
            duration_ns: nanos(length),
            task: task.clone(),
        };
        let probes = (0..).zip(place.measured.iter()).map(spec).collect();
        let (signal, begun) = (Cell::new(None), Cell::new(false));
        let mut watch = |progress: Progress<'_>| {
            signal.set(signal.get().or_else(|| signals.arrived()));
            let Some(disturbed) = disturbed else { return stop_if(signal.get().is_some()) };
            if !begun.get() && progress.elapsed_ns >= nanos(LEAD) {
                begun.set(true);
                disturbed.go();
            }
            stop_if(signal.get().is_some() || disturbed.over())
        };
        let t0_ns = clock::now_ns();
        let k = output.run.windows.len();
        let order = window::Order {
            run: &output.dir,
            phase,
            k,
            probes,
            align: None,
            watch: None,
            stop_over_ns: None,
        };
        let measured = window::measure(session, Some(&mut self.recorder), &order, &mut watch)?;
        let phase =
            Phase { name: phase.to_owned(), t0_ns, t1_ns: clock::now_ns(), disturbed: disturbed.is_some() };
        output.run.phases.push(phase);
        output.run.windows.push(measured.window);
        output.run.probes.extend(measured.probes);
        for limit in measured.limits {
            if !output.run.limits.contains(&limit) {
                Reporter::say(&format!("note: {limit}"));
                output.run.limits.push(limit);
            }
        }
        if let Some(signal) = signal.get() {
            return Err(Interrupted(signal).into());
        }
        measured.taken.map_or(Ok(()), |taken| Err(anyhow::anyhow!(taken)))
    }
}

fn stop_if(ended: bool) -> Go {
    if ended { Go::Stop } else { Go::On }
}
