//! Which mechanisms would remove what ran: chosen by what ran where the catalogue knows it, else by
//! its class.
//!
//! A class is a way into the kernel; what comes that way has many causes. A softirq that ran RCU
//! callbacks is not helped by moving interrupts, so each label brings its own remedies, the
//! costliest label first. The class's list speaks for labels without an entry, and only where they
//! make up most of the cost.

use attribution::attribute::section::SourceText;
use model::events::{EventCatalogue, Remedy};
use model::{EventClass, Finding, FindingState};

use super::{Facts, Step, step};
use crate::outcome::{is_contested, is_settable, speaks};
use crate::pooled::Pooled;

/// Settable mechanisms that remove the class, best first; where there is none, why.
pub(super) fn remedies(facts: &Facts, class: EventClass, seen: &Pooled) -> (Vec<Step>, Option<String>) {
    let entry = facts.catalogue.classes.get(&class);
    let listed = entry.map_or_else(Vec::new, |entry| fitting(entry, seen));
    let find = |id: &&str| facts.findings.iter().find(|finding| finding.id == *id);
    // Where what ran decides, a mechanism that removes other events of the class is no help.
    let by_class = entry.is_none_or(|entry| entry.by_label.is_empty());
    let more = |f: &&Finding| by_class && f.removes.contains(&class) && !listed.contains(&f.id.as_str());
    let others = facts.findings.iter().filter(more);
    let settable = listed.iter().filter_map(find).chain(others).filter(|finding| is_settable(finding));
    let steps: Vec<Step> = settable.map(step).collect();
    if !steps.is_empty() {
        return (steps, None);
    }
    // What most of the time went to, where that is known to have no remedy.
    let dearest = seen.labels.first().filter(|_| listed.is_empty());
    let of_label = dearest.and_then(|label| entry?.why_not(&label.label).map(str::to_owned));
    if let Some(why) = of_label.or_else(|| entry?.why_none.clone()) {
        return (steps, Some(why));
    }
    let names: Vec<String> = listed
        .iter()
        .map(|id| match find(id).map(|finding| finding.state) {
            Some(state) => format!("{id} ({})", state.name()),
            None => format!("{id} (not audited)"),
        })
        .collect();
    let all_ok = listed.iter().filter_map(find).all(|finding| finding.state == FindingState::Ok);
    let why = match (names.is_empty(), all_ok) {
        (true, _) => "the catalogue knows no mechanism against it".to_owned(),
        (false, true) => format!("what the catalogue knows against it is in place: {}", names.join(", ")),
        (false, false) => format!("nothing at hand changes it: {}", names.join(", ")),
    };
    (steps, Some(why))
}

/// What the catalogue knows against one thing that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Against {
    /// Mechanisms that could be set and are not, best first, with what the audit says of them: `ok`
    /// where only the user knows whether it is.
    pub settable: Vec<(String, FindingState)>,
    /// Those that are in place already: they do not help here, or not alone.
    pub in_place: Vec<String>,
    /// Why there is none.
    pub why_none: Option<String>,
}

/// Mechanisms against one thing that ran, by its label where the catalogue knows that, else by its
/// class.
pub fn against(catalogue: &EventCatalogue, findings: &[Finding], class: EventClass, label: &str) -> Against {
    let Some(entry) = catalogue.classes.get(&class) else { return Against::default() };
    let ids = entry.for_label(label).unwrap_or(&entry.remedies);
    let found = ids.iter().filter_map(|id| findings.iter().find(|finding| finding.id == *id));
    let why_none = entry.why_not(label).map(str::to_owned).or_else(|| entry.why_none.clone());
    let mut against = Against { why_none, ..Against::default() };
    for finding in found {
        if is_settable(finding) || speaks(finding, Some(class), false) {
            against.settable.push((finding.id.clone(), finding.state));
        } else if finding.state == FindingState::Ok && !is_contested(finding) {
            against.in_place.push(finding.id.clone());
        }
    }
    against
}

/// Mechanism ids against one thing that ran: by its label, else by the function that asked for it
/// or one on its stack, the innermost first, else by its class.
pub(crate) fn label_of<'a>(entry: &'a Remedy, label: &str, source: Option<&SourceText>) -> &'a [String] {
    let mut functions = source.into_iter().flat_map(|source| source.site.iter().chain(&source.frames));
    let by_function = || functions.find_map(|function| entry.for_label(function));
    entry.for_label(label).or_else(by_function).unwrap_or(&entry.remedies)
}

/// Mechanism ids that fit what ran, each once, those against the costliest first.
fn fitting<'a>(entry: &'a Remedy, seen: &Pooled) -> Vec<&'a str> {
    let mut fits: Vec<&str> = Vec::new();
    let mut add = |ids: &'a [String]| {
        for id in ids {
            if !fits.contains(&id.as_str()) {
                fits.push(id);
            }
        }
    };
    if strangers_dominate(entry, seen) {
        add(&entry.remedies);
    }
    // Pooled labels come costliest first.
    seen.labels.iter().filter_map(|label| entry.for_label(&label.label)).for_each(&mut add);
    fits
}

/// Whether labels without an entry, and events without a label, make up more than half of the time,
/// or of the count where no time was recorded. True without any event.
fn strangers_dominate(entry: &Remedy, seen: &Pooled) -> bool {
    let known = seen.labels.iter().filter(|label| entry.for_label(&label.label).is_some());
    let (count, net_ns) = known.fold((0, 0), |sum, label| (sum.0 + label.count, sum.1 + label.net_ns));
    let (part, whole) = if seen.net_ns > 0 { (net_ns, seen.net_ns) } else { (count, seen.count) };
    part * 2 < whole || whole == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, fixture};
    use analysis::events::LabelCount;

    /// Softirqs that ran these, `(label, events, ns)`, in every window, judged with the shipped
    /// catalogue; every mechanism that the audit found is fixable.
    fn softirq(ran: &[(&str, u64, u64)]) -> crate::Advice {
        let mut d = fixture::document();
        let rows = d.analysis.events.iter_mut().flat_map(|window| &mut window.classes);
        for row in rows.filter(|row| row.class == EventClass::Softirq) {
            let label = |(label, count, net_ns): &(&str, u64, u64)| LabelCount {
                label: (*label).into(),
                count: *count,
                net_ns: *net_ns,
            };
            row.labels = ran.iter().map(label).collect();
            (row.count, row.net_ns) = ran.iter().fold((0, 0), |sum, ran| (sum.0 + ran.1, sum.1 + ran.2));
        }
        for finding in &mut d.findings {
            finding.state = FindingState::Fixable;
            if finding.id == "irq-affinity" {
                finding.removes.push(EventClass::Softirq);
            }
        }
        let catalogue = EventCatalogue::embedded().unwrap();
        let document = Document::conclude("run", d.run, d.machine, d.findings, d.analysis, &catalogue);
        document.advice.into_iter().find(|advice| advice.class == Some(EventClass::Softirq)).unwrap()
    }

    fn steps(advice: &crate::Advice) -> Vec<&str> {
        advice.steps.iter().map(|step| step.mechanism.as_str()).collect()
    }

    #[test]
    fn a_softirq_that_ran_rcu_is_not_answered_with_interrupts() {
        assert_eq!(steps(&softirq(&[("RCU", 354, 900_000)])), ["rcu_nocbs", "nohz_full"]);
        assert_eq!(steps(&softirq(&[("NET_RX", 354, 900_000)])), ["irq-affinity"]);
    }

    #[test]
    fn the_costliest_label_comes_first_and_each_mechanism_once() {
        let ran = [("NET_RX", 2, 800), ("RCU", 9, 500), ("SCHED", 90, 100)];
        assert_eq!(steps(&softirq(&ran)), ["irq-affinity", "rcu_nocbs", "nohz_full", "isolcpus"]);
    }

    #[test]
    fn labels_without_an_entry_have_the_remedies_of_the_class_only_where_they_dominate() {
        let whole = ["rcu_nocbs", "irq-affinity", "nohz_full"];
        assert_eq!(
            steps(&softirq(&[("HI", 9, 900), ("SCHED", 9, 100)])),
            [&whole[..], &["isolcpus"]].concat()
        );
        assert_eq!(steps(&softirq(&[("HI", 9, 100), ("SCHED", 9, 900)])), ["nohz_full", "isolcpus"]);
        // Without lengths the counts decide.
        assert_eq!(steps(&softirq(&[("HI", 1, 0), ("SCHED", 9, 0)])), ["nohz_full", "isolcpus"]);
    }

    #[test]
    fn one_thing_that_ran_has_the_remedies_of_its_label() {
        let catalogue = EventCatalogue::embedded().unwrap();
        let mut findings = fixture::document().findings;
        for finding in &mut findings {
            finding.state = if finding.id == "nohz_full" { FindingState::Ok } else { FindingState::Boot };
        }
        let of = |class, label| against(&catalogue, &findings, class, label);
        let rcu = of(EventClass::Softirq, "RCU");
        assert_eq!(rcu.settable, [("rcu_nocbs".to_owned(), FindingState::Boot)]);
        assert_eq!(rcu.in_place, ["nohz_full"]);
        assert_eq!(of(EventClass::Softirq, "NET_RX").settable[0].0, "irq-affinity");
    }

    #[test]
    fn what_is_known_to_have_no_remedy_says_so() {
        let none = Remedy {
            by_label: [("perf*".to_owned(), Vec::new())].into(),
            why_not: [("perf*".to_owned(), "somebody counts".to_owned())].into(),
            ..Remedy::default()
        };
        let mut seen =
            crate::pooled::pooled(&fixture::document().analysis, "disturbed", None, EventClass::Softirq);
        seen.labels = vec![LabelCount { label: "perf_mux".into(), count: seen.count, net_ns: seen.net_ns }];
        assert_eq!(fitting(&none, &seen), Vec::<&str>::new());
    }
}
