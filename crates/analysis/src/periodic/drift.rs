//! Does the date of the wake-ups drift (ERTS 2022, Figs. 10 to 12)? The paper read it off its
//! charts; here it is estimated, so that peaks do not move the answer.

use super::Figure;
use serde::{Deserialize, Serialize};
use stats::runs::median;

/// Wake-up dates against the grid `first + k · period` in CLOCK_MONOTONIC (Fig. 10), and their
/// first difference (Figs. 11, 12).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Slope, µs a minute: the median of the slopes between jobs half the window apart, which peaks
    /// do not move (Theil 1950, Sen 1968; the pairs are those of the "incomplete" estimator).
    pub us_per_min: f64,
    /// Half of the slopes lie within this distance of the median, µs a minute: less than it is no
    /// drift.
    pub spread_us_per_min: f64,
    /// The last wake-up date minus where the grid puts it, ns.
    pub end_ns: i64,
    /// Differences of successive wake-up dates minus the period, ns, where no release between them
    /// was missed.
    pub difference_ns: Figure,
    /// Their correlation with the next one. -1/2: every delay is made up for by the next wake-up,
    /// as with releases on a fixed grid; 0: delays add up.
    pub next_correlation: Option<f64>,
}

/// Drift of wake-up dates: number of the release and date, ascending. None below four.
pub fn drift(wake_ups: &[(i64, i64)], period_ns: u64) -> Option<Drift> {
    let period = period_ns.clamp(1, i64::MAX as u64) as i64;
    let (&(first_number, first_ns), &(last_number, last_ns)) = (wake_ups.first()?, wake_ups.last()?);
    if wake_ups.len() < 4 {
        return None;
    }
    let off = |number: i64, ns: i64| off_grid((number, ns), (first_number, first_ns), period) as f64;
    let half = wake_ups.len() / 2;
    let slope = |(&(n0, t0), &(n1, t1)): (&(i64, i64), &(i64, i64))| {
        let minutes = (n1 - n0).max(1) as f64 * period as f64 / 60e9;
        (off(n1, t1) - off(n0, t0)) / 1e3 / minutes
    };
    let mut slopes: Vec<f64> = wake_ups.iter().zip(&wake_ups[half..]).map(slope).collect();
    let us_per_min = median(&mut slopes).unwrap_or(0.0);
    let mut distances: Vec<f64> = slopes.iter().map(|slope| (slope - us_per_min).abs()).collect();
    let steps = wake_ups.windows(2).filter(|pair| pair[1].0 == pair[0].0 + 1);
    let differences: Vec<i64> =
        steps.map(|pair| pair[1].1.saturating_sub(pair[0].1).saturating_sub(period)).collect();
    Some(Drift {
        us_per_min,
        spread_us_per_min: median(&mut distances).unwrap_or(0.0),
        end_ns: off(last_number, last_ns) as i64,
        difference_ns: Figure::of(&differences, 0),
        next_correlation: next_correlation(&differences),
    })
}

/// How much later than on the grid of nominal periods through the first wake-up one came, ns.
pub(super) fn off_grid((number, ns): (i64, i64), (first_number, first_ns): (i64, i64), period: i64) -> i64 {
    let grid = i128::from(number.saturating_sub(first_number)) * i128::from(period);
    let off = i128::from(ns) - i128::from(first_ns) - grid;
    off.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Autocorrelation at lag one; none where nothing varies.
fn next_correlation(values: &[i64]) -> Option<f64> {
    let mean = values.iter().map(|&value| value as f64).sum::<f64>() / values.len() as f64;
    let from_mean = |value: i64| value as f64 - mean;
    let all: f64 = values.iter().map(|&value| from_mean(value).powi(2)).sum();
    let next: f64 = values.windows(2).map(|pair| from_mean(pair[0]) * from_mean(pair[1])).sum();
    (values.len() > 8 && all > 0.0).then(|| next / all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIOD: u64 = 125_000_000;

    #[test]
    fn the_paper_s_drift_is_found_through_its_peaks() {
        // §VI-C: 40 µs early after 15,000 steps of 125 ms, with delays of 8 µs now and then.
        let wake = |k: i64| {
            let delay = if k % 61 == 0 { 8_000 } else { 0 };
            (k, 5_000 + k * PERIOD as i64 - k * 40_000 / 15_000 + delay)
        };
        let wake_ups: Vec<_> = (0..15_000).map(wake).collect();
        let drift = drift(&wake_ups, PERIOD).unwrap();
        let expected = -40.0 / (15_000.0 * 0.125 / 60.0);
        assert!((drift.us_per_min / expected - 1.0).abs() < 0.01, "{drift:?}");
        assert!(drift.spread_us_per_min < drift.us_per_min.abs() / 10.0, "{drift:?}");
        // Every peak is followed by a negative one of its size (Fig. 12).
        assert!((drift.next_correlation.unwrap() + 0.5).abs() < 0.05, "{drift:?}");
        assert_eq!(drift.difference_ns.n, 14_999);
    }

    proptest! {
        #[test]
        fn drift_does_not_depend_on_missed_releases(rate in -1_000i64..1_000, gap in 1i64..50) {
            let date = |k: i64| (k, k * (PERIOD as i64 + rate));
            let wake_ups: Vec<_> = (0..50).chain(50 + gap..150).map(date).collect();
            let drift = drift(&wake_ups, PERIOD).unwrap();
            let expected = rate as f64 / 1e3 * 60e9 / PERIOD as f64;
            prop_assert!((drift.us_per_min - expected).abs() < 1e-6);
            prop_assert_eq!(drift.difference_ns.n, 148 - gap as u64);
        }
    }
}
