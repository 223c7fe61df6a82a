//! The second window of `measure overheads`: the same kernel work by its own tracepoints.
//!
//! It comes after the first and apart from it, so that recording costs the user-space terms
//! nothing. Two tasks give the kernel work: its timer wakes one every millisecond, the partner CPU
//! wakes the other. Their own samples are stored; statistics exclude them.

use crate::run::output::RunOutput;
use crate::run::place::Place;
use crate::run::recording;
use crate::values::TraceMode;
use journal::session::Session;
use measure::ipi::Method;
use measure::spec::{IpiSpec, ProbeSpec, Task, WakeupSpec};
use measure::window::{self, Go, Order};
use model::Cpus;
use model::events::EventCatalogue;
use model::run::{Phase, TRACED};
use model::sample::Policy;
use record::recorder::Recorder;
use sys::clock::{self, ClockId};
use sys::signals::EndSignals;

const DURATION_NS: i64 = 3_000_000_000;
const PERIOD_NS: i64 = 1_000_000;
/// Wake-ups from the partner: they end with the window, with time to spare.
const WAKE_UPS: u32 = 1_500;

/// What to record.
pub(super) struct Traced {
    pub(super) mode: TraceMode,
    pub(super) cpu: u32,
    pub(super) partner: Option<u32>,
    pub(super) policy: Policy,
}

/// Records, or says why not; returns the signal that ended it early.
pub(super) fn window(
    order: &Traced,
    place: &Place,
    output: &mut RunOutput,
    session: &mut Session,
    signals: &EndSignals,
) -> anyhow::Result<Option<&'static str>> {
    if order.mode == TraceMode::Off {
        return Ok(None);
    }
    // Recording a stack would add to the time measured.
    let events = EventCatalogue::embedded()?.without_stacks();
    match recording::prepare(session, output, &events, place, false, &[], None) {
        Ok(mut recorder) => {
            let ended = record(order, output, session, &mut recorder, signals);
            recording::finish(recorder, session, output)?;
            ended
        }
        Err(error) if order.mode == TraceMode::Auto => {
            let why =
                format!("no events were recorded ({error}): the terms are those seen from user space alone");
            output.run.limits.push(why);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn record(
    order: &Traced,
    output: &mut RunOutput,
    session: &mut Session,
    recorder: &mut Recorder,
    signals: &EndSignals,
) -> anyhow::Result<Option<&'static str>> {
    let mut signal = None;
    let mut watch = |_: window::Progress<'_>| {
        signal = signal.or_else(|| signals.arrived());
        if signal.is_some() { Go::Stop } else { Go::On }
    };
    let (k, t0_ns) = (output.run.windows.len(), clock::now_ns());
    let dir = output.dir.clone();
    let window = Order {
        run: &dir,
        phase: TRACED,
        k,
        probes: probes(order),
        align: None,
        watch: None,
        stop_over_ns: None,
    };
    let measured = window::measure(session, Some(recorder), &window, &mut watch)?;
    output.run.windows.push(measured.window);
    output.run.probes.extend(measured.probes);
    output.run.limits.extend(measured.limits);
    let phase = Phase { name: TRACED.to_owned(), t0_ns, t1_ns: clock::now_ns(), disturbed: false };
    output.run.phases.push(phase);
    Ok(signal)
}

fn probes(order: &Traced) -> Vec<ProbeSpec> {
    let spec = |thread: u32, task: Task| ProbeSpec {
        thread,
        cpus: Cpus::one(order.cpu),
        policy: order.policy.clone(),
        timer_slack_ns: 1,
        duration_ns: DURATION_NS,
        task,
    };
    let by_timer = Task::Wakeup(WakeupSpec {
        period_ns: PERIOD_NS,
        offset_ns: 0,
        warm_up: 0,
        clock: ClockId::Monotonic,
        loops: 0,
    });
    let by_partner = order.partner.map(|partner| {
        Task::Ipi(IpiSpec {
            from: vec![partner],
            methods: vec![Method::Futex],
            count: WAKE_UPS,
            warm_up: 0,
            interval_ns: PERIOD_NS,
            busy: false,
            offset_ns: 0,
        })
    });
    [Some(by_timer), by_partner]
        .into_iter()
        .flatten()
        .zip(0..)
        .map(|(task, thread)| spec(thread, task))
        .collect()
}
