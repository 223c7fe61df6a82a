//! The event catalogue: which tracepoints are recorded, what class each belongs to, and what
//! removes each class.
//!
//! The data is `catalogue/events.toml`; its header explains every key.

use crate::{Error, EventClass};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The events by which a program is watched.
pub const WATCH: &str = include_str!("../../../catalogue/watch.toml");

/// The catalogue that ships with stillcore.
pub const EMBEDDED: &str = include_str!("../../../catalogue/events.toml");

/// What an event does in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Opens a span.
    Enter,
    /// Closes a span.
    Exit,
    /// Stands alone.
    Instant,
    /// The scheduler's switch.
    Switch,
    /// Reports cause or receipt; no interference itself.
    Link,
}

/// Which stacks are recorded beside those of the kernel behind what others send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stacks {
    /// The kernel's on the measured CPUs, in the way of what is measured there.
    pub own: bool,
    /// Those of user space behind what others send.
    pub users: bool,
}

/// The record of the kernel's stack behind an event. It is no tracepoint: a trigger of the event
/// makes it.
pub const KERNEL_STACK: &str = "ftrace:kernel_stack";

/// The record of the stack of user space behind every event of a buffer that has them (option
/// `userstacktrace`).
pub const USER_STACK: &str = "ftrace:user_stack";

/// A page that a program used was not there (x86).
pub const PAGE_FAULT: &str = "exceptions:page_fault_user";

/// The CPUs on which an event is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The measured ones, which suffer.
    Victim,
    /// All others, which may be the cause.
    Sender,
    /// Any, but only what tasks of a watched program do.
    Watched,
    /// None: it is read where a trace that others have recorded holds it.
    Given,
}

pub(crate) fn on_measured() -> Vec<Side> {
    vec![Side::Victim]
}

/// One tracepoint.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    /// `system:event`.
    pub name: String,
    /// What it does in a stream.
    pub role: Role,
    /// Class of its span or instant.
    pub class: Option<EventClass>,
    /// The event that closes the span.
    pub exit: Option<String>,
    /// Field that must agree between the two ends.
    pub key: Option<String>,
    /// Field that says what ran.
    pub label: Option<String>,
    /// Field that holds the length in ns of an instant.
    pub length_ns: Option<String>,
    /// In-kernel filter.
    pub filter: Option<String>,
    /// On which CPUs it is recorded.
    #[serde(default = "on_measured")]
    pub on: Vec<Side>,
    /// Field that holds the CPU it is aimed at: beside the measured CPUs only those aimed at them
    /// are recorded.
    pub aims: Option<String>,
    /// The value of that field which stands for any CPU.
    pub aims_any: Option<u64>,
    /// Field that holds the set of CPUs it is aimed at.
    pub aims_set: Option<String>,
    /// Row of `/proc/interrupts` that counts the same, or `softirqs`.
    pub row: Option<String>,
    /// Other classes by label value.
    #[serde(default)]
    pub when: BTreeMap<String, EventClass>,
    /// A probe that makes the event where a kernel has none like it: a function and what to record,
    /// as `kprobe_events` takes it.
    pub kprobe: Option<String>,
    /// A probe beside another event that makes it: that event, and what to record, as
    /// `dynamic_events` takes it.
    pub eprobe: Option<String>,
    /// Probes of functions of programs that make it: file and offset, and what to record, as
    /// `uprobe_events` takes them.
    #[serde(default)]
    pub uprobes: Vec<String>,
    /// Whether a probe is at the function's return, not at its entry.
    #[serde(default)]
    pub returns: bool,
    /// The event that makes the probe needless; the probe is defined in any case where there is none.
    pub unless: Option<String>,
    /// On which sides the kernel's stack is recorded behind it, and on which condition on its
    /// fields; an empty one: whenever it is recorded itself.
    #[serde(default)]
    pub stack: BTreeMap<Side, String>,
    /// The event whose stack makes its own needless.
    pub stack_unless: Option<String>,
    /// Only on this architecture.
    pub arch: Option<String>,
    /// The first kernel that has it, `MAJOR.MINOR`, where 5.10 lacks it.
    pub since: Option<String>,
    /// Whether a context switch may come between enter and exit.
    #[serde(default)]
    pub preemptible: bool,
}

/// What removes the events of a class, and, where that depends on it, by what ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// Mechanism ids, best first.
    #[serde(default)]
    pub remedies: Vec<String>,
    /// Why there is none.
    pub why_none: Option<String>,
    /// Mechanism ids by what ran, best first; an empty list where no mechanism is known. A key is a
    /// label, or the start of one with `*` at its end.
    #[serde(default)]
    pub by_label: BTreeMap<String, Vec<String>>,
    /// Why no mechanism is known, by the same keys: a sentence for each empty list, and for nothing
    /// else.
    #[serde(default)]
    pub why_not: BTreeMap<String, String>,
}

impl Remedy {
    /// What removes the events of a label that has an entry: its own first, else that of the
    /// longest start.
    pub fn for_label(&self, label: &str) -> Option<&[String]> {
        self.by_label.get(self.key_of(label)?).map(Vec::as_slice)
    }

    /// Why nothing is known to remove the events of a label, where that is so.
    pub fn why_not(&self, label: &str) -> Option<&str> {
        self.why_not.get(self.key_of(label)?).map(String::as_str)
    }

    fn key_of<'a>(&'a self, label: &str) -> Option<&'a str> {
        let whole = self.by_label.get_key_value(label).map(|(key, _)| key.as_str());
        let starts = self
            .by_label
            .keys()
            .filter(|key| key.strip_suffix('*').is_some_and(|start| label.starts_with(start)));
        whole.or_else(|| starts.max_by_key(|key| key.len()).map(String::as_str))
    }
}

/// A function of the kernel that is known to keep interrupts or preemption off for long.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongOff {
    /// Its name, by kernel; the first one that a kernel has.
    pub functions: Vec<String>,
    /// What it does meanwhile.
    pub why: String,
}

/// Names of functions; `*` at the end of one stands for any rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Helpers(Vec<String>);

impl Helpers {
    /// Whether a function is one of them.
    pub fn has(&self, function: &str) -> bool {
        self.0.iter().any(|helper| match helper.strip_suffix('*') {
            Some(start) => function.starts_with(start),
            None => function == helper,
        })
    }
}

/// The whole catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventCatalogue {
    /// The tracepoints, in the order in which they are enabled.
    #[serde(rename = "event")]
    pub events: Vec<EventSpec>,
    /// Functions that only pass on what another one asks for.
    #[serde(default)]
    pub helpers: Helpers,
    /// Functions of the kernel that are known to keep interrupts or preemption off for long.
    #[serde(default, rename = "off")]
    pub long_off: Vec<LongOff>,
    /// Remedies by class.
    #[serde(rename = "class")]
    pub classes: BTreeMap<EventClass, Remedy>,
    /// Remedies by step of a wake-up's way, where the step waited for another CPU than the task's.
    #[serde(default, rename = "step")]
    pub steps: BTreeMap<String, Vec<String>>,
    /// Remedies by what a wake-up waits for while nothing else runs.
    #[serde(default, rename = "blocking")]
    pub blockings: BTreeMap<String, Vec<String>>,
}

impl EventSpec {
    /// Whether probes make it.
    pub fn is_probe(&self) -> bool {
        self.kprobe.is_some() || self.eprobe.is_some() || !self.uprobes.is_empty()
    }
}

impl EventCatalogue {
    /// Reads a catalogue; `place` is what an error names.
    pub fn parse(place: &str, text: &str) -> Result<Self, Error> {
        let catalogue: Self = toml::from_str(text).map_err(|error| {
            let line =
                error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            Error::invalid(format!("{place}:{line}"), error.message(), "an event catalogue")
        })?;
        catalogue.check(place)?;
        Ok(catalogue)
    }

    /// The catalogue that ships with stillcore.
    pub fn embedded() -> Result<Self, Error> {
        Self::parse("catalogue/events.toml", EMBEDDED)
    }

    /// The events by which a program is watched: those of any run, and those about its threads.
    pub fn watch() -> Result<Self, Error> {
        let mut all = Self::embedded()?;
        all.events.extend(Self::parse("catalogue/watch.toml", WATCH)?.events);
        all.check("catalogue/watch.toml")?;
        Ok(all)
    }

    /// The same events without stacks behind them, for timing between two events.
    #[must_use]
    pub fn without_stacks(mut self) -> Self {
        self.events.retain(|event| ![KERNEL_STACK, USER_STACK].contains(&event.name.as_str()));
        self.events.iter_mut().for_each(|event| event.stack.clear());
        self
    }

    /// The same events with stacks behind what other CPUs send, but none on the measured CPUs, so
    /// that recording stacks does not disturb the measurement there.
    #[must_use]
    pub fn without_own_stacks(mut self) -> Self {
        for event in &mut self.events {
            event.stack.remove(&Side::Victim);
            if event.name == KERNEL_STACK {
                event.on.retain(|side| *side != Side::Victim);
            }
        }
        self
    }

    /// The same events with the requested stacks.
    #[must_use]
    pub fn with(self, stacks: Stacks) -> Self {
        let all = if stacks.own { self } else { self.without_own_stacks() };
        if stacks.users { all } else { all.without(USER_STACK) }
    }

    /// The same events without one of them.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.events.retain(|event| event.name != name);
        self
    }

    /// The same events with others beside them.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = EventSpec>) -> Self {
        self.events.extend(more);
        self
    }

    /// The entry of an event.
    pub fn get(&self, name: &str) -> Option<&EventSpec> {
        self.events.iter().find(|event| event.name == name)
    }

    fn check(&self, place: &str) -> Result<(), Error> {
        let mut seen = std::collections::BTreeSet::new();
        for event in &self.events {
            let bad = |what: String, expected: &str| {
                Err(Error::invalid(format!("{place}: {}", event.name), what, expected))
            };
            if !seen.insert(&event.name) {
                return bad("a second entry".into(), "one entry an event");
            }
            if event.name.split(':').count() != 2 {
                return bad(format!("name {:?}", event.name), "system:event");
            }
            let spans = matches!(event.role, Role::Enter | Role::Instant | Role::Switch);
            if spans != event.class.is_some() {
                return bad(
                    format!("role {:?} with class {:?}", event.role, event.class),
                    "a class on enter, instant and switch only",
                );
            }
            if (event.role == Role::Enter) != event.exit.is_some() {
                return bad("exit does not go with the role".into(), "an exit on enter, and only there");
            }
            if let Some(exit) = &event.exit
                && self.get(exit).is_none_or(|exit| exit.role != Role::Exit || exit.on != event.on)
            {
                return bad(
                    format!("exit {exit:?}"),
                    "the name of an event with role exit, recorded on the same CPUs",
                );
            }
            if event.unless.is_some() && event.kprobe.is_none() {
                return bad("unless without kprobe".into(), "a kprobe, which the other event makes needless");
            }
            if let Some(side) = event.stack.keys().find(|side| !event.on.contains(side)) {
                return bad(format!("a stack on the side {side:?}"), "sides on which it is recorded");
            }
            if event.on.is_empty() {
                return bad("on no CPUs".into(), "victim, sender, watched, given");
            }
        }
        for (class, remedy) in &self.classes {
            let broken =
                |key: &&String| key.trim_end_matches('*').is_empty() || key[..key.len() - 1].contains('*');
            if let Some(key) = remedy.by_label.keys().find(broken) {
                let place = format!("{place}: class {class}");
                return Err(Error::invalid(
                    place,
                    format!("by_label {key:?}"),
                    "a label, or its start with one * at the end",
                ));
            }
            let bare = |key: &str| remedy.by_label.get(key).is_some_and(Vec::is_empty);
            let has_reason = |key: &str| remedy.why_not.get(key).is_some_and(|why| !why.trim().is_empty());
            let mut keys = remedy.by_label.keys().chain(remedy.why_not.keys());
            if let Some(key) = keys.find(|key| bare(key) != has_reason(key)) {
                return Err(Error::invalid(
                    format!("{place}: class {class}"),
                    format!("label {key:?}"),
                    "mechanisms in by_label, or an empty list there and a reason in why_not",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_catalogue_is_sound_and_covers_every_class() {
        let catalogue = EventCatalogue::embedded().unwrap();
        for class in EventClass::ALL {
            let remedy = catalogue.classes.get(class).unwrap_or_else(|| panic!("{class} has no entry"));
            assert!(
                !remedy.remedies.is_empty() || remedy.why_none.is_some(),
                "{class}: remedies or a reason"
            );
        }
    }

    #[test]
    fn without_stacks_no_event_asks_for_one() {
        let catalogue = EventCatalogue::embedded().unwrap();
        assert!(
            catalogue.get(KERNEL_STACK).is_some() && catalogue.events.iter().any(|e| !e.stack.is_empty())
        );
        let plain = catalogue.clone().without_stacks();
        assert_eq!(plain.events.len() + 2, catalogue.events.len(), "the records of both stacks");
        let both = catalogue.clone().with(Stacks { own: true, users: true });
        assert_eq!(both.events.len(), catalogue.events.len());
        assert!(catalogue.clone().with(Stacks::default()).get(USER_STACK).is_none());
        let senders = catalogue.clone().without_own_stacks();
        assert_eq!(senders.get(KERNEL_STACK).unwrap().on, [Side::Sender]);
        assert!(senders.get("sched:sched_switch").unwrap().stack.is_empty());
        assert!(!senders.get("sched:sched_waking").unwrap().stack.is_empty());
        assert!(plain.get(KERNEL_STACK).is_none() && plain.events.iter().all(|event| event.stack.is_empty()));
        assert!(
            catalogue.helpers.has("on_each_cpu_cond_mask") && !catalogue.helpers.has("flush_tlb_mm_range")
        );
    }

    #[test]
    fn the_events_of_watching_are_sound() {
        let catalogue = EventCatalogue::watch().unwrap();
        let watched = catalogue.events.iter().filter(|event| event.on == [Side::Watched]);
        assert!(watched.count() >= 2 && catalogue.get("sched:sched_process_fork").is_some());
        // Whoever interrupts the program is named as in any run.
        let of_runs = EventCatalogue::embedded().unwrap().events;
        assert!(of_runs.iter().all(|event| catalogue.get(&event.name) == Some(event)));
    }

    #[test]
    fn errors_name_line_and_event() {
        let text = "[[event]]\nname = \"a:b\"\nrole = \"enter\"\nclass = \"irq\"\n[class]\n";
        assert!(EventCatalogue::parse("x.toml", text).unwrap_err().to_string().starts_with("x.toml: a:b"));
        let text = "[[event]]\nname = \"a:b\"\nrole = \"sideways\"\n[class]\n";
        assert!(
            EventCatalogue::parse("x.toml", text).unwrap_err().to_string().starts_with("x.toml:3"),
            "{text}"
        );
    }

    #[test]
    fn a_label_has_the_remedies_of_its_own_entry_or_of_the_longest_start() {
        let text = "event = []\n[class.switch]\nremedies = [\"z\"]\n[class.switch.by_label]\n\"k*\" = [\"a\"]\n\"kworker/*\" = [\"b\"]\nkworker = []\n[class.switch.why_not]\nkworker = \"w\"\n";
        let catalogue = EventCatalogue::parse("x.toml", text).unwrap();
        let of = |label| catalogue.classes[&EventClass::Switch].for_label(label).map(<[String]>::concat);
        for (label, ids) in [("kworker/3:1", "b"), ("ksmd", "a"), ("kworker", "")] {
            assert_eq!(of(label).as_deref(), Some(ids), "{label}");
        }
        assert_eq!(of("bash"), None);
    }

    #[test]
    fn every_label_of_the_shipped_catalogue_has_a_mechanism_or_a_reason() {
        let catalogue = EventCatalogue::embedded().unwrap();
        let labels = catalogue
            .classes
            .values()
            .flat_map(|remedy| remedy.by_label.keys().map(move |key| (remedy, key)));
        for (remedy, key) in labels {
            let label = key.replace('*', "x");
            let ids = remedy.for_label(&label).unwrap();
            assert_eq!(ids.is_empty(), remedy.why_not(&label).is_some(), "{key}");
        }
    }

    #[test]
    fn a_label_without_mechanism_and_reason_is_refused() {
        let class = |rest: &str| format!("event = []\n[class.irq.by_label]\n{rest}");
        for (text, fits) in [
            ("a = []\n", false),
            ("a = []\n[class.irq.why_not]\na = \" \"\n", false),
            ("a = [\"x\"]\n[class.irq.why_not]\na = \"w\"\n", false),
            ("[class.irq.why_not]\na = \"w\"\n", false),
            ("a = []\n[class.irq.why_not]\na = \"w\"\n", true),
        ] {
            assert_eq!(EventCatalogue::parse("x.toml", &class(text)).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn a_label_with_a_star_elsewhere_is_refused() {
        for key in ["*", "a*b", "**", "a**", ""] {
            let text = format!("event = []\n[class.irq.by_label]\n\"{key}\" = []\n");
            let error = EventCatalogue::parse("x.toml", &text).unwrap_err().to_string();
            assert!(error.starts_with("x.toml: class irq"), "{key}: {error}");
        }
    }

    #[test]
    fn what_ran_decides_in_the_shipped_catalogue() {
        let catalogue = EventCatalogue::embedded().unwrap();
        let first = |class, label| {
            let ids = catalogue.classes[&class].for_label(label).unwrap_or_else(|| panic!("{label}"));
            ids.first().map(String::as_str)
        };
        for (class, label, id) in [
            (EventClass::Softirq, "RCU", "rcu_nocbs"),
            (EventClass::Softirq, "NET_RX", "irq-affinity"),
            (EventClass::TimerHrtimer, "sched_rt_period_timer", "sched_rt_runtime"),
            (EventClass::Switch, "kworker/u8:2", "workqueue-cpumask"),
            (EventClass::Switch, "kswapd0", "kswapd-affinity"),
        ] {
            assert_eq!(first(class, label), Some(id), "{class} {label}");
        }
        let (call, tlb) = (&catalogue.classes[&EventClass::IpiCall], &catalogue.classes[&EventClass::Tlb]);
        for name in ["flush_tlb_func", "flush_tlb_func_remote"] {
            assert_eq!(call.for_label(name), Some(tlb.remedies.as_slice()), "{name}");
        }
        assert_eq!(catalogue.classes[&EventClass::Switch].for_label("bash"), None);
    }
}
