//! How stretches with interrupts or preemption off are recorded: by the kernel's own events
//! (`preemptirq`, include/trace/events/preemptirq.h), which few kernels are built with, or by a pair
//! of probes on functions of the kernel, at the entry and at the return.
//!
//! A pair shows that a CPU was in a function. That interrupts or preemption were off there is what
//! whoever names the function says of it; the trace contradicts where the CPU was given up inside.

use crate::events::{EventCatalogue, EventSpec, Role, Side, on_measured};
use std::collections::BTreeMap;

/// The start of the name of an event at the entry of a probed function, and at its return.
const ENTRY: &str = "stillcore:in_";
const RETURN: &str = "stillcore:out_";

/// The longest name that a probe may have (`MAX_EVENT_NAME_LEN`, include/linux/trace_events.h).
const LONGEST: usize = 63;

/// The kernel's own events.
pub const KERNEL: [&str; 4] = [
    "preemptirq:irq_disable",
    "preemptirq:irq_enable",
    "preemptirq:preempt_disable",
    "preemptirq:preempt_enable",
];

impl EventSpec {
    /// An event that is no interference itself, on the measured CPUs.
    pub(crate) fn link(name: String) -> Self {
        Self {
            name,
            role: Role::Link,
            class: None,
            exit: None,
            key: None,
            label: None,
            length_ns: None,
            filter: None,
            on: on_measured(),
            aims: None,
            aims_any: None,
            aims_set: None,
            row: None,
            when: BTreeMap::new(),
            kprobe: None,
            eprobe: None,
            uprobes: Vec::new(),
            returns: false,
            unless: None,
            stack: BTreeMap::new(),
            stack_unless: None,
            arch: None,
            since: None,
            preemptible: false,
        }
    }
}

/// One end of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The function is entered.
    Entry,
    /// It returns.
    Return,
}

/// Which end of a pair an event is; `None` for other events.
pub fn end_of(event: &str) -> Option<End> {
    match event {
        _ if event.starts_with(ENTRY) => Some(End::Entry),
        _ if event.starts_with(RETURN) => Some(End::Return),
        _ => None,
    }
}

/// The function of an event of a pair, as its name has it: what is no letter, digit or underscore
/// in the function's own name is an underscore there.
pub fn function_of(event: &str) -> Option<&str> {
    event.strip_prefix(ENTRY).or_else(|| event.strip_prefix(RETURN))
}

/// The pair of a function of the kernel. With a stack at the entry where stacks of the measured
/// CPUs are recorded.
pub fn pair(function: &str) -> [EventSpec; 2] {
    let plain: String =
        function.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '_' }).collect();
    let end = |start: &str, returns: bool| {
        let room = LONGEST.saturating_sub(start.len() - "stillcore:".len());
        let name = format!("{start}{}", &plain[..plain.len().min(room)]);
        EventSpec { kprobe: Some(function.to_owned()), returns, ..EventSpec::link(name) }
    };
    let mut entry = end(ENTRY, false);
    entry.stack.insert(Side::Victim, String::new());
    [entry, end(RETURN, true)]
}

impl EventCatalogue {
    /// The same events with those of the kernel for interrupts and preemption off recorded on the
    /// measured CPUs.
    #[must_use]
    pub fn with_preemptirq(mut self) -> Self {
        for event in self.events.iter_mut().filter(|event| KERNEL.contains(&event.name.as_str())) {
            event.on = vec![Side::Victim];
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_a_name_that_the_kernel_takes_and_keeps_the_function() {
        let [entry, end] = pair("load_balance.constprop.0");
        assert_eq!(entry.name, "stillcore:in_load_balance_constprop_0");
        assert_eq!(end.name, "stillcore:out_load_balance_constprop_0");
        assert_eq!((entry.returns, end.returns), (false, true));
        assert_eq!(entry.kprobe.as_deref(), Some("load_balance.constprop.0"));
        assert_eq!((end_of(&entry.name), end_of(&end.name)), (Some(End::Entry), Some(End::Return)));
        assert_eq!(function_of(&end.name), Some("load_balance_constprop_0"));
        let [long, _] = pair(&"x".repeat(100));
        assert_eq!(long.name.split_once(':').unwrap().1.len(), LONGEST);
        assert_eq!(end_of("sched:sched_switch"), None);
    }

    #[test]
    fn functions_that_are_known_to_be_long_are_ten_with_reasons() {
        let catalogue = EventCatalogue::embedded().unwrap();
        assert_eq!(catalogue.long_off.len(), 10);
        assert!(catalogue.long_off.iter().all(|one| !one.functions.is_empty() && !one.why.is_empty()));
        let victims = |catalogue: &EventCatalogue| {
            catalogue
                .events
                .iter()
                .filter(|one| one.on == [Side::Victim] && KERNEL.contains(&one.name.as_str()))
                .count()
        };
        assert_eq!((victims(&catalogue), victims(&catalogue.clone().with_preemptirq())), (0, KERNEL.len()));
    }
}
