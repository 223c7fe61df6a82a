//! Quantiles and exceedances of one window's samples, given that they depend on each other.
//!
//! A quantile is given where ten *effective* samples lie above it: their number over the integrated
//! autocorrelation time of the indicator of lying there ([`crate::effective`]). Its interval is a
//! circular block bootstrap ([`crate::resample`]) with blocks of a quarter of a second or as long
//! as [`crate::block_length`] asks for. Intervals of shares are exact binomial ones
//! (Clopper–Pearson) of the effective number; of rates exact Poisson ones (Garwood).

use crate::bounds::{CONFIDENCE, poisson_lower, poisson_upper, share_interval, share_upper};
use crate::effective::{self, Tau};
use crate::extremal::{self, Extremal};
use crate::resample::{BlockedSamples, generator};
use crate::sampled::{Dependence, Exceedance, Quantile};
use crate::{block_length, nearest_rank};

/// The probabilities of the quantiles, in parts of 100,000.
pub const LEVELS: [u64; 6] = [50_000, 90_000, 99_000, 99_900, 99_990, 99_999];
const WHOLE: u64 = 100_000;
/// Effective samples that must lie above a quantile.
pub const ABOVE: f64 = 10.0;
/// Draws of each quantile.
const DRAWS: usize = 500;
/// The extremal index is estimated at the highest level that this many samples lie above.
const CLUSTERED: usize = 100;
const HOUR_NS: f64 = 3.6e12;

/// The samples of a window.
pub struct Series {
    /// In the order of time.
    values: Vec<i64>,
    blocked: BlockedSamples,
    dependence: Option<Dependence>,
}

impl Series {
    /// From samples `(t_ns, value_ns)` in the order of time, of the window from `t0_ns` to `t1_ns`;
    /// `stalls` as [`BlockedSamples::new`] takes them.
    pub fn new(samples: &[(i64, i64)], stalls: &[[i64; 2]], [t0_ns, t1_ns]: [i64; 2]) -> Self {
        let values: Vec<i64> = samples.iter().map(|(_, value)| *value).collect();
        let blocked = BlockedSamples::new(samples.iter().copied(), stalls, t0_ns, t1_ns);
        let mut series = Self { values, blocked, dependence: None };
        series.dependence = series.depends(t1_ns.saturating_sub(t0_ns).max(1) as f64);
        if let Some(found) = &series.dependence {
            let span = found.block_ns.div_ceil(found.cell_ns.max(1));
            series.blocked = series.blocked.spanning(usize::try_from(span).unwrap_or(usize::MAX));
        }
        series
    }

    /// The values, ascending.
    pub fn sorted(&self) -> &[i64] {
        self.blocked.values()
    }

    /// How the samples depend on each other; none for fewer than twenty.
    pub fn dependence(&self) -> Option<Dependence> {
        let found = self.dependence.as_ref()?;
        let block_ns = found.cell_ns * self.blocked.span() as u64;
        Some(Dependence { block_ns, ..found.clone() })
    }

    fn depends(&self, length_ns: f64) -> Option<Dependence> {
        let n = self.values.len();
        if n < 20 {
            return None;
        }
        let tau = effective::of_values(&self.values);
        let cell = effective::cell_length(n);
        let wanted = [50_000, 99_000].map(|parts| {
            let from = self.rank(parts).map_or(i64::MAX, |value| value.saturating_add(1));
            let count = |chunk: &[i64]| chunk.iter().filter(|&&value| value >= from).count() as f64;
            let counts: Vec<f64> = self.values.chunks_exact(cell).map(count).collect();
            block_length::circular(&counts) * cell as f64
        });
        let politis_white = wanted[0].max(wanted[1]);
        let cell_ns = (length_ns / self.blocked.block_count() as f64).ceil() as u64;
        Some(Dependence {
            tau: tau.samples,
            resolved: tau.resolved,
            n_effective: n as f64 / tau.samples,
            politis_white,
            block_ns: (politis_white * length_ns / n as f64).ceil() as u64,
            cell_ns,
            extremal: self.extremal(),
        })
    }

    fn extremal(&self) -> Option<Extremal> {
        let n = self.values.len();
        let parts = LEVELS.into_iter().rev().find(|&parts| n >= nearest_rank(n, parts) + CLUSTERED)?;
        let threshold_ns = self.rank(parts)?;
        let above = self.values.iter().enumerate().filter(|(_, value)| **value > threshold_ns);
        let places: Vec<u64> = above.map(|(place, _)| place as u64).collect();
        let theta = extremal::index(&places)?;
        let clusters = (theta * places.len() as f64).round().max(1.0) as u64;
        Some(Extremal { threshold_ns, exceedances: places.len() as u64, theta, clusters })
    }

    /// The nearest-rank quantile of `parts` in 100,000; none without samples.
    fn rank(&self, parts: u64) -> Option<i64> {
        let sorted = self.sorted();
        sorted.get(nearest_rank(sorted.len(), parts).checked_sub(1)?).copied()
    }

    /// All levels.
    pub fn quantiles(&self) -> Vec<Quantile> {
        LEVELS.iter().map(|&parts| self.quantile(parts)).collect()
    }

    fn quantile(&self, parts: u64) -> Quantile {
        let mut quantile = Quantile { p: parts as f64 / WHOLE as f64, ..Quantile::default() };
        let n = self.values.len();
        let Some(value_ns) = self.rank(parts) else { return quantile };
        let above = n - nearest_rank(n, parts);
        // Ties with the quantile are above it by their rank alone: where there are many, its own
        // indicator is taken.
        let tau = effective::of_reaching(&self.values, value_ns.saturating_add(1)).samples;
        let tau = tau.max(effective::of_reaching(&self.values, value_ns).samples);
        quantile.effective_above = Some(above as f64 / tau);
        if above as f64 / tau >= ABOVE {
            quantile.value_ns = Some(value_ns);
            let interval = self.blocked.quantile_interval(parts, DRAWS, &mut generator(4, parts));
            quantile.interval_ns = interval.map(|[low, high]| [low.floor() as i64, high.ceil() as i64]);
        }
        quantile
    }

    /// Samples at or above each of the thresholds, which ascend. `duration_ns`: how long was
    /// measured.
    pub fn exceedances(&self, thresholds_ns: &[i64], duration_ns: u64) -> Vec<Exceedance> {
        let sorted = self.sorted();
        let n = sorted.len() as u64;
        let reached = |threshold_ns: i64| n - sorted.partition_point(|&value| value < threshold_ns) as u64;
        let counts =
            thresholds_ns.iter().map(|&ns| (ns, reached(ns), effective::of_reaching(&self.values, ns)));
        let deepened = deepening(&counts.collect::<Vec<_>>(), n);
        deepened.into_iter().map(|(ns, count, tau)| exceedance(ns, count, n, tau, duration_ns)).collect()
    }
}

/// Replaces the own τ of each threshold by the τ to use. `counts`: thresholds, ascending, with how
/// often each of `n` samples reached it and its own τ. A few events cannot show how they cluster;
/// those at the next lower threshold can.
pub fn deepening(counts: &[(i64, u64, Tau)], n: u64) -> Vec<(i64, u64, f64)> {
    let mut deepest = 1.0;
    let each = |&(threshold_ns, count, own): &(i64, u64, Tau)| {
        let many = count as f64 >= ABOVE;
        let tau = if many { own.samples } else { own.samples.max(deepest) };
        if many && count < n {
            deepest = own.samples;
        }
        (threshold_ns, count, tau)
    };
    counts.iter().map(each).collect()
}

/// What a count is worth.
pub fn exceedance(threshold_ns: i64, count: u64, n: u64, tau: f64, duration_ns: u64) -> Exceedance {
    let (events, trials) = (count as f64 / tau, n as f64 / tau);
    let per_hour = if duration_ns == 0 { 0.0 } else { HOUR_NS / duration_ns as f64 };
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let high = if count == 0 { 3.0 } else { poisson_upper(events, tail) };
    let [low, upper] = share_interval(events, trials);
    Exceedance {
        threshold_ns,
        count,
        share: if n == 0 { 0.0 } else { count as f64 / n as f64 },
        upper_share: share_upper(events, trials),
        interval: [low, upper],
        tau,
        per_hour: count as f64 * per_hour,
        per_hour_interval: [poisson_lower(events, tail) * tau * per_hour, high * tau * per_hour],
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use crate::random::uniform;
    use fixture::Ar1;

    fn series(values: &[i64]) -> Series {
        let samples: Vec<(i64, i64)> =
            values.iter().enumerate().map(|(k, &value)| (k as i64 * 1_000_000, value)).collect();
        Series::new(&samples, &[], [0, values.len() as i64 * 1_000_000])
    }

    /// Short latencies with late ones in rows of `row` at random, a hundredth of all.
    fn in_rows(n: usize, row: usize) -> Vec<i64> {
        let mut random = generator(8, row as u64);
        let mut values = Vec::with_capacity(n + row);
        while values.len() < n {
            let late = uniform(&mut random) < 0.01;
            let value = if late { 5_000 } else { 10 + (values.len() % 7) as i64 };
            values.extend(std::iter::repeat_n(value, row));
        }
        values.truncate(n);
        values
    }

    #[test]
    fn ten_above_that_are_one_burst_are_one() {
        // Forty late samples, in one row and apart: only apart they say something of p99.
        let late = |at: fn(usize) -> bool| -> Vec<i64> {
            let mut short = Ar1::new(0.0, 9).values(2_000);
            (0..2_000).filter(|k| at(*k)).for_each(|k| short[k] = 90_000);
            short
        };
        let (burst, apart) = (series(&late(|k| (700..740).contains(&k))), series(&late(|k| k % 50 == 7)));
        let p99 = |series: &Series| series.quantiles()[2].clone();
        assert_eq!(p99(&apart).value_ns, Some(90_000));
        assert_eq!(p99(&burst).value_ns, None);
        assert!(p99(&burst).effective_above.unwrap() < 3.0, "{:?}", p99(&burst));
    }

    #[test]
    fn dependence_widens_what_is_said_of_a_limit() {
        let first_limit = |row: usize| {
            series(&in_rows(40_000, row)).exceedances(&[1_000, 100_000], 3_600_000_000_000)[0].clone()
        };
        let (alone, rows) = (first_limit(1), first_limit(10));
        assert!(alone.tau < 1.3 && (rows.tau / 10.0 - 1.0).abs() < 0.3, "{} {}", alone.tau, rows.tau);
        let width = |one: &Exceedance| one.interval[1] - one.interval[0];
        assert!(width(&rows) > 2.5 * width(&alone));
        assert_eq!(alone.per_hour, alone.count as f64);
        assert!(rows.per_hour_interval[0] < rows.per_hour && rows.per_hour < rows.per_hour_interval[1]);
    }

    #[test]
    fn none_of_n_is_three_over_the_effective_n() {
        let exceedances = series(&vec![10; 3_000]).exceedances(&[1_000], 3_600_000_000_000);
        assert_eq!(
            (exceedances[0].count, exceedances[0].interval, exceedances[0].per_hour_interval),
            (0, [0.0, 0.001], [0.0, 3.0])
        );
        // Where the limit below is reached in rows of ten, none above is worth a tenth of that.
        let exceedances = series(&in_rows(40_000, 10)).exceedances(&[1_000, 100_000], 1);
        assert!(exceedances[1].interval[1] > 6.0 * 3.0 / 40_000.0, "{:?}", exceedances[1]);
    }

    #[test]
    fn blocks_are_as_long_as_dependence_asks() {
        let short = series(&Ar1::new(0.3, 1).values(20_000)).dependence().unwrap();
        assert_eq!(short.block_ns, short.cell_ns);
        assert!(short.resolved && short.tau < 3.5 && short.n_effective > 5_000.0, "{short:?}");
        let long = series(&Ar1::new(0.999, 2).values(20_000)).dependence().unwrap();
        assert!(long.block_ns > 2 * long.cell_ns && long.politis_white > 500.0, "{long:?}");
        assert_eq!(series(&[1; 19]).dependence(), None);
    }
}
