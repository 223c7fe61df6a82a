//! What is said of time that no recorded event took: what the step waited for, what could have held it up unseen, and what the
//! machine's counters say of that. Never who happened to be current.

use super::Known;
use analysis::attribute::blocking::Blocking;
use analysis::attribute::path::Step;
use analysis::shape::{Distribution, PathBox};
use model::sample::ProbeKind;

use crate::{Document, format};

/// Steal time is counted in steps of the clock tick of `/proc/stat`, ns.
const STEAL_STEP_NS: u64 = 10_000_000;

/// Why a sample has no cause: it was not taken apart.
pub(super) fn not_recorded(document: &Document, window: &Distribution) -> String {
    if document.run.trace.is_none() {
        let steal = steal(document, window, None);
        return format!("not known: no trace was recorded{steal}");
    }
    "not known: the trace does not hold its way".to_owned()
}

/// How to see more of a sample without a way.
pub(super) fn record(document: &Document, window: &Distribution) -> String {
    let verb = if window.probe == ProbeKind::Noise { "spin" } else { "wakeup" };
    if document.run.trace.is_none() {
        format!("stillcore measure {verb} --cpus {} --trace", window.cpu)
    } else {
        format!("stillcore trace explain {}", document.dir)
    }
}

/// What is known of time that stayed with its step.
pub(super) fn of_step(
    document: &Document,
    window: &Distribution,
    part: &PathBox,
    ns: u64,
) -> (String, Known) {
    let place = if part.cpu == window.cpu { String::new() } else { format!(" on CPU {}", part.cpu) };
    if !place.is_empty() {
        let what = match part.step {
            Step::TimerLate => "the timer expired late",
            Step::TimerHandler => "the timer's handler asked late for the wake-up",
            _ => "the wake-up was on its way",
        };
        return (format!("{what}{place}, where no event is recorded of what ran"), Known::Unknown);
    }
    let steal = steal(document, window, Some(ns));
    let unseen = unseen(document, part.step);
    let text = match part.step {
        Step::TimerLate => {
            format!("the timer's interrupt came late, and nothing recorded held it up: {unseen}{steal}")
        }
        Step::IpiInFlight => format!("the IPI came late, and nothing recorded held it up: {unseen}{steal}"),
        Step::TimerHandler | Step::WakeUp => {
            format!(
                "inside the interrupt that woke the task, and nothing recorded interrupted it: its own code, firmware or a hypervisor; not recorded which{steal}"
            )
        }
        Step::Switch => {
            format!("the scheduler switched late, and nothing recorded held it up: {unseen}{steal}")
        }
        Step::Return => format!(
            "the task had the CPU and came late to its clock: its own code, firmware or a hypervisor; not recorded which{steal}"
        ),
        Step::NeverSlept if window.probe == ProbeKind::Noise => {
            format!("the loop had the CPU, and nothing recorded took it: {unseen}{steal}")
        }
        Step::NeverSlept => {
            format!("the task was late already and did not sleep; nothing recorded took the CPU{steal}")
        }
    };
    (text, Known::Unknown)
}

/// What may have held a step up without an event.
fn unseen(document: &Document, step: Step) -> String {
    let seen = |blocking| document.analysis.blocking.iter().any(|one| one.blocking == blocking && one.seen);
    let mut all = Vec::new();
    if matches!(step, Step::TimerLate | Step::IpiInFlight) && !seen(Blocking::InterruptsOff) {
        all.push("interrupts off");
    }
    if step == Step::Switch && !seen(Blocking::PreemptionOff) {
        all.push("kernel code that could not be preempted");
    }
    all.push("firmware");
    if document.machine.machine.hypervisor.is_some() {
        all.push("the hypervisor");
    }
    let [rest @ .., last] = all.as_slice() else { return String::new() };
    if rest.is_empty() {
        (*last).to_owned()
    } else {
        format!("{} or {last}; not recorded which", rest.join(", "))
    }
}

/// What the kernel's count of steal time over the window says of `ns` of it.
fn steal(document: &Document, window: &Distribution, ns: Option<u64>) -> String {
    let mut ours =
        document.run.windows.iter().filter(|one| (&one.phase, one.probe) == (&window.phase, window.probe));
    let Some(Some(stolen_ns)) = ours.next().map(|one| one.steal_ns.get(&window.cpu).copied()) else {
        return String::new();
    };
    if document.machine.machine.hypervisor.is_none() {
        return String::new();
    }
    let counted =
        format!("the kernel counted {} of steal time there in this window", format::ns(stolen_ns as i64));
    match ns {
        // A counter of 10 ms steps may have grown by one more than it shows.
        Some(ns) => {
            let most = ns.min(stolen_ns + STEAL_STEP_NS);
            format!("; {counted}: at most {} of this is the hypervisor's", format::ns(most as i64))
        }
        None => format!("; {counted}"),
    }
}
