//! What a trace's metadata shows: its clock, and the events it lacks.

use super::shape::Record;
use crate::Error;
use ftrace::TraceFile;
use model::events::{EventCatalogue, EventSpec, KERNEL_STACK, Side, USER_STACK};

/// Clocks that do not count nanoseconds (Documentation/trace/ftrace.rst, trace_clock).
const COUNTERS: [&str; 2] = ["counter", "uptime"];
/// The same, unless the file converts its ticks to nanoseconds.
const TICKS: &str = "x86-tsc";
/// The clock of a file that names none: the kernel's default.
const DEFAULT: &str = "local";

/// The systems whose events are recorded together: each is of one interrupt vector, and some occur
/// once in years.
const WHOLE: [&str; 1] = ["irq_vectors"];
/// The systems that only x86 has.
const X86: [&str; 4] = ["irq_vectors", "exceptions", "nmi", "tlb"];

/// Architectures whose system calls have names here, as uname(1) gives them.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// The architecture of the traced kernel; empty where it is none of these, or not in the file.
pub(crate) fn arch(file: &TraceFile) -> &'static str {
    let has = |arch: &&str| file.uname().is_some_and(|uname| uname.contains(arch));
    ARCHITECTURES.into_iter().find(has).unwrap_or_default()
}

/// The clock of a trace; an error where it counts no nanoseconds.
pub(crate) fn clock(file: &TraceFile) -> Result<String, Error> {
    let top = file.buffer("").and_then(|top| top.clock.as_deref());
    let clock = top.or(file.clock()).unwrap_or(DEFAULT);
    if COUNTERS.contains(&clock) || (clock == TICKS && !file.has_ticks_in_ns()) {
        let what = format!("its clock is {clock}, which counts no nanoseconds");
        let expected = "a trace by another clock: trace-cmd record -C mono";
        return Err(model::Error::invalid(file.path().display(), what, expected).into());
    }
    Ok(clock.to_owned())
}

/// What to record, beside the events that were `seen`, to know more. `uname`: of the traced kernel.
pub(super) fn record(catalogue: &EventCatalogue, seen: &[String], uname: Option<&str>) -> Record {
    let mut record = Record::default();
    let is_seen = |spec: &EventSpec| seen.contains(&spec.name);
    for spec in catalogue.events.iter().filter(|spec| is_traced(spec, uname)) {
        let system = spec.name.split(':').next().unwrap_or_default();
        let whole = WHOLE.contains(&system);
        let name = if whole { system } else { spec.name.as_str() };
        let of_system = |other: &&EventSpec| other.name.split(':').next() == Some(system);
        let seen = is_seen(spec) || (whole && catalogue.events.iter().filter(of_system).any(is_seen));
        let later = spec.since.as_deref().filter(|since| !seen && is_before(uname, since));
        if let Some(since) = later {
            record.later.push((name.to_owned(), since.to_owned()));
            continue;
        }
        let list = if seen { &mut record.have } else { &mut record.missing };
        if !list.iter().any(|one| one == name) {
            list.push(name.to_owned());
        }
    }
    record
}

/// Events that are not proposed: a stack needs a trigger, and sleep of a CPU means nothing without
/// stored exit latencies of its idle states.
const NOT_ASKED: [&str; 4] = [KERNEL_STACK, USER_STACK, model::idle::EVENT, model::frequency::EVENT];

/// Whether it is a tracepoint that such a machine may have, and that helps in any trace.
fn is_traced(spec: &EventSpec, uname: Option<&str>) -> bool {
    let on = spec.on.iter().any(|side| matches!(side, Side::Victim | Side::Sender));
    let arch = |name: &str| uname.is_some_and(|uname| uname.contains(name));
    let system = spec.name.split(':').next().unwrap_or_default();
    let fits = match &spec.arch {
        Some(only) => arch(only),
        None => !X86.contains(&system) || arch("x86_64") || arch("i686"),
    };
    on && fits && spec.kprobe.is_none() && !NOT_ASKED.contains(&spec.name.as_str())
}

/// Whether a kernel is older than `since`; one whose version is not known is not.
fn is_before(uname: Option<&str>, since: &str) -> bool {
    let version = |text: &str| -> Option<(u32, u32)> {
        let mut parts = text.split(|char: char| !char.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    let release = uname.and_then(|uname| uname.split_whitespace().find_map(version));
    release.zip(version(since)).is_some_and(|(release, since)| release < since)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Option<&str> = Some("Linux guest 6.1.0-31-amd64 #1 SMP x86_64");

    #[test]
    fn what_a_kernel_cannot_record_is_not_asked_of_it() {
        let catalogue = EventCatalogue::embedded().unwrap();
        let seen = ["sched:sched_switch".to_owned(), "irq_vectors:local_timer_entry".to_owned()];
        let record = |uname| record(&catalogue, &seen, uname);
        let old = record(OLD);
        assert_eq!(old.have, ["irq_vectors", "sched:sched_switch"]);
        assert!(old.missing.iter().any(|name| name == "timer:hrtimer_start"));
        assert!(!old.missing.iter().any(|name| name.starts_with("ipi:") || name.starts_with("stillcore:")));
        assert!(old.later.contains(&("ipi:ipi_send_cpu".to_owned(), "6.4".to_owned())), "{:?}", old.later);
        let new = record(Some("Linux guest 6.12.9-amd64 #1 SMP x86_64"));
        assert_eq!(new.later, []);
        assert!(new.missing.iter().any(|name| name == "csd:csd_queue_cpu"));
        let arm = record(Some("Linux guest 6.12.9-arm64 #1 SMP aarch64"));
        assert!(arm.missing.iter().any(|name| name == "ipi:ipi_entry"));
        assert!(!arm.missing.iter().any(|name| name.starts_with("irq_vectors")));
    }
}
