//! Two periods of a history held against each other: this week against last.
//!
//! Hours are drawn with replacement, whole, since what happens within one hangs together
//! ([`stats::resample`]).

use crate::figures::{Figure, Hours, figures};
use model::monitor_history::Interval;
use serde::Serialize;
use stats::resample::{difference_interval, generator, ratio_draws};
use std::collections::BTreeSet;

/// Samples of hours.
const DRAWS: usize = 4_000;
/// Seed of the first figure.
const SEED: u64 = 20_260_101;
/// Hours in which there must have been anything. Five that all fell into one of two periods that
/// are alike are no surprise: that happens in one of sixteen cases.
const LEAST_HOURS: usize = 6;

/// One figure of two periods.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// What it is of.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// In the earlier period, and in the later; absent where there was nothing to divide by.
    pub values: [Option<f64>; 2],
    /// 95 % interval of the later less the earlier; absent where either has fewer than five hours,
    /// or both together fewer than six in which there was anything.
    pub difference: Option<[f64; 2]>,
    /// Hours of each.
    pub hours: [usize; 2],
}

impl Pair {
    /// What follows from it.
    pub fn verdict(&self) -> &'static str {
        match self.difference {
            Some([low, _]) if low > 0.0 => "worse",
            Some([_, high]) if high < 0.0 => "better",
            Some(_) => "cannot tell",
            None => "too few hours",
        }
    }
}

/// All figures that both periods have anything of.
pub fn compare(earlier: &[Interval], later: &[Interval]) -> Vec<Pair> {
    let both = [earlier, later];
    let pair = |(number, of): (usize, &Figure)| pair(of, both.map(|all| of.hours(all)), number as u64);
    let mut pairs: Vec<Pair> = comparable(both).iter().enumerate().map(pair).collect();
    pairs.retain(|pair| pair.values.iter().any(|value| value.is_some_and(|value| value > 0.0)));
    pairs
}

/// Figures of either, without latencies of threads that one of them does not have.
fn comparable(both: [&[Interval]; 2]) -> BTreeSet<Figure> {
    let [earlier, later] = both.map(figures);
    let mut all: BTreeSet<Figure> = earlier.union(&later).cloned().collect();
    let is_in_both = |one: &Figure| earlier.contains(one) && later.contains(one);
    all.retain(|one| match one {
        Figure::Late => same_question(both),
        Figure::Latency(_) => is_in_both(one),
        _ => true,
    });
    all
}

/// Whether the same was late in both: with another limit, on other CPUs or of other threads there
/// are other breaches.
pub fn same_question(both: [&[Interval]; 2]) -> bool {
    let mut all = both.iter().flat_map(|all| all.iter());
    let first = all.next();
    let asked = |one: &Interval| (one.limit_ns, one.cpus.clone(), one.threads_watched.clone());
    first.is_none_or(|first| all.all(|one| asked(one) == asked(first)))
}

fn pair(figure: &Figure, both: [Hours; 2], number: u64) -> Pair {
    let hours = [both[0].len(), both[1].len()];
    let columns = |hours: &Hours| -> [Vec<f64>; 2] {
        [0, 1].map(|column| hours.values().map(|values| values[column]).collect())
    };
    let value = |[part, whole]: &[Vec<f64>; 2]| {
        let whole: f64 = whole.iter().sum();
        (whole > 0.0).then(|| part.iter().sum::<f64>() / whole)
    };
    let [earlier, later] = both.each_ref().map(columns);
    let values = [value(&earlier), value(&later)];
    let mut random = generator(SEED, number);
    let mut draws = |[part, whole]: &[Vec<f64>; 2]| ratio_draws(part, whole, DRAWS, &mut random);
    let drawn = [draws(&earlier), draws(&later)];
    let seen = [&earlier, &later].iter().flat_map(|[part, _]| part).filter(|part| **part > 0.0).count();
    let difference = match values {
        [Some(before), Some(now)] if seen >= LEAST_HOURS => {
            difference_interval(now - before, &drawn[1], &drawn[0], hours[0].min(hours[1]))
        }
        _ => None,
    };
    Pair { what: figure.name(), unit: figure.unit(), values, difference, hours }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::interval::tests::status;
    use crate::interval::{Host, between};

    /// Hours from `from` on, of which each has so much interference and so many late threads.
    pub(crate) fn period(from: u64, hours: u64, irq_ns: impl Fn(u64) -> u64, late: u64) -> Vec<Interval> {
        let host = Host::default();
        let mut all = Vec::new();
        let (mut irq, mut kept, mut latencies) = (0, 0, Vec::new());
        let mut before = status(from, &[], 0, 0);
        for hour in 1..=hours {
            (irq, kept) = (irq + irq_ns(hour), kept + late);
            latencies.extend([1_000, 2_000 + hour % 3]);
            let now = status(from + hour, &latencies, irq, kept);
            all.push(between(Some(&before), &now, &host));
            before = now;
        }
        all
    }

    fn find<'f>(figures: &'f [Pair], what: &str) -> &'f Pair {
        figures.iter().find(|figure| figure.what == what).unwrap_or_else(|| panic!("{what}: {figures:?}"))
    }

    #[test]
    fn what_has_changed_is_said_and_what_has_not_is_not() {
        let noisy = |hour: u64| 1_000_000 + hour * 7_919 % 1_000 * 100;
        let before = period(0, 48, noisy, 0);
        let after = period(48, 48, |hour| 2 * noisy(hour), 2);
        let figures = compare(&before, &after);
        assert_eq!(find(&figures, "interference by irq").verdict(), "worse");
        assert_eq!(find(&figures, "late threads").verdict(), "worse");
        assert_eq!(find(&figures, "late threads").values, [Some(0.0), Some(2.0)]);
        assert_eq!(find(&figures, "mean latency of control").verdict(), "cannot tell");
        let back = compare(&after, &before);
        assert_eq!(find(&back, "interference by irq").verdict(), "better");
        assert_eq!(find(&figures, "ipi.call asked for by tasks elsewhere").values, [Some(3.0), Some(3.0)]);
        let mut unseen = after.clone();
        unseen.iter_mut().for_each(|one| one.offences = None);
        assert_eq!(
            find(&compare(&before, &unseen), "ipi.call asked for by tasks elsewhere").values,
            [Some(3.0), None]
        );
        assert!(compare(&before, &before).iter().all(|figure| figure.verdict() == "cannot tell"));
    }

    #[test]
    fn a_few_hours_are_not_enough_and_another_limit_is_another_question() {
        let (before, mut after) = (period(0, 3, |_| 1_000, 0), period(3, 48, |_| 9_000, 1));
        let figures = compare(&before, &after);
        assert_eq!(find(&figures, "interference by irq").verdict(), "too few hours");
        let no_late =
            |after: &[Interval]| compare(&before, after).iter().all(|figure| figure.what != "late threads");
        assert!(!no_late(&after));
        let same = after[0].clone();
        after[0].limit_ns += 1;
        assert!(no_late(&after));
        after[0] = Interval { threads_watched: "threads named x".to_owned(), ..same.clone() };
        assert!(no_late(&after));
        after[0] = Interval { cpus: model::Cpus::one(3), ..same };
        assert!(no_late(&after));
        assert!(compare(&[], &[]).is_empty());
    }

    /// By drawing hours alone five against none would be worse.
    #[test]
    fn a_few_late_threads_in_a_week_are_no_trend() {
        let before = period(0, 100, |_| 1_000, 0);
        let mut after = period(100, 100, |_| 1_000, 0);
        let late = period(100, 1, |_| 0, 1)[0].breaches.clone();
        after.iter_mut().step_by(20).for_each(|one| one.breaches.clone_from(&late));
        assert_eq!(find(&compare(&before, &after), "late threads").verdict(), "too few hours");
        after[7].breaches.clone_from(&late);
        assert_eq!(find(&compare(&before, &after), "late threads").verdict(), "worse");
    }

    /// Of periods that are alike, one in twenty differs by chance.
    #[test]
    fn alarms_are_as_rare_as_they_say() {
        let mut random = 1u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % 1_000_000
        };
        let mut false_alarms = 0;
        for _ in 0..200 {
            let noise: Vec<u64> = (0..60).map(|_| next() * next() / 1_000_000).collect();
            let of = |from: usize| period(from as u64, 30, |hour| noise[from + hour as usize - 1], 0);
            let figures = compare(&of(0), &of(30));
            let verdict = find(&figures, "interference by irq").verdict();
            false_alarms += u32::from(verdict != "cannot tell");
        }
        assert!(false_alarms <= 20, "{false_alarms} of 200");
    }
}
