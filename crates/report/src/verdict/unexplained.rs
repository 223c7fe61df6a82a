//! The sentence for time that no recorded event took: what the step waited for, what could have
//! held it up unseen, and what the machine's counters show. Never the task that happened to be
//! current.

use super::Known;
use analysis::distribution::Distribution;
use attribution::attribute::Confidence;
use attribution::attribute::delay::Blocking;
use attribution::attribute::path_section::PathBox;
use attribution::attribute::step::Step;
use model::idle::IdleExits;
use model::sample::ProbeKind;

use crate::{Document, format};

/// Unit of steal time in `/proc/stat`, ns: the counter may have grown by one more than it shows.
pub(crate) const STEAL_STEP_NS: u64 = 10_000_000;

/// Why a sample has no cause: it was not taken apart.
pub(super) fn not_recorded(document: &Document, window: &Distribution) -> String {
    if document.run.trace.is_none() {
        let steal = steal(document, window, None);
        return format!("not known: no trace was recorded{steal}");
    }
    "not known: the trace does not hold its way".to_owned()
}

/// The command that shows more of a sample that was not taken apart.
pub(super) fn record(document: &Document, window: &Distribution) -> String {
    let verb = if window.probe == ProbeKind::Noise { "spin" } else { "wakeup" };
    if document.run.trace.is_none() {
        again_with_trace(&document.run.command)
            .unwrap_or_else(|| format!("stillcore measure {verb} --cpus {} --trace", window.cpu))
    } else {
        format!("stillcore trace explain {}", document.dir)
    }
}

/// The measurement once more, with a trace, into another directory; none of a run that was made
/// otherwise.
fn again_with_trace(command: &[String]) -> Option<String> {
    let mut words = command.iter().map(String::as_str).peekable();
    let (program, verb) = (words.next()?, words.next()?);
    if verb != "measure" || command.iter().any(|word| word == "--") {
        return None;
    }
    let mut again = vec![program, verb];
    while let Some(word) = words.next() {
        match word {
            "--out" => drop(words.next()),
            "--trace" => drop(words.next_if(|mode| ["on", "off", "auto"].contains(mode))),
            _ if word.starts_with("--out=") || word.starts_with("--trace=") => {}
            _ => again.push(word),
        }
    }
    again.push("--trace");
    Some(again.join(" "))
}

/// A step that waited for another CPU: the marks at its ends show the wait, but not its reason.
pub(super) fn of_step_elsewhere(part: &PathBox) -> (String, Known) {
    let step = match part.step {
        Step::TimerLate => "the timer expired late",
        Step::TimerHandler => "the timer's handler asked late for the wake-up",
        _ => "the wake-up was on its way",
    };
    let confidence = match part.confidence {
        Some(Confidence::Order) => Known::ByOrder,
        _ => Known::Exact,
    };
    let text = format!("{step} on CPU {}; the trace does not show what ran there", part.cpu);
    (text, confidence)
}

/// `ns` that stayed with a step of the measured CPU.
pub(super) fn of_step(document: &Document, window: &Distribution, step: Step, ns: u64) -> String {
    let waited = match step {
        Step::TimerLate => "the timer expired late",
        Step::IpiInFlight => "the IPI came late",
        Step::TimerHandler | Step::WakeUp => "the interrupt that woke the task took long",
        Step::Switch => "the scheduler switched late",
        Step::Return => "the task had the CPU and read its clock late",
        Step::SwitchUnseen => "the task ran late; when it got the CPU is not in the trace",
        Step::NeverSlept if window.probe == ProbeKind::Noise => "the loop had the CPU",
        Step::NeverSlept => "the task was late already and did not sleep",
    };
    let steal = steal(document, window, Some(ns));
    let suspects = suspects(document, step);
    format!("{waited}, and no recorded event held it up: {suspects}; not recorded which{steal}")
}

/// Why a current task may not have been preempted.
const CODE: &str = "kernel code that could not be preempted";
/// The same, where nothing was recorded that would show it.
const CODE_UNSEEN: &str = "kernel code that could not be preempted (record it with --stacks)";

/// What may have held a step up without an event. The list never ends with a suspect: it may have
/// been something else that this kernel does not record.
fn suspects(document: &Document, step: Step) -> String {
    let seen = |blocking| document.analysis.blocking.iter().any(|one| one.blocking == blocking && one.seen);
    let mut all = Vec::new();
    match step {
        Step::TimerLate | Step::IpiInFlight => {
            if !seen(Blocking::InterruptsOff) {
                all.push("interrupts off");
            }
            if IdleExits::of(&document.run) != IdleExits::HeldOff {
                all.push("an exit from idle");
            }
        }
        Step::Switch | Step::SwitchUnseen if !seen(Blocking::PreemptionOff) => {
            let stacks = seen(Blocking::KernelCode);
            all.push(if stacks { CODE } else { CODE_UNSEEN });
        }
        Step::TimerHandler | Step::WakeUp | Step::Return => all.push("its own code"),
        _ => {}
    }
    all.push("firmware");
    if document.machine.machine.hypervisor.is_some() {
        all.push("the hypervisor");
    }
    format!("{} or something without an event", all.join(", "))
}

/// The steal time of the window, and how much of `ns` it can be at most. It counts the time in
/// which the hypervisor ran another guest or task; no counter has its work for this guest.
pub(super) fn steal(document: &Document, window: &Distribution, ns: Option<u64>) -> String {
    if document.machine.machine.hypervisor.is_none() {
        return String::new();
    }
    let mut windows = document.run.windows.iter();
    let ours = windows.find(|one| (&one.phase, one.probe) == (&window.phase, window.probe));
    match ours.and_then(|one| one.steal_ns.get(&window.cpu)) {
        None => String::new(),
        // A counter that stands still may be one that the hypervisor does not fill.
        Some(0) => {
            "; no steal time was counted there in this window (not every hypervisor reports it)".to_owned()
        }
        Some(counted_ns) => {
            let counted = format::ns(*counted_ns as i64);
            let bound = ns.map(|ns| {
                let most_ns = ns.min(counted_ns + STEAL_STEP_NS);
                format!(": at most {} of this is steal time", format::ns(most_ns as i64))
            });
            let bound = bound.unwrap_or_default();
            format!("; the kernel counted {counted} of steal time there in this window{bound}")
        }
    }
}
