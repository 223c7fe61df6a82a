//! The idle background of the measured CPUs: its rates, and whether they are the same before and
//! after the operations.

use super::facts::{CellFacts, Stretch};
use crate::exposure::row::{Row, of_class};
use model::EventClass;
use stats::rates::{Rate, holm, p_value};
use std::collections::BTreeMap;

/// Idle before and idle after count as different below this probability. A study tests every cell.
const APART_P: f64 = 0.01;

/// Events per second on each of so many measured CPUs, by class, over the idle controls of all rows
/// together. Each row has what they would give in the time of its operations.
pub(super) fn per_s(rows: &[Row], cpus: u64) -> BTreeMap<EventClass, f64> {
    let measured = rows.iter().filter(|row| row.all.is_some() && row.disturbed_s > 0.0);
    let mut events: BTreeMap<EventClass, f64> = BTreeMap::new();
    let mut seconds = 0.0;
    for row in measured {
        seconds += row.idle_s;
        for one in row.classes.iter().filter(|one| one.coefficient.background > 0.0) {
            *events.entry(one.class).or_default() +=
                one.coefficient.background / row.disturbed_s * row.idle_s;
        }
    }
    events.values_mut().for_each(|count| *count /= seconds * cpus as f64);
    events
}

/// The classes whose rates before and after differ by more than chance, in words.
pub(super) fn apart(cell: &CellFacts) -> Vec<String> {
    let (before, after) = (&cell.idle_before, &cell.idle_after);
    let cpus = cell.measured.len() as f64;
    let rate = |stretch: &Stretch, class: EventClass| {
        let count = of_class(stretch, class);
        Rate {
            count: count.count,
            seconds: stretch.length_ns as f64 / 1e9 * cpus,
            dispersion: count.dispersion,
        }
    };
    let classes: Vec<EventClass> =
        cell.observable.iter().copied().filter(|class| *class != EventClass::SelfCaused).collect();
    let pairs: Vec<_> = classes.iter().map(|&class| (rate(before, class), rate(after, class))).collect();
    let adjusted = holm(&pairs.iter().map(|(before, after)| p_value(before, after)).collect::<Vec<_>>());
    let apart = classes.iter().zip(pairs).zip(adjusted).filter(|(_, p)| *p < APART_P);
    let sentences = apart.map(|((class, (before, after)), _)| {
        format!("{class}: {:.1} a second before, {:.1} after", before.per_s(), after.per_s())
    });
    sentences.collect()
}
