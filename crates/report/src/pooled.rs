//! Event counts pooled over the measured CPUs (and probes) of a phase: what advice ranks and what
//! tables list.
//!
//! Rates are per CPU and second: counts and CPU time are summed before they are divided.

use analysis::Analysis;
use analysis::events::{ClassCount, LabelCount, WindowEvents};
use model::sample::ProbeKind;
use model::{Cpus, EventClass};
use std::collections::BTreeMap;

/// The events of one class in the requested windows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pooled {
    /// The class.
    pub class: EventClass,
    /// Whether every one of the windows could see the class, so that zero means zero.
    pub observable: bool,
    /// Events.
    pub count: u64,
    /// Time they took, nested events excluded, ns.
    pub net_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// CPU time over which they were counted, ns.
    pub duration_ns: u64,
    /// CPUs on which at least one was counted.
    pub cpus: Cpus,
    /// What ran, most time first.
    pub labels: Vec<LabelCount>,
}

impl Pooled {
    /// Events per CPU and second; 0 where nothing was measured.
    pub(crate) fn per_s(&self) -> f64 {
        self.over_seconds(self.count as f64)
    }

    /// ns taken per CPU and second.
    pub(crate) fn net_ns_per_s(&self) -> f64 {
        self.over_seconds(self.net_ns as f64)
    }

    /// 95 % upper bound of the rate where nothing was counted: 3/T (Hanley and Lippman-Hand 1983,
    /// rule of three).
    pub(crate) fn zero_bound_per_s(&self) -> Option<f64> {
        (self.count == 0 && self.observable && self.duration_ns > 0).then(|| self.over_seconds(3.0))
    }

    fn over_seconds(&self, value: f64) -> f64 {
        if self.duration_ns == 0 { 0.0 } else { value / (self.duration_ns as f64 / 1e9) }
    }
}

/// The probe whose windows say what a class costs. The busy loop always wants the CPU, so what else
/// runs there is stolen from it. A sleeping task loses nothing to what runs meanwhile. Wake-up
/// windows are used only where no noise window was traced.
pub(crate) fn cost_probe(analysis: &Analysis) -> Option<ProbeKind> {
    let traced = |probe| analysis.events.iter().any(|window| window.probe == probe);
    [ProbeKind::Noise, ProbeKind::Wakeup].into_iter().find(|&probe| traced(probe))
}

/// Pools one class over the windows of a phase, those of one probe or of both.
pub(crate) fn pooled(
    analysis: &Analysis,
    phase: &str,
    probe: Option<ProbeKind>,
    class: EventClass,
) -> Pooled {
    let windows = analysis.events.iter().filter(|window| window.phase == phase);
    let windows = windows.filter(|window| probe.is_none_or(|probe| window.probe == probe));
    let mut sum = Pooled {
        class,
        observable: true,
        count: 0,
        net_ns: 0,
        max_ns: 0,
        duration_ns: 0,
        cpus: Cpus::default(),
        labels: Vec::new(),
    };
    let mut labels: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut seen = false;
    for window in windows {
        seen = true;
        add(&mut sum, &mut labels, window);
    }
    sum.observable &= seen;
    sum.labels = labels
        .into_iter()
        .map(|(label, (count, net_ns))| LabelCount { label: label.to_owned(), count, net_ns })
        .collect();
    by_cost(&mut sum.labels);
    sum
}

/// Sorts what ran: most time first, then most often, then by name.
pub(crate) fn by_cost(labels: &mut [LabelCount]) {
    labels.sort_by(|a, b| (b.net_ns, b.count).cmp(&(a.net_ns, a.count)).then(a.label.cmp(&b.label)));
}

fn add<'a>(sum: &mut Pooled, labels: &mut BTreeMap<&'a str, (u64, u64)>, window: &'a WindowEvents) {
    sum.duration_ns = sum.duration_ns.saturating_add(window.duration_ns);
    let Some(class) = find(window, sum.class) else {
        sum.observable = false;
        return;
    };
    sum.observable &= class.observable;
    sum.count += class.count;
    sum.net_ns += class.net_ns;
    sum.max_ns = sum.max_ns.max(class.max_ns);
    if class.count > 0 {
        sum.cpus.0.insert(window.cpu);
    }
    for label in &class.labels {
        let entry = labels.entry(&label.label).or_default();
        entry.0 += label.count;
        entry.1 += label.net_ns;
    }
}

/// The row of a class in one window.
pub(crate) fn find(window: &WindowEvents, class: EventClass) -> Option<&ClassCount> {
    window.classes.iter().find(|row| row.class == class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn counts_and_cpu_time_add_up_before_the_rate_is_taken() {
        let analysis = fixture::document().analysis;
        let windows = || analysis.events.iter().filter(|w| w.phase == "disturbed");
        let both = pooled(&analysis, "disturbed", None, EventClass::TimerTick);
        let counts: u64 = windows().filter_map(|w| find(w, EventClass::TimerTick)).map(|c| c.count).sum();
        assert_eq!(both.count, counts);
        assert_eq!(both.duration_ns, windows().map(|w| w.duration_ns).sum::<u64>());
        assert!((both.per_s() - counts as f64 * 1e9 / both.duration_ns as f64).abs() < 1e-9);
        let one = pooled(&analysis, "disturbed", Some(ProbeKind::Noise), EventClass::TimerTick);
        assert!(one.count < both.count && one.duration_ns < both.duration_ns);
    }

    #[test]
    fn the_busy_loop_shows_costs_unless_it_was_not_traced() {
        let mut analysis = fixture::document().analysis;
        assert_eq!(cost_probe(&analysis), Some(ProbeKind::Noise));
        analysis.events.retain(|window| window.probe == ProbeKind::Wakeup);
        assert_eq!(cost_probe(&analysis), Some(ProbeKind::Wakeup));
        analysis.events.clear();
        assert_eq!(cost_probe(&analysis), None);
    }

    #[test]
    fn zero_has_a_bound_only_where_it_could_have_been_seen() {
        let analysis = fixture::document().analysis;
        let zero = pooled(&analysis, "idle-before", None, EventClass::Tlb);
        assert_eq!(zero.count, 0);
        let bound = zero.zero_bound_per_s().unwrap();
        assert!((bound - 3e9 / zero.duration_ns as f64).abs() < 1e-12);
        assert_eq!(pooled(&analysis, "idle-before", None, EventClass::Throttle).zero_bound_per_s(), None);
        let nowhere = pooled(&analysis, "no such phase", None, EventClass::Tlb);
        assert!(!nowhere.observable && nowhere.per_s() == 0.0 && nowhere.zero_bound_per_s().is_none());
    }
}
