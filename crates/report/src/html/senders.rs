//! Events on each measured CPU by the CPU that caused them, as a table that also reads aloud, in
//! print and without colour.

use analysis::events::WindowEvents;
use minijinja::{Value, context};
use model::EventClass;
use std::collections::{BTreeMap, BTreeSet};

use crate::{Document, format};

/// CPUs a side: those that send, and get, most.
const CPUS: usize = 24;
/// Steps of the colour.
const STEPS: usize = 7;
/// Classes named in one cell.
const CLASSES: usize = 3;

/// Events of one pair by class.
type Pairs = BTreeMap<(u32, u32), BTreeMap<EventClass, u64>>;

/// The map; nothing where no event of another CPU is known.
pub(super) fn map(document: &Document) -> Value {
    let disturbed: BTreeSet<&str> =
        document.run.phases.iter().filter(|phase| phase.disturbed).map(|phase| phase.name.as_str()).collect();
    let counted = |phase: &str| disturbed.is_empty() || disturbed.contains(phase);
    let pairs = pairs(document, &counted);
    let seconds = seconds(document, &counted);
    let rate = |(from, to): (u32, u32), classes: &BTreeMap<EventClass, u64>| {
        let count: u64 = classes.values().sum();
        let over = seconds.get(&to).copied().unwrap_or(0.0);
        let per_s = (over > 0.0).then(|| count as f64 / over);
        (from, to, count, per_s, class_counts(classes))
    };
    let cells: Vec<_> = pairs.iter().map(|(pair, classes)| rate(*pair, classes)).collect();
    let rates = || cells.iter().filter_map(|cell| cell.3).filter(|rate| *rate > 0.0);
    let (Some(low), Some(high)) = (rates().reduce(f64::min), rates().reduce(f64::max)) else {
        return Value::from(());
    };
    let (from, left_from) = most(cells.iter().map(|cell| (cell.0, cell.2)));
    let (to, left_to) = most(cells.iter().map(|cell| (cell.1, cell.2)));
    let row = |source: &u32| {
        let cell = |target: &u32| {
            let cell = cells.iter().find(|cell| (cell.0, cell.1) == (*source, *target))?;
            let rate = cell.3?;
            Some(context! {
                rate => rate, count => cell.2, classes => cell.4.as_str(), step => step(rate, low, high),
            })
        };
        context! { cpu => source, cells => to.iter().map(cell).collect::<Vec<_>>() }
    };
    context! {
        to => to.clone(),
        rows => from.iter().map(row).collect::<Vec<_>>(),
        phases => disturbed.into_iter().collect::<Vec<_>>().join(", "),
        left_out => left_from + left_to,
    }
}

fn pairs(document: &Document, counted: &dyn Fn(&str) -> bool) -> Pairs {
    let mut pairs = Pairs::new();
    for window in document.analysis.attribution.iter().filter(|window| counted(&window.phase)) {
        for row in window.rows.iter().filter(|row| row.class != EventClass::SelfCaused) {
            let Some(source) = row.source.as_ref().filter(|source| source.cpu != window.cpu) else {
                continue;
            };
            *pairs.entry((source.cpu, window.cpu)).or_default().entry(row.class).or_default() += row.count;
        }
    }
    pairs
}

/// For how long each CPU's events were counted, s.
fn seconds(document: &Document, counted: &dyn Fn(&str) -> bool) -> BTreeMap<u32, f64> {
    let mut seconds = BTreeMap::new();
    let windows = document.analysis.events.iter().filter(|window: &&WindowEvents| counted(&window.phase));
    for window in windows {
        *seconds.entry(window.cpu).or_insert(0.0) += window.duration_ns as f64 / 1e9;
    }
    seconds
}

/// The CPUs with most events, ascending, and how many are left out.
fn most(counts: impl Iterator<Item = (u32, u64)>) -> (Vec<u32>, usize) {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    counts.for_each(|(cpu, count)| *sums.entry(cpu).or_default() += count);
    let mut cpus: Vec<u32> = sums.keys().copied().collect();
    cpus.sort_by_key(|cpu| (std::cmp::Reverse(sums[cpu]), *cpu));
    let left_out = cpus.split_off(cpus.len().min(CPUS)).len();
    cpus.sort_unstable();
    (cpus, left_out)
}

/// Steps of equal ratio, a factor of ten at least from the lowest to the highest.
fn step(rate: f64, low: f64, high: f64) -> usize {
    let low = low.min(high / 10.0);
    let part = (rate / low).ln() / (high / low).ln();
    ((part * STEPS as f64) as usize).min(STEPS - 1)
}

fn class_counts(classes: &BTreeMap<EventClass, u64>) -> String {
    let mut all: Vec<_> = classes.iter().collect();
    all.sort_by_key(|(class, count)| (std::cmp::Reverse(**count), **class as u32));
    let describe =
        |(class, count): &(&EventClass, &u64)| format!("{} {}", class.name(), format::count(**count));
    all.iter().take(CLASSES).map(describe).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_event_of_another_cpu_is_in_one_cell() {
        let document = fixture::document();
        let pairs = pairs(&document, &|phase| phase == "disturbed");
        let in_cells: u64 = pairs.values().flat_map(BTreeMap::values).sum();
        let disturbed = document.analysis.attribution.iter().filter(|window| window.phase == "disturbed");
        let all: u64 = disturbed
            .flat_map(|window| window.rows.iter().map(move |row| (window.cpu, row)))
            .filter(|(cpu, row)| row.source.as_ref().is_some_and(|source| source.cpu != *cpu))
            .filter(|(_, row)| row.class != EventClass::SelfCaused)
            .map(|(_, row)| row.count)
            .sum();
        assert!(all > 0);
        assert_eq!(in_cells, all);
        assert!(pairs.keys().all(|(from, to)| from != to));
    }

    #[test]
    fn the_steps_rise_and_what_hardly_differs_is_dark() {
        assert_eq!((step(1.0, 1.0, 1e7), step(1e7, 1.0, 1e7)), (0, STEPS - 1));
        assert!(step(9.0, 9.0, 10.0) >= 5, "nearly the highest");
    }
}
