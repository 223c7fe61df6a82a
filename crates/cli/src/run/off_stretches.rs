//! What records stretches with interrupts or preemption off: the kernel's own events where it has
//! them, else a pair of probes on functions.

use journal::session::Session;
use model::Error;
use model::events::{EventCatalogue, LongOff};
use model::off;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The option that asks for it.
pub(crate) const OPTION: &str = "--off-stretches";

/// The events with those that the option asks for. `asked`: functions by name, with commas; the
/// kernel's events, or the functions that are known to be long, where it is empty.
pub(crate) fn recorded(events: EventCatalogue, asked: &str, tracefs: &Path) -> Result<EventCatalogue, Error> {
    let has = |event: &str| tracefs.join("events").join(event.replace(':', "/")).is_dir();
    if asked.is_empty() && off::KERNEL.iter().any(|event| has(event)) {
        return Ok(events.with_preemptirq());
    }
    if !tracefs.join("kprobe_events").exists() {
        let what = "this kernel has neither events of interrupts and preemption (preemptirq) nor probes of its functions (CONFIG_KPROBE_EVENTS)";
        return Err(Error::invalid(OPTION, what, "no such option on this kernel"));
    }
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let functions = functions(&events.long_off, asked, &symbols)?;
    Ok(events.and(functions.iter().flat_map(|function| off::pair(function))))
}

/// Refuses, before anything is written, what cannot be recorded here.
pub(crate) fn check(asked: Option<&str>, session: &mut Session) -> anyhow::Result<()> {
    if let Some(asked) = asked {
        recorded(EventCatalogue::embedded()?, asked, &session.tracefs()?)?;
    }
    Ok(())
}

/// Which functions to probe, of those in the text of `/proc/kallsyms`.
fn functions(known: &[LongOff], asked: &str, symbols: &str) -> Result<BTreeSet<String>, Error> {
    let names: BTreeSet<&str> =
        symbols.lines().filter_map(|line| line.split_ascii_whitespace().nth(2)).collect();
    if asked.is_empty() {
        let first = |one: &LongOff| one.functions.iter().find(|name| names.contains(name.as_str())).cloned();
        return Ok(known.iter().filter_map(first).collect());
    }
    let mut all = BTreeSet::new();
    for name in asked.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !names.contains(name) {
            let what = format!("this kernel has no function {name:?}");
            return Err(Error::invalid(OPTION, what, alike(name, &names)));
        }
        all.insert(name.to_owned());
    }
    Ok(all)
}

/// What was probably meant: compilers put something behind the name of a function that they split.
fn alike(name: &str, names: &BTreeSet<&str>) -> String {
    let start = format!("{name}.");
    match names.iter().find(|other| other.starts_with(&start)) {
        Some(other) => format!("{other}, as the compiler named it"),
        None => "names of /proc/kallsyms; a function that is part of its callers has none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "0000000000000000 t load_balance\n0000000000000000 T multi_cpu_stop\n\
                           0000000000000000 t rmqueue_bulk.constprop.0\n0000000000000000 t x [mod]\n";

    #[test]
    fn functions_are_those_of_this_kernel() {
        let known = EventCatalogue::embedded().unwrap().long_off;
        let found: Vec<_> = functions(&known, "", SYMBOLS).unwrap().into_iter().collect();
        assert_eq!(found, ["load_balance", "multi_cpu_stop"]);
        let named: Vec<_> = functions(&known, "x, multi_cpu_stop", SYMBOLS).unwrap().into_iter().collect();
        assert_eq!(named, ["multi_cpu_stop", "x"]);
        let error = functions(&known, "rmqueue_bulk", SYMBOLS).unwrap_err().to_string();
        assert!(error.contains("rmqueue_bulk.constprop.0"), "{error}");
        let error = functions(&known, "no_such", SYMBOLS).unwrap_err().to_string();
        assert!(error.contains("no function \"no_such\""), "{error}");
    }

    #[test]
    fn a_kernel_with_events_of_its_own_needs_no_probes_and_one_without_either_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let error = recorded(EventCatalogue::embedded().unwrap(), "", dir.path()).unwrap_err().to_string();
        assert!(error.contains("preemptirq"), "{error}");
        fs::create_dir_all(dir.path().join("events/preemptirq/irq_disable")).unwrap();
        let events = recorded(EventCatalogue::embedded().unwrap(), "", dir.path()).unwrap();
        assert_eq!(events, EventCatalogue::embedded().unwrap().with_preemptirq());
    }
}
