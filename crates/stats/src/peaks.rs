//! Do the peaks of a series recur with a period?
//!
//! Peaks are values that stand out from the rest; their period is the one whose folded times agree
//! best: the mean resultant length R of the phases (Fisher, "Statistical Analysis of Circular
//! Data", 1993, §2.3), tested by Rayleigh's exp(-n R²) times the number of periods tried. Folding
//! asks nothing of the times between, and survives peaks that are missing. The ERTS 2022 paper
//! (§VI-B, Figs. 6 and 7) saw large peaks among small ones, ten of these to one of those: so the
//! largest are looked at once more by themselves.

use crate::runs::median;
use crate::time::fold::{agreement, refined};
use serde::{Deserialize, Serialize};

/// Peaks of a series.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Peaks {
    /// A value is a peak from here on: eight median absolute deviations above the median, and a
    /// tenth of the median at least.
    pub from: i64,
    /// How many there are.
    pub n: u64,
    /// The period of them all.
    pub period: Option<Period>,
    /// The period of the large ones alone, where there are two kinds.
    pub large: Option<Period>,
}

/// A period with which peaks recur.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// The period, ns.
    pub period_ns: i64,
    /// Peaks it was found from.
    pub n: u64,
    /// Their least value.
    pub from: i64,
    /// Agreement of their phases: 1 where all are the same, about 1/√n by chance.
    pub agreement: f64,
    /// Bound of the probability that as many peaks without a period agree so well, for all periods
    /// tried.
    pub p_value: f64,
}

/// Deviations above the median at which a value is a peak.
const DEVIATIONS: f64 = 8.0;
/// Fewer peaks give no period.
const LEAST: usize = 5;
/// The largest of more peaks are looked at.
const MOST: usize = 1_000;
/// Periods that are tried at the most.
const TRIALS: usize = 20_000;
const SIGNIFICANT: f64 = 1e-3;
/// Times are known to one distance of samples: a shorter multiple of that fits anything.
const LEAST_STEPS: i64 = 4;

/// Peaks of a series of (time, value), times ascending and `step_ns` apart, holes allowed.
pub fn peaks(series: &[(i64, i64)], step_ns: u64) -> Peaks {
    let step = step_ns.clamp(1, i64::MAX as u64 / 8) as i64;
    let from = stands_out_from(series.iter().map(|one| one.1));
    let mut found: Vec<(i64, i64)> = series.iter().copied().filter(|&(_, value)| value >= from).collect();
    let n = found.len() as u64;
    if found.len() > MOST {
        found.sort_unstable_by_key(|&(_, value)| std::cmp::Reverse(value));
        found.truncate(MOST);
        found.sort_unstable();
    }
    let large = large_from(&found).and_then(|least| {
        let large: Vec<_> = found.iter().copied().filter(|&(_, value)| value >= least).collect();
        period(&large, step)
    });
    Peaks { from, n, period: period(&found, step), large }
}

/// The value at which one stands out from the others: so many median absolute deviations above
/// their median, and a tenth of it at least.
pub(crate) fn stands_out_from(values: impl Iterator<Item = i64>) -> i64 {
    let mut values: Vec<f64> = values.map(|value| value as f64).collect();
    let middle = median(&mut values).unwrap_or(0.0);
    values.iter_mut().for_each(|value| *value = (*value - middle).abs());
    let above = (DEVIATIONS * median(&mut values).unwrap_or(0.0)).max(middle.abs() / 10.0).max(1.0);
    (middle + above) as i64
}

/// Where the large peaks begin: behind the widest step between neighbours, as a ratio, with enough
/// of them above it.
fn large_from(found: &[(i64, i64)]) -> Option<i64> {
    let mut heights: Vec<i64> = found.iter().map(|&(_, value)| value).collect();
    heights.sort_unstable();
    let places = LEAST..heights.len().saturating_sub(LEAST - 1);
    let ratio = |place: &usize| heights[*place] as f64 / heights[*place - 1].max(1) as f64;
    let widest = places.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    (ratio(&widest) > 1.1).then(|| heights[widest])
}

/// The period of these peaks, if they have one.
fn period(found: &[(i64, i64)], step: i64) -> Option<Period> {
    let (&(first, _), &(last, _)) = (found.first()?, found.last()?);
    if found.len() < LEAST {
        return None;
    }
    let times: Vec<f64> = found.iter().map(|&(time, _)| (time - first) as f64).collect();
    let span = (last - first) as f64;
    let (shortest, longest) = (LEAST_STEPS as f64 * step as f64, span / (LEAST as f64 - 1.0) * 1.1);
    // Frequencies a quarter of a turn over the whole span apart: none lies between that would fit
    // and is not seen.
    let spacing = 0.25 / span.max(1.0);
    let trials = ((1.0 / shortest - 1.0 / longest) / spacing).ceil();
    if longest <= shortest || !trials.is_finite() {
        return None;
    }
    let shortest =
        if trials > TRIALS as f64 { 1.0 / (1.0 / longest + TRIALS as f64 * spacing) } else { shortest };
    let trials = trials.clamp(1.0, TRIALS as f64) as usize;
    let tried = (0..=trials).map(|trial| {
        let frequency = (1.0 / longest + trial as f64 * spacing).min(1.0 / shortest);
        (frequency, agreement(&times, frequency))
    });
    let tried: Vec<(f64, f64)> = tried.collect();
    let best = tried.iter().map(|(_, agreement)| *agreement).fold(0.0, f64::max);
    // A period's fractions fit as well as it does: the longest that fits about as well is meant.
    let (frequency, _) = *tried.iter().find(|(_, agreement)| *agreement > 0.85 * best)?;
    let (frequency, agreement) = refined(&times, frequency, 2.0 * spacing);
    let n = found.len() as f64;
    let p_value = (trials as f64 * (-n * agreement * agreement).exp()).min(1.0);
    (p_value < SIGNIFICANT).then(|| Period {
        period_ns: (1.0 / frequency).round() as i64,
        n: found.len() as u64,
        from: found.iter().map(|&(_, value)| value).min().unwrap_or(0),
        agreement,
        p_value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEP: i64 = 125_000_000;

    /// A series without pattern, by a generator of its own.
    fn noise(k: i64) -> i64 {
        let mixed = (k as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 32) % 2_000) as i64
    }

    #[test]
    fn the_paper_s_two_kinds_of_peaks() {
        // §VI-B: a peak every 3.1 s, each tenth a large one; the job's own period is 125 ms.
        let (small, large) = (3_130_000_000i64, 31_300_000_000i64);
        let series: Vec<_> = (0..5_000i64)
            .map(|k| {
                let at = k * STEP;
                let within = |period: i64| at % period < STEP && at > STEP;
                let more = if within(large) {
                    90_000
                } else if within(small) {
                    40_000
                } else {
                    0
                };
                (at, 145_000 + noise(k) + more)
            })
            .collect();
        let peaks = peaks(&series, STEP as u64);
        let off = |found: Option<Period>, period: i64| found.unwrap().period_ns as f64 / period as f64 - 1.0;
        assert!(off(peaks.period, small).abs() < 0.01, "{peaks:?}");
        assert!(off(peaks.large, large).abs() < 0.01, "{peaks:?}");
    }

    #[test]
    fn peaks_without_a_period_are_not_given_one() {
        let series: Vec<_> = (0..5_000)
            .map(|k| (k * STEP, 145_000 + noise(k) + if noise(7 * k + 3) < 40 { 50_000 } else { 0 }))
            .collect();
        let peaks = peaks(&series, STEP as u64);
        assert!(peaks.n > 50, "{peaks:?}");
        assert_eq!((peaks.period, peaks.large), (None, None));
    }

    #[test]
    fn a_series_without_peaks_has_none() {
        let series: Vec<_> = (0..500).map(|k| (k * STEP, 145_000 + noise(k))).collect();
        assert_eq!(peaks(&series, STEP as u64).n, 0);
        assert_eq!(peaks(&[], 0), Peaks { from: 1, ..Peaks::default() });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_period_of_many_steps_is_found(steps in 6.0f64..60.0, missing in 0i64..20) {
            let period = (steps * STEP as f64) as i64;
            let series: Vec<_> = (0..3_000i64)
                .map(|k| {
                    let at = k * STEP;
                    let peak = at % period < STEP && noise(at / period) % 20 >= missing / 3;
                    (at, 100_000 + if peak { 60_000 } else { noise(k) / 10 })
                })
                .collect();
            let found = peaks(&series, STEP as u64).period.unwrap();
            prop_assert!((found.period_ns as f64 / period as f64 - 1.0).abs() < 0.02, "{:?} for {}", found, period);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(series in prop::collection::vec((any::<i32>(), any::<i64>()), 0..60), step: u64) {
            let mut series: Vec<(i64, i64)> =
                series.into_iter().map(|(time, value)| (i64::from(time), value)).collect();
            series.sort_unstable();
            peaks(&series, step);
        }
    }
}
