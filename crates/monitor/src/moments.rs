//! Moments at which a history changed for good, by change-point analysis of its hours
//! ([`stats::time::change`]), and what else was different from then on.

use crate::figures::{Figure, figures};
use crate::periods::same_question;
use model::monitor_history::Interval;
use serde::Serialize;
use stats::time::change::splits;

/// Seed of the first figure.
const SEED: u64 = 20_260_102;
/// A moment is not known better than by so many hours.
const LEAST_WITHIN: u64 = 3;
/// The fewest hours of a figure in which a moment can be found.
pub const LEAST_HOURS: usize = 10;

/// A figure that changed for good.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moment {
    /// What it is of.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// The first hour behind it: `2026-01-02T03`, UTC.
    pub hour: String,
    /// It may lie so many hours before or behind that: noise moves it, and where hours resemble
    /// their neighbours, as by day and at night, farther.
    pub within_hours: u64,
    /// From the moment before it, or the beginning, until then; and from then until the next one,
    /// or the end.
    pub values: [f64; 2],
    /// Probability of such a difference without a change, by permutations.
    pub p_value: f64,
}

/// All of them, by time.
pub fn moments(all: &[Interval]) -> Vec<Moment> {
    let mut found = Vec::new();
    let mut figures = figures(all);
    figures.retain(|figure| *figure != Figure::Late || same_question([all, &[]]));
    for (seed, figure) in (SEED + 1..).zip(figures) {
        let hours: Vec<(String, [f64; 2])> = figure.hours(all).into_iter().collect();
        let values: Vec<f64> = hours.iter().map(|(_, [part, whole])| part / whole).collect();
        let splits = splits(&values, seed);
        let ends = splits.iter().map(|split| split.at).skip(1).chain([hours.len()]);
        let mut from = 0;
        for (split, end) in splits.iter().zip(ends) {
            let value = |from: usize, to: usize| {
                let [part, whole] =
                    [0, 1].map(|at| hours[from..to].iter().map(|(_, sums)| sums[at]).sum::<f64>());
                part / whole
            };
            found.push(Moment {
                what: figure.name(),
                unit: figure.unit(),
                hour: hours[split.at].0.clone(),
                within_hours: (split.block as u64).max(LEAST_WITHIN),
                values: [value(from, split.at), value(split.at, end)],
                p_value: split.p_value,
            });
            from = split.at;
        }
    }
    found.sort_by(|a, b| a.hour.cmp(&b.hour));
    found
}

/// What a monitor's own lines say was different behind a place from before it, one sentence each:
/// the kernel, this program, what is watched.
pub fn different(before: &Interval, behind: &Interval) -> Vec<String> {
    let limit = |one: &Interval| format!("{} us", one.limit_ns / 1_000);
    let all = [
        ("the machine", before.host.clone(), behind.host.clone()),
        ("the kernel", before.kernel.clone(), behind.kernel.clone()),
        ("stillcore", before.version.clone(), behind.version.clone()),
        ("the watched CPUs", before.cpus.to_string(), behind.cpus.to_string()),
        ("the watched threads", before.threads_watched.clone(), behind.threads_watched.clone()),
        ("the limit", limit(before), limit(behind)),
    ];
    let changed = all.into_iter().filter(|(_, before, behind)| before != behind);
    changed.map(|(what, before, behind)| format!("{what}: {before} before, {behind} behind it")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::periods::tests::period;

    fn noisy(hour: u64) -> u64 {
        1_000_000 + hour * 7_919 % 1_000 * 100
    }

    #[test]
    fn what_changes_for_good_is_found_with_the_hour() {
        let mut all = period(0, 60, noisy, 0);
        all.extend(period(60, 40, |hour| 2 * noisy(hour), 0));
        let found = moments(&all);
        assert_eq!(found.len(), 1, "{found:?}");
        let moment = &found[0];
        assert_eq!(moment.what, "interference by irq");
        assert_eq!(moment.hour, all[60].at.chars().take(13).collect::<String>());
        assert!(moment.values[1] > 1.8 * moment.values[0] && moment.p_value <= 0.01, "{moment:?}");
    }

    #[test]
    fn a_history_that_only_varies_has_none_and_a_short_one_neither() {
        assert_eq!(moments(&period(0, 200, noisy, 1)), []);
        let mut short = period(0, 4, noisy, 0);
        short.extend(period(4, LEAST_HOURS as u64 - 5, |hour| 9 * noisy(hour), 0));
        assert_eq!(moments(&short), []);
        assert_eq!(moments(&[]), []);
    }

    /// Machines do other things at night than by day.
    #[test]
    fn the_round_of_days_is_no_change() {
        let mut random = 1u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % 1_000_000
        };
        let mut alarms = 0;
        for _ in 0..40 {
            let noise: Vec<u64> = (0..24 * 10).map(|_| next()).collect();
            let by_day = |hour: u64| if hour % 24 < 10 { 3_000_000 } else { 1_000_000 };
            let all = period(0, noise.len() as u64, |hour| by_day(hour) + noise[hour as usize - 1], 0);
            alarms += u32::from(!moments(&all).is_empty());
        }
        assert!(alarms <= 2, "{alarms} of 40");
        // A change for good shows all the same.
        let twice =
            |hour: u64| if hour % 24 < 10 { 3_000_000 } else { 1_000_000 } * if hour > 168 { 2 } else { 1 };
        let all = period(0, 24 * 14, |hour| twice(hour) + noisy(hour) / 4, 0);
        let found = moments(&all);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].hour.starts_with("2026-01-08T0"), "{found:?}");
    }

    /// Days and nights hide the hour: it is not said to be known better than it is.
    #[test]
    fn the_hour_is_within_what_is_said() {
        for at in (100..236).step_by(5) {
            let by_day = |hour: u64| if hour % 24 < 10 { 3_000_000 } else { 1_000_000 } * if hour > at { 2 } else { 1 };
            let all = period(0, 24 * 14, |hour| by_day(hour) + noisy(hour) / 2, 0);
            let place = |hour: &str| all.iter().position(|one| one.at.starts_with(hour)).unwrap() as u64;
            let found = moments(&all);
            assert!(!found.is_empty(), "{at}");
            let near = |one: &Moment| place(&one.hour).abs_diff(at) <= one.within_hours;
            assert!(found.iter().any(near), "{at}: {found:?}");
        }
    }

    #[test]
    fn what_the_lines_say_was_different_is_named() {
        let all = period(0, 2, noisy, 0);
        assert_eq!(different(&all[0], &all[1]), Vec::<String>::new());
        let other = Interval { kernel: "6.12.3".to_owned(), limit_ns: 900_000, ..all[1].clone() };
        let found = different(&all[0], &other);
        assert!(
            found[0].starts_with("the kernel: ") && found[0].ends_with("before, 6.12.3 behind it"),
            "{found:?}"
        );
        assert!(found[1].starts_with("the limit: ") && found[1].ends_with("900 us behind it"), "{found:?}");
    }
}
