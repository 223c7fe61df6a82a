//! The recorder of a run, set up: what recording an event costs, and a private instance that is
//! ready.

use super::off_stretches;
use super::output::RunOutput;
use super::place::Place;
use journal::session::Session;
use machine::Root;
use model::events::{EventCatalogue, Stacks, USER_STACK};
use model::idle::{self, IdleExits};
use model::{Error, frequency, off};
use record::changes::TraceInstance;
use record::cost;
use record::instance::Instance;
use record::live::Keep;
use record::recorder::{self, Recorder};
use record::snapshots::SnapshotOrder;

/// Refuses options of a trace where none is recorded; `expected`: what to do instead.
pub(crate) fn only_with_a_trace(stacks: Stacks, kprobes: bool, expected: &str) -> Result<(), Error> {
    let given = [("--stacks", stacks.own), ("--user-stacks", stacks.users), ("--kprobes", kprobes)];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            Err(Error::invalid(option, "an option of a trace, and none is recorded", expected))
        }
        None => Ok(()),
    }
}

/// The events to record.
pub(crate) fn events(stacks: Stacks) -> Result<EventCatalogue, Error> {
    Ok(EventCatalogue::embedded()?.with(stacks))
}

/// Raw pages of the trace while it is being recorded.
const TRACE_PAGES: &str = "trace-pages";

/// What is recorded beside the usual.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    /// Whether the kernel may be probed for senders that it has no events for.
    pub(crate) kprobes: bool,
    /// Threads of a watched program.
    pub(crate) tids: &'a [i32],
    /// Where only what is around large samples is to be kept.
    pub(crate) snapshots: Option<SnapshotOrder>,
    /// What becomes of the pages.
    pub(crate) keep: Keep,
    /// Where stretches with interrupts or preemption off are recorded too: the functions that the
    /// user named.
    pub(crate) off_stretches: Option<&'a str>,
}

/// Prepares to record what happens on the measured CPUs, and what the others do to them, for the
/// run's file ([`prepare_for`]).
pub(crate) fn prepare(
    session: &mut Session,
    output: &mut RunOutput,
    events: &EventCatalogue,
    place: &Place,
    kprobes: bool,
    tids: &[i32],
    snapshots: Option<SnapshotOrder>,
) -> Result<Recorder, sys::Error> {
    let wanted = Wanted { kprobes, tids, snapshots, keep: Keep::File, off_stretches: None };
    prepare_for(session, output, events, place, &wanted)
}

/// The same for whoever wants it. The cost of an event is measured on the housekeeping CPUs and
/// stored.
pub(crate) fn prepare_for(
    session: &mut Session,
    output: &mut RunOutput,
    events: &EventCatalogue,
    place: &Place,
    wanted: &Wanted<'_>,
) -> Result<Recorder, sys::Error> {
    let Wanted { kprobes, tids, snapshots, keep, off_stretches } = *wanted;
    let name = format!("stillcore-{}", std::process::id());
    let tracefs = session.tracefs()?;
    let calibration = Instance::path_of(&tracefs, &format!("{name}-cost"));
    let instance = TraceInstance { path: calibration.clone() };
    let (cost, made) = session.change(instance, || cost::cost(calibration, &place.housekeeping))?;
    session.take_back(made)?;
    output.run.observer.trace_event_ns = cost.map(|cost| cost.event_ns);
    output.run.observer.trace_stack_ns = cost.and_then(|cost| cost.stack_ns);
    let users = events.get(USER_STACK).and(cost);
    output.run.observer.trace_user_stack_ns = users.and_then(|cost| cost.user_stack_ns);
    let without_users = users.is_some_and(|cost| cost.user_stack_ns.is_none());
    output.run.idle_states = machine::idle_states(&Root::live(), &place.measured);
    output.run.frequency_change_ns = machine::frequency_changes(&Root::live(), &place.measured);
    // Without these values from the drivers, the events say nothing.
    let mut events = events.clone();
    if without_users {
        let why = "--user-stacks: this kernel records no stacks of user space on this processor \
                   (CONFIG_USER_STACKTRACE_SUPPORT): where in the program something was done is not known";
        output.run.limits.push(why.to_owned());
        events = events.without(USER_STACK);
    }
    if IdleExits::of(&output.run) != IdleExits::Known {
        events = events.without(idle::EVENT);
    }
    if output.run.frequency_change_ns.is_empty() {
        events = events.without(frequency::EVENT);
    }
    if let Some(asked) = off_stretches {
        events = off_stretches::recorded(events, asked, &tracefs).map_err(sys::Error::of)?;
        if events.events.iter().any(|event| off::end_of(&event.name).is_some()) {
            let name = format!("{name}-cost");
            output.run.observer.trace_function_ns =
                cost::pair_ns(session, &tracefs, &name, &place.housekeeping)?;
        }
    }
    let scratch = output.dir.join(TRACE_PAGES);
    std::fs::create_dir(&scratch).map_err(|source| sys::Error::os("create", scratch.display(), source))?;
    let others = place.machine.topology.online.minus(&place.measured);
    let wanted = recorder::Place {
        name: &name,
        measured: &place.measured,
        others: &others,
        scratch: &scratch,
        kprobes,
        tids,
        snapshots,
        keep,
    };
    Recorder::prepare(session, &events, &wanted).inspect_err(|_| drop(std::fs::remove_dir_all(&scratch)))
}

/// Ends recording and writes the trace into the run. What could not be kept leaves no raw pages
/// behind.
pub(crate) fn finish(
    recorder: Recorder,
    session: &mut Session,
    output: &mut RunOutput,
) -> Result<(), sys::Error> {
    match recorder.finish(session, &output.dir) {
        Ok(record) => {
            output.run.trace = Some(record);
            Ok(())
        }
        Err(error) => {
            let _ = std::fs::remove_dir_all(output.dir.join(TRACE_PAGES));
            Err(error)
        }
    }
}
