//! The sentence for time that no recorded event took: what the step waited for, what could have
//! held it up unseen, and what the machine's counters show. Never the task that happened to be
//! current.

use super::{Facts, Known, Place};
use analysis::distribution::Distribution;
use attribution::attribute::Confidence;
use attribution::attribute::delay::Blocking;
use attribution::attribute::path_section::{PathBox, TaskText};
use attribution::attribute::step::Step;
use model::idle::IdleExits;
use model::run::Run;
use model::sample::ProbeKind;

use crate::{Document, format};

/// Who had the CPU until the switch to the task: who was there, not who held it up.
pub fn replaced(task: &TaskText, cpu: u32) -> String {
    match task.pid {
        0 => format!("CPU {cpu} was idle until the switch"),
        pid => format!(
            "{}[{pid}] had CPU {cpu} until the switch, which does not show that it held it up",
            task.comm
        ),
    }
}

/// Unit of steal time in `/proc/stat`, ns: the counter may have grown by one more than it shows.
pub(crate) const STEAL_STEP_NS: u64 = 10_000_000;

/// Why a sample has no cause, of one whose trace lacks it.
pub(super) const NO_WAY: &str = "not known: the trace does not hold its way";

/// Why a sample has no cause: it was not taken apart.
pub(super) fn not_recorded(document: &Document, window: &Distribution) -> String {
    if document.run.trace.is_none() {
        let steal = steal(&Facts::of(document), Place::of(window), None);
        return format!("not known: no trace was recorded{steal}");
    }
    if let Some(limit_ns) = limit_above(document, window) {
        let limit = format::ns(limit_ns);
        return format!("not known: it stayed below the limit of {limit}, so no trace of it was kept");
    }
    NO_WAY.to_owned()
}

/// The limit of a trace that is kept around large samples only, where no sample of this window
/// reached it.
fn limit_above(document: &Document, window: &Distribution) -> Option<i64> {
    let limit_ns = document.run.trace.as_ref()?.snapshots.as_ref()?.over_ns;
    window.observed_max_ns.filter(|max_ns| *max_ns < limit_ns).map(|_| limit_ns)
}

/// The command that shows more of a sample that was not taken apart.
pub(super) fn record(document: &Document, window: &Distribution) -> String {
    let run = &document.run;
    let below = limit_above(document, window).is_some();
    if run.trace.is_some() && !below {
        return format!("stillcore trace explain {}", document.dir);
    }
    // With the same limit the next run would keep no trace either.
    let limit = window.observed_max_ns.filter(|_| run.stopped_at.is_none()).map(smaller_limit);
    again(&run.command, limit.as_deref()).unwrap_or_else(|| {
        let verb = if window.probe == ProbeKind::Noise { "spin" } else { "wakeup" };
        let limit = limit.filter(|_| below).map_or_else(String::new, |limit| format!(" --stop-over {limit}"));
        format!("stillcore measure {verb} --cpus {} --trace{limit}", window.cpu)
    })
}

/// The measurement once more, which may stop at a sample whose cause is shown; none of a run that
/// was made otherwise.
pub(super) fn once_more(run: &Run) -> Option<String> {
    again(&run.command, None)
        .map(|command| format!("{command}  # the next one may have a cause that is shown"))
}

/// A limit that a sample of this value reaches, two digits long: `36ms`.
fn smaller_limit(value_ns: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (unit, name) = units.into_iter().find(|(unit, _)| value_ns >= 10 * unit).unwrap_or((1, "ns"));
    let mut digits = (value_ns / unit).max(1);
    let mut zeros = 1;
    while digits >= 100 {
        (digits, zeros) = (digits / 10, zeros * 10);
    }
    format!("{}{name}", digits * zeros)
}

/// The measurement once more, with a trace, a limit that it reaches where it has one, into another
/// directory; none of a run that was made otherwise.
fn again(command: &[String], limit: Option<&str>) -> Option<String> {
    let mut words = command.iter().map(String::as_str).peekable();
    let (program, verb) = (words.next()?, words.next()?);
    if verb != "measure" || command.iter().any(|word| word == "--") {
        return None;
    }
    let mut again = vec![program.to_owned(), verb.to_owned()];
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        match (name, limit) {
            ("--out", _) if value.is_none() => {
                words.next();
            }
            ("--trace", _) if value.is_none() => {
                words.next_if(|mode| ["on", "off", "auto"].contains(mode));
            }
            ("--out" | "--trace", _) => {}
            ("--stop-over" | "--trace-over", Some(limit)) => {
                if value.is_none() {
                    words.next();
                }
                again.push(format!("{name} {limit}"));
            }
            _ => again.push(word.to_owned()),
        }
    }
    again.push("--trace".to_owned());
    Some(again.join(" "))
}

/// A step that waited for another CPU: the marks at its ends show the wait, but not its reason.
pub(super) fn of_step_elsewhere(run: &Run, part: &PathBox) -> (String, Known) {
    let step = match part.step {
        Step::TimerLate => "the timer expired late",
        Step::TimerHandler => "the timer's handler asked late for the wake-up",
        _ => "the wake-up was on its way",
    };
    let confidence = match part.confidence {
        Some(Confidence::Order) => Known::ByOrder,
        _ => Known::Exact,
    };
    let why = if run.measured_cpus.contains(part.cpu) { "" } else { ": only measured CPUs are recorded" };
    let text = format!("{step} on CPU {}; the trace does not show what ran there{why}", part.cpu);
    (text, confidence)
}

/// `ns` that stayed with a step of the measured CPU.
pub(super) fn of_step(facts: &Facts, place: Place, step: Step, ns: u64) -> String {
    let waited = match step {
        Step::TimerLate => "the timer expired late",
        Step::IpiInFlight => "the IPI came late",
        Step::TimerHandler | Step::WakeUp => "the interrupt that woke the task took long",
        Step::Switch => "the scheduler switched late",
        Step::Return => "the task had the CPU and read its clock late",
        Step::SwitchUnseen => "the task ran late; when it got the CPU is not in the trace",
        Step::NeverSlept if place.probe == ProbeKind::Noise => "the loop had the CPU",
        Step::NeverSlept => "the task was late already and did not sleep",
    };
    let steal = steal(facts, place, Some(ns));
    let suspects = suspects(facts, step);
    format!("{waited}, and no recorded event held it up: {suspects}; not recorded which{steal}")
}

/// Why a current task may not have been preempted.
const CODE: &str = "kernel code that could not be preempted";
/// The same, where nothing was recorded that would show it.
const CODE_UNSEEN: &str = "kernel code that could not be preempted (record it with --stacks)";

/// What may have held a step up without an event. The list never ends with a suspect: it may have
/// been something else that this kernel does not record.
fn suspects(facts: &Facts, step: Step) -> String {
    let seen = |blocking| facts.blocking.iter().any(|one| one.blocking == blocking && one.seen);
    let mut all = Vec::new();
    match step {
        Step::TimerLate | Step::IpiInFlight => {
            if !seen(Blocking::InterruptsOff) {
                all.push("interrupts off");
            }
            if IdleExits::of(facts.run) != IdleExits::HeldOff {
                all.push("an exit from idle");
            }
        }
        Step::Switch | Step::SwitchUnseen => {
            // Its own handler is no event of somebody else, and is not cut out of the step.
            all.push("the rest of the interrupt that woke it");
            if !seen(Blocking::PreemptionOff) {
                let stacks = seen(Blocking::KernelCode);
                all.push(if stacks { CODE } else { CODE_UNSEEN });
            }
        }
        Step::TimerHandler | Step::WakeUp | Step::Return => all.push("its own code"),
        Step::NeverSlept => {}
    }
    all.push("firmware");
    if facts.machine.hypervisor.is_some() {
        all.push("the hypervisor");
    }
    format!("{} or something without an event", all.join(", "))
}

/// The steal time of the window, and how much of `ns` it can be at most. It counts the time in
/// which the hypervisor ran another guest or task; no counter has its work for this guest.
pub(super) fn steal(facts: &Facts, place: Place, ns: Option<u64>) -> String {
    if facts.machine.hypervisor.is_none() {
        return String::new();
    }
    let mut windows = facts.run.windows.iter();
    let ours = windows.find(|one| (one.phase.as_str(), one.probe) == (place.phase, place.probe));
    match ours.and_then(|one| one.steal_ns.get(&place.cpu)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_run_has_a_limit_that_it_reaches() {
        let command = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let limit = smaller_limit(36_551_234);
        assert_eq!(limit, "36ms");
        assert_eq!(smaller_limit(558_100), "550us");
        assert_eq!(smaller_limit(7), "7ns");
        let of = |line: &str| again(&command(line), Some(&limit)).unwrap();
        let expected = "stillcore measure wakeup --stop-over 36ms -D 2s --trace";
        assert_eq!(of("stillcore measure wakeup --stop-over 5s -D 2s --trace --out run"), expected);
        assert_eq!(of("stillcore measure wakeup --stop-over=5s -D 2s --trace=on --out=run"), expected);
        let stopped = again(&command("stillcore measure wakeup --stop-over 1us"), None);
        assert_eq!(stopped.as_deref(), Some("stillcore measure wakeup --stop-over 1us --trace"));
        assert_eq!(again(&command("stillcore assess --stop-over 5s"), Some("36ms")), None);
    }
}
