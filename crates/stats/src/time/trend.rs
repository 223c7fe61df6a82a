//! Does a series drift? Theil–Sen slope with its interval, and the Mann–Kendall test, both for
//! values that resemble their neighbours.
//!
//! H. Theil (1950) and P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau",
//! JASA 63 (1968): the median of the slopes of all pairs, and an interval from the order statistics
//! of those slopes at the quantile of Kendall's S. K. H. Hamed and A. R. Rao, "A modified
//! Mann-Kendall trend test for autocorrelated data", Journal of Hydrology 204 (1998): the variance
//! of S grows by a sum over the autocorrelations of the ranks, trend taken out, of those lags where
//! it is significant. A correction that would make the variance smaller is not made: a verdict
//! never gets easier by it.

use super::ranks::mid_ranks;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};
use std::cmp::Ordering;

/// ns in an hour.
const HOUR_NS: f64 = 3.6e12;
/// Fewer points give no trend.
const LEAST: usize = 10;
/// Of more points as many are taken, evenly: pairs grow with the square.
const MOST: usize = 800;
/// Half-width of a 95 % interval of a normal variable, and the bound of a significant
/// autocorrelation.
const Z95: f64 = 1.959_963_984_540_054;

/// How a series drifts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Points.
    pub n: usize,
    /// Median of the slopes of all pairs, µs per hour.
    pub us_per_hour: f64,
    /// 95 % interval of it, for values as dependent as these are.
    pub interval_us_per_hour: [f64; 2],
    /// Kendall's tau: share of the pairs that rise less that of those that fall.
    pub tau: f64,
    /// Two-sided probability of so much under no trend (Mann–Kendall, Hamed and Rao's variance).
    pub p_value: f64,
    /// By what the variance was multiplied for the values' resemblance to their neighbours; 1: by
    /// nothing.
    pub variance_factor: f64,
}

impl Trend {
    /// Whether the series drifts, at the 1 % level, by more than nothing.
    pub fn drifts(&self) -> bool {
        self.p_value < 0.01 && self.interval_us_per_hour[0] * self.interval_us_per_hour[1] > 0.0
    }
}

/// The trend of (time in ns, value in ns), times ascending. None below ten points, and where time
/// stands still.
pub fn trend(points: &[(i64, f64)]) -> Option<Trend> {
    let every = points.len().div_ceil(MOST).max(1);
    let points: Vec<(i64, f64)> = points.iter().copied().step_by(every).collect();
    let n = points.len();
    if n < LEAST || points.first()?.0 == points.last()?.0 {
        return None;
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut s = 0i64;
    for (at, &(t0, low)) in points.iter().enumerate() {
        for &(t1, high) in &points[at + 1..] {
            s += i64::from(high > low) - i64::from(high < low);
            if t1 > t0 {
                slopes.push((high - low) / (t1 - t0) as f64);
            }
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = middle(&slopes)?;
    let factor = variance_factor(&points, slope);
    let variance = kendall_variance(&points) * factor;
    let deviation = variance.sqrt();
    let z = if s == 0 || deviation == 0.0 { 0.0 } else { (s.abs() - 1) as f64 / deviation };
    // Order statistics at (N ∓ z·σ)/2, as Sen's section 4 counts them.
    let pairs = slopes.len() as f64;
    let at = |rank: f64| slopes[(rank.round().max(0.0) as usize).min(slopes.len() - 1)];
    let half = Z95 * deviation / 2.0;
    let hourly = |slope: f64| slope * HOUR_NS / 1e3;
    Some(Trend {
        n,
        us_per_hour: hourly(slope),
        interval_us_per_hour: [hourly(at(pairs / 2.0 - half - 1.0)), hourly(at(pairs / 2.0 + half))],
        tau: s as f64 / (n * (n - 1) / 2) as f64,
        p_value: 2.0 * Normal::standard().cdf(-z),
        variance_factor: factor,
    })
}

/// The middle of sorted values.
fn middle(sorted: &[f64]) -> Option<f64> {
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// Variance of Kendall's S for independent values, ties counted (Kendall, "Rank Correlation
/// Methods", 1975, ch. 4).
pub(super) fn kendall_variance(points: &[(i64, f64)]) -> f64 {
    let mut values: Vec<f64> = points.iter().map(|point| point.1).collect();
    values.sort_unstable_by(f64::total_cmp);
    let term = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let ties: f64 = values
        .chunk_by(|a, b| a.partial_cmp(b).is_some_and(Ordering::is_eq))
        .map(|same| term(same.len() as f64))
        .sum();
    (term(points.len() as f64) - ties) / 18.0
}

/// By what dependence multiplies the variance of S: at least 1.
fn variance_factor(points: &[(i64, f64)], slope: f64) -> f64 {
    hamed_rao(points, slope).max(first_order_factor(&flattened(points, slope))).max(1.0)
}

/// Ranks of the values with the trend taken out.
fn flattened(points: &[(i64, f64)], slope: f64) -> Vec<f64> {
    let start = points[0].0;
    let flat: Vec<f64> = points.iter().map(|(t, value)| value - slope * (t - start) as f64).collect();
    mid_ranks(&flat)
}

/// Hamed and Rao's n/n*.
pub(super) fn hamed_rao(points: &[(i64, f64)], slope: f64) -> f64 {
    let ranks = flattened(points, slope);
    let n = ranks.len() as f64;
    let lags = ranks.len().saturating_sub(3).min(ranks.len() / 2);
    let sum: f64 = autocorrelations(&ranks, lags)
        .into_iter()
        .enumerate()
        .map(|(at, rho)| (at as f64 + 1.0, rho))
        .filter(|(_, rho)| rho.abs() > Z95 / n.sqrt())
        .map(|(lag, rho)| (n - lag) * (n - lag - 1.0) * (n - lag - 2.0) * rho)
        .sum();
    1.0 + 2.0 / (n * (n - 1.0) * (n - 2.0)) * sum
}

/// The same for values of which each resembles the one before only: (1 + ρ)/(1 − ρ), where ρ is
/// significant (S. Yue and C. Wang, Water Resources Management 18 (2004)), corrected for the bias
/// that fitting the line gives ρ (M. Kendall, Biometrika 41 (1954)). Sums over significant lags
/// alone leave out what lies below significance, and a fifth of such series seem to drift.
fn first_order_factor(ranks: &[f64]) -> f64 {
    let n = ranks.len() as f64;
    let rho = autocorrelations(ranks, 1)[0];
    let rho = if rho > Z95 / n.sqrt() { rho + (2.0 + 4.0 * rho) / n } else { 0.0 };
    (1.0 + rho) / (1.0 - rho.min(0.98))
}

/// Autocorrelations at lags from 1 to `lags`; all 0 where nothing varies.
pub(super) fn autocorrelations(values: &[f64], lags: usize) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let all: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let at = |lag: usize| -> f64 {
        values.iter().zip(values.iter().skip(lag)).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    (1..=lags).map(|lag| if all > 0.0 { at(lag) / all } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::generator;
    use fixture::noise::{autoregressive, normal};
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;

    fn series(values: &[f64]) -> Vec<(i64, f64)> {
        values.iter().enumerate().map(|(k, value)| (k as i64 * SECOND, *value)).collect()
    }

    #[test]
    fn a_planted_drift_lies_in_its_interval() {
        let mut random = generator(1, 0);
        // 10 µs an hour under noise of 50 ns, an outlier of a ms now and then.
        let values: Vec<f64> = (0..600)
            .map(|k| {
                let outlier = if k % 50 == 7 { 1e6 } else { 0.0 };
                5_000.0 + f64::from(k) * 10_000.0 / 3_600.0 + 50.0 * normal(&mut random) + outlier
            })
            .collect();
        let trend = trend(&series(&values)).unwrap();
        assert!(trend.drifts(), "{trend:?}");
        let [low, high] = trend.interval_us_per_hour;
        assert!(low < 10.0 && 10.0 < high && high - low < 1.0, "{trend:?}");
    }

    /// 400 series without trend in which neighbours resemble each other by `rho`: how many are said
    /// to drift at the 5 % level, and how many intervals miss 0.
    fn wrong(rho: f64, seed: u64) -> (usize, usize) {
        let mut random = generator(seed, 0);
        let trends = (0..400).map(|_| trend(&series(&autoregressive(&mut random, rho, 200))).unwrap());
        trends.fold((0, 0), |(p, missed), one| {
            let [low, high] = one.interval_us_per_hour;
            (p + usize::from(one.p_value < 0.05), missed + usize::from(low > 0.0 || high < 0.0))
        })
    }

    #[test]
    fn independent_series_drift_as_rarely_as_the_level_says() {
        let (alarms, missed) = wrong(0.0, 3);
        // Binomial(400, 0.05): 20 with a deviation of 4.4; seven in a million lie outside of 4.4 of
        // these.
        assert!((2..=39).contains(&alarms) && (2..=39).contains(&missed), "{alarms} {missed}");
    }

    #[test]
    fn resemblance_of_neighbours_is_no_drift() {
        // Without the correction more than a third of such series drift.
        let (alarms, missed) = wrong(0.6, 4);
        assert!(alarms < 48 && missed < 48, "{alarms} {missed}");
    }

    #[test]
    fn too_little_has_no_trend() {
        assert_eq!(trend(&series(&[1.0; 9])), None);
        assert_eq!(trend(&[(5, 1.0); 20]), None);
        let flat = trend(&series(&[7.0; 40])).unwrap();
        assert!(!flat.drifts() && flat.us_per_hour == 0.0, "{flat:?}");
    }

    proptest! {
        #[test]
        fn turning_values_around_turns_the_slope_around(values in proptest::collection::vec(-1e6f64..1e6, 10..80)) {
            let one = trend(&series(&values)).unwrap();
            let other = trend(&series(&values.iter().map(|value| -value).collect::<Vec<_>>())).unwrap();
            prop_assert!((one.us_per_hour + other.us_per_hour).abs() <= 1e-6 * one.us_per_hour.abs().max(1.0));
            prop_assert!((one.p_value - other.p_value).abs() < 1e-9);
            prop_assert!(one.interval_us_per_hour[0] <= one.us_per_hour && one.us_per_hour <= one.interval_us_per_hour[1]);
        }
    }
}
