//! In-kernel filters by which senders record only what is aimed at measured CPUs. Linux
//! Documentation/trace/events.rst, "Event filtering"; filters on CPU sets (`CPUS{}`): from 6.6 on.

use model::Cpus;
use model::events::{EventSpec, Side};

/// What of an event is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// As the kernel takes it; `None`: everything.
    pub text: Option<String>,
    /// Whether it leaves out what is aimed at other CPUs, or the event aims at none.
    pub aimed: bool,
}

impl Filter {
    /// None.
    pub const NONE: Self = Self { text: None, aimed: true };
}

/// The filters to try for an event on a side, narrowest first; none at the end: unfiltered.
pub(crate) fn filters(spec: &EventSpec, side: Side, measured: &Cpus) -> Vec<Filter> {
    let own = spec.filter.clone();
    let aims = side == Side::Sender && (spec.aims.is_some() || spec.aims_set.is_some());
    let aimed = aimed(spec, measured).filter(|_| aims);
    let both = match (&aimed, &own) {
        (Some(aimed), Some(own)) => Some(format!("({own}) && ({aimed})")),
        (Some(aimed), None) => Some(aimed.clone()),
        (None, _) => None,
    };
    let mut all = Vec::new();
    all.extend(both.map(|text| Filter { text: Some(text), aimed: true }));
    // An event's own filter says what it means, and must hold; that on its aim only saves room.
    all.push(Filter { text: own, aimed: !aims });
    all
}

/// What holds of events on these CPUs alone. A trigger needs it: unlike the event itself it acts on
/// every CPU, whatever `tracing_cpumask` says.
pub(crate) fn on_cpus(cpus: &Cpus) -> String {
    within("CPU", cpus).join(" || ")
}

fn aimed(spec: &EventSpec, measured: &Cpus) -> Option<String> {
    if let Some(field) = &spec.aims_set {
        return Some(format!("{field} & CPUS{{{measured}}}"));
    }
    let field = spec.aims.as_ref()?;
    let mut terms = within(field, measured);
    terms.extend(spec.aims_any.map(|any| format!("{field} == {any}")));
    Some(terms.join(" || "))
}

/// A term for each run of neighbouring CPUs.
fn within(field: &str, cpus: &Cpus) -> Vec<String> {
    let term = |(first, last)| {
        if first == last {
            format!("{field} == {first}")
        } else {
            format!("({field} >= {first} && {field} <= {last})")
        }
    };
    ranges(cpus).into_iter().map(term).collect()
}

/// Runs of neighbouring CPUs: an in-kernel filter has room for a page of text only.
fn ranges(cpus: &Cpus) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus.iter() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::events::EventCatalogue;

    fn of(name: &str, side: Side) -> Vec<Option<String>> {
        let catalogue = EventCatalogue::embedded().unwrap();
        let filters = filters(catalogue.get(name).unwrap(), side, &"2-3,7".parse().unwrap());
        let aims = filters.len() > 1;
        assert!(filters.iter().enumerate().all(|(at, filter)| filter.aimed == (at == 0 || !aims)), "{name}");
        filters.into_iter().map(|filter| filter.text).collect()
    }

    #[test]
    fn senders_record_what_is_aimed_at_measured_cpus() {
        let wakes = "(target_cpu >= 2 && target_cpu <= 3) || target_cpu == 7";
        assert_eq!(of("sched:sched_waking", Side::Sender), [Some(wakes.to_owned()), None]);
        assert_eq!(of("sched:sched_waking", Side::Victim), [None]);
        let set = "cpumask & CPUS{2,3,7}".to_owned();
        assert_eq!(of("ipi:ipi_send_cpumask", Side::Sender), [Some(set), None]);
        let work = of("workqueue:workqueue_queue_work", Side::Sender)[0].clone().unwrap();
        assert!(work.ends_with("cpu == 7 || cpu == 4294967295"), "{work}");
    }

    #[test]
    fn a_trigger_names_its_cpus() {
        assert_eq!(on_cpus(&"2-3,7".parse().unwrap()), "(CPU >= 2 && CPU <= 3) || CPU == 7");
    }

    #[test]
    fn an_events_own_filter_always_holds() {
        let own = "reason == 1 || reason == 4".to_owned();
        assert_eq!(of("tlb:tlb_flush", Side::Sender), [Some(own.clone())]);
        assert_eq!(of("tlb:tlb_flush", Side::Victim), [Some(own)]);
    }
}
