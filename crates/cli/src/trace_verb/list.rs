//! A few events in the order in which they began: the sequence that a figure of a paper draws, each
//! event with its source.
//!
//! Figs. 3 and 4 of the RTSS 2024 paper on isolation are such sequences: an IPI, a switch to a
//! worker, its work item, the switch back.

use attribution::attribute::events::Attributed;
use model::EventClass;
use report::format;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// The share of a list about an event that comes before it.
const BEFORE: f64 = 0.4;

/// The events to print.
pub(super) struct List {
    most: usize,
    around: Option<EventClass>,
    /// Before the event it is about: the last ones only.
    begun: bool,
    kept: VecDeque<Attributed>,
}

impl List {
    pub(super) fn new(most: u32, around: Option<EventClass>) -> Self {
        Self { most: most as usize, around, begun: around.is_none(), kept: VecDeque::new() }
    }

    /// Takes an event, starts ascending.
    pub(super) fn add(&mut self, event: &Attributed) {
        if !event.counts || event.class == EventClass::SelfCaused || self.most == 0 {
            return;
        }
        self.begun |= self.around == Some(event.class);
        let room = if self.begun { self.most } else { (self.most as f64 * BEFORE) as usize };
        if self.kept.len() >= room {
            if self.begun {
                return;
            }
            self.kept.pop_front();
        }
        if room > 0 {
            self.kept.push_back(event.clone());
        }
    }

    /// The events to print: none where the event that the list is about never came.
    fn events(&self) -> impl Iterator<Item = &Attributed> {
        self.kept.iter().filter(|_| self.begun)
    }

    /// As JSON: times from the first event on, ns.
    pub(super) fn rows(&self) -> Vec<Value> {
        let first = self.events().next().map_or(0, |event| event.t0_ns);
        let row = |event: &Attributed| {
            let source = event.sources.first().map(|(source, _)| source);
            json!({
                "t_ns": event.t0_ns - first,
                "ns": event.t1_ns - event.t0_ns,
                "cpu": event.cpu,
                "by": source.map_or_else(
                    || "unknown".to_owned(),
                    |source| format!("{} on CPU {}", source.who, source.cpu),
                ),
                "class": event.class,
                "label": event.label,
                "known": source.is_some(),
                "who": source.map(|source| source.who.clone()),
                "from_cpu": source.map(|source| source.cpu),
                "site": source.and_then(|source| source.site.clone()),
                "confidence": event.sources.first().map(|(_, how)| how.word()),
            })
        };
        self.events().map(row).collect()
    }

    /// As lines, with times of the trace's clock.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.events().map(|event| {
            let by = event.sources.first().map_or_else(String::new, |(source, how)| {
                let site = source.place().map_or_else(String::new, |site| format!(" at {site}"));
                format!(", by {} on CPU {}{site} ({})", source.who, source.cpu, how.word())
            });
            let (at, ns) = (format::instant(event.t0_ns), format::ns(event.t1_ns - event.t0_ns));
            format!("{at:>16} s  CPU {}  {} {} for {ns}{by}", event.cpu, event.class.name(), event.label)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(class: EventClass, t0_ns: i64) -> Attributed {
        Attributed {
            cpu: 3,
            class,
            label: "x".to_owned(),
            t0_ns,
            t1_ns: t0_ns + 2,
            net_ns: 2,
            counts: true,
            sources: Vec::new(),
        }
    }

    fn start_times(list: &List) -> Vec<i64> {
        list.events().map(|event| event.t0_ns).collect()
    }

    #[test]
    fn a_list_has_the_first_events_or_those_about_one_of_a_class() {
        let of = |most, around| {
            let mut list = List::new(most, around);
            for t in 0..20 {
                let class = match t {
                    3 => EventClass::SelfCaused,
                    12 => EventClass::Work,
                    _ => EventClass::Switch,
                };
                list.add(&event(class, t));
            }
            list
        };
        assert_eq!(start_times(&of(4, None)), [0, 1, 2, 4]);
        assert_eq!(start_times(&of(5, Some(EventClass::Work))), [10, 11, 12, 13, 14]);
        assert_eq!(start_times(&of(1, Some(EventClass::Work))), [12]);
        assert!(start_times(&of(5, Some(EventClass::Nmi))).is_empty());
        assert!(start_times(&of(0, None)).is_empty());
        let rows = of(5, Some(EventClass::Work)).rows();
        assert_eq!((&rows[0]["t_ns"], &rows[2]["class"]), (&json!(0), &json!("work")));
        assert_eq!(of(5, None).lines().count(), 5);
    }

    #[test]
    fn times_are_those_of_the_trace_s_clock() {
        let mut list = List::new(2, None);
        list.add(&event(EventClass::Work, 6_832_140_330));
        let lines: Vec<String> = list.lines().collect();
        assert_eq!(lines, ["     6.832140330 s  CPU 3  work x for 2 ns"]);
    }
}
