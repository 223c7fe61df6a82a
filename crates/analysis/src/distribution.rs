//! Statistics of the samples of one window on one CPU: quantiles, exceedances, histogram, timeline,
//! time stolen.
//!
//! Quantiles are nearest-rank (Hyndman & Fan, "Sample quantiles in statistical packages", The
//! American Statistician 50 (1996), definition 1): always a value that was observed. A quantile is
//! given only where ten effective samples lie above it ([`stats::series`]); a tail of fewer says
//! more about luck than about the machine. Zero exceedances give an upper bound, never "none".

use crate::missed;
use attribution::count_ns::CountNs;
use model::Sample;
use model::run::ProbeRecord;
use model::sample::{Policy, ProbeKind};
use serde::{Deserialize, Serialize};
use stats::linear::by_us;
use stats::sampled::{Dependence, Exceedance, Quantile};
use stats::serialize_as_array;
use stats::series::Series;

/// The distribution of one probe's samples in one window on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// Number of the measuring thread in the window.
    #[serde(default)]
    pub thread: u32,
    /// Policy the kernel reported for the measuring thread.
    pub policy: Policy,
    /// Samples that statistics include.
    pub n: u64,
    /// Samples stored but not counted (first, warm-up, clock step).
    pub excluded: u64,
    /// Releases that passed unserved (wake-up).
    pub missed: u64,
    /// Samples lost to a full ring; none where that is not known, because the window was cut off.
    pub ring_lost: Option<u64>,
    /// Length of the measurement, ns: the window, or for noise the time the loop was running.
    pub duration_ns: u64,
    /// Samples with a negative value: woken early.
    pub early: u64,
    /// Smallest value.
    pub min_ns: Option<i64>,
    /// Observed maximum: of these n samples, no bound on any other.
    pub observed_max_ns: Option<i64>,
    /// All values together, ns; missed releases charged.
    #[serde(default)]
    pub sum_ns: i64,
    /// When it was observed, CLOCK_MONOTONIC ns.
    pub observed_max_at_ns: Option<i64>,
    /// Quantiles of the served samples.
    pub quantiles: Vec<Quantile>,
    /// Quantiles with every missed release charged with the lateness it had; only for wake-up.
    pub corrected_quantiles: Vec<Quantile>,
    /// Observed maximum with missed releases charged (wake-up).
    pub corrected_max_ns: Option<i64>,
    /// How the releases, missed ones charged, or gaps depend on each other; none for fewer than
    /// twenty.
    #[serde(default)]
    pub dependence: Option<Dependence>,
    /// Shares of the releases, missed ones charged, or of the gaps, at or above thresholds.
    pub exceedances: Vec<Exceedance>,
    /// Time stolen (noise).
    pub stolen: Option<Stolen>,
    /// Logarithmic histogram for charts.
    pub histogram: Vec<Bucket>,
    /// Samples by whole microsecond: `[µs, count]`, bins without a sample left out; what is beyond
    /// the last is in none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_us: Vec<[i64; 2]>,
    /// Maxima over time for charts: at most 400 entries of equal length.
    pub timeline: Vec<Maximum>,
}

/// A bucket of a histogram, low ≤ value < high; in JSON `[low_ns, high_ns, count]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Bucket {
    /// Lower edge.
    pub low_ns: i64,
    /// Upper edge.
    pub high_ns: i64,
    /// Samples.
    pub count: i64,
}

serialize_as_array!(Bucket { low_ns, high_ns, count });

/// The largest sample of a part of a window; in JSON `[t_ns, max_ns, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Maximum {
    /// Start of the part.
    pub t_ns: i64,
    /// The largest value, 0 without samples.
    pub max_ns: i64,
    /// Samples.
    pub n: i64,
}

serialize_as_array!(Maximum { t_ns, max_ns, n });

/// Time stolen from a busy loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stolen {
    /// Sum of all stored gaps, ns.
    pub total_ns: u64,
    /// `total_ns` over the time that the loop was running.
    pub share: f64,
    /// Shortest gap that was stored, ns.
    pub threshold_ns: u64,
    /// Gaps, and the time in them, that no recorded event overlaps. `None` where the CPU has no
    /// whole trace.
    pub unexplained: Option<CountNs>,
}

/// Thresholds of the exceedance table, ns: 1, 2, 5 of each decade from 1 µs to 10 ms.
pub const THRESHOLDS_NS: [i64; 13] = [
    1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
    10_000_000,
];
/// Buckets of the histogram in each decade.
const BUCKETS_A_DECADE: u32 = 20;
/// The most entries of a timeline.
const SLOTS: u64 = 400;

/// The statistics of one probe record's samples. The trace pass fills in `Stolen::unexplained`.
pub fn distribution(record: &ProbeRecord, samples: &[Sample]) -> Distribution {
    distribution_at(record, samples, &[])
}

/// The same, with exceedances of further limits, ns.
pub fn distribution_at(record: &ProbeRecord, samples: &[Sample], limits_ns: &[i64]) -> Distribution {
    let counted: Vec<&Sample> = samples.iter().filter(|sample| sample.counts()).collect();
    // Of equal maxima the first.
    let worst = counted.iter().copied().reduce(|a, b| if b.value_ns > a.value_ns { b } else { a });
    let served: Vec<(i64, i64)> = counted.iter().map(|sample| (sample.t_ns, sample.value_ns)).collect();
    let window = [record.t0_ns, record.t1_ns];
    let releases = record.detail.releases().is_some();
    let charged = if releases { missed::of_probe(record, samples) } else { Vec::new() };
    let all = (!charged.is_empty()).then(|| {
        let mut all = served.clone();
        all.extend(charged.iter().map(|release| (release.release_ns, release.lateness_ns)));
        all.sort_by_key(|(t_ns, _)| *t_ns);
        Series::new(&all, &missed::rows(&charged), window)
    });
    let served = Series::new(&served, &[], window);
    // Without missed releases both are the same.
    let all = all.as_ref().unwrap_or(&served);
    let sorted = served.sorted();
    let quantiles = served.quantiles();
    let corrected_quantiles = match (releases, charged.is_empty()) {
        (false, _) => Vec::new(),
        (true, true) => quantiles.clone(),
        (true, false) => all.quantiles(),
    };
    Distribution {
        phase: record.phase.clone(),
        probe: record.probe(),
        cpu: record.cpu,
        thread: record.thread,
        policy: record.policy_effective.clone(),
        n: sorted.len() as u64,
        excluded: (samples.len() - sorted.len()) as u64,
        missed: record.missed(),
        ring_lost: record.known_ring_lost(),
        duration_ns: duration_ns(record),
        early: sorted.partition_point(|&value| value < 0) as u64,
        min_ns: sorted.first().copied(),
        observed_max_ns: sorted.last().copied(),
        sum_ns: all.sorted().iter().fold(0i64, |sum, &value| sum.saturating_add(value)),
        observed_max_at_ns: worst.map(|sample| sample.t_ns),
        dependence: all.dependence(),
        quantiles,
        corrected_quantiles,
        corrected_max_ns: releases.then(|| all.sorted().last().copied()).flatten(),
        exceedances: all.exceedances(
            &thresholds(record.noise().map(|noise| noise.threshold_ns), limits_ns),
            duration_ns(record),
        ),
        stolen: record.noise().map(|noise| stolen(record, noise.threshold_ns, sorted)),
        histogram: histogram(sorted),
        by_us: by_us(sorted),
        timeline: timeline(&counted, record.t0_ns, record.t1_ns),
    }
}

/// Length of the measurement: the window, or for noise the time the loop was running.
pub fn duration_ns(record: &ProbeRecord) -> u64 {
    match record.noise() {
        Some(noise) if noise.spin_ns > 0 => noise.spin_ns,
        Some(_) => stats::stretches::Stretches::new(record.slices()).length_ns(),
        None => record.t1_ns.saturating_sub(record.t0_ns).max(0) as u64,
    }
}

/// The thresholds to report, ascending. Below the shortest stored gap every share would be 1.
fn thresholds(stored_from_ns: Option<u64>, limits_ns: &[i64]) -> Vec<i64> {
    let from = stored_from_ns.map_or(i64::MIN, |ns| ns.min(i64::MAX as u64) as i64);
    let mut all: Vec<i64> =
        THRESHOLDS_NS.iter().chain(limits_ns).copied().filter(|&threshold| threshold >= from).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn stolen(record: &ProbeRecord, threshold_ns: u64, sorted: &[i64]) -> Stolen {
    let total_ns = sorted.iter().fold(0u64, |sum, &gap| sum.saturating_add(gap.max(0) as u64));
    let ran = duration_ns(record);
    let share = if ran == 0 { 0.0 } else { total_ns as f64 / ran as f64 };
    Stolen { total_ns, share, threshold_ns, unexplained: None }
}

/// Buckets without a hole from the first that holds a sample to the last. Everything below 1 ns,
/// early samples above all, is in one bucket that starts at the minimum.
fn histogram(sorted: &[i64]) -> Vec<Bucket> {
    let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let mut edges = edges();
    if least < 1 {
        edges.insert(0, least);
    }
    let first = edges.partition_point(|&edge| edge <= least).saturating_sub(1);
    let mut buckets = Vec::new();
    for pair in edges[first..].windows(2) {
        let (low_ns, high_ns) = (pair[0], pair[1]);
        if low_ns > most {
            break;
        }
        let below = |edge: i64| sorted.partition_point(|&value| value < edge);
        buckets.push(Bucket { low_ns, high_ns, count: (below(high_ns) - below(low_ns)) as i64 });
    }
    buckets
}

/// 1 ns to 10^18 ns (32 years) in even steps of the logarithm, rounded to whole ns, equal ones
/// once.
fn edges() -> Vec<i64> {
    let mut edges: Vec<i64> = (0..=18 * BUCKETS_A_DECADE)
        .map(|step| 10f64.powf(f64::from(step) / f64::from(BUCKETS_A_DECADE)).round() as i64)
        .collect();
    edges.dedup();
    edges.push(i64::MAX);
    edges
}

fn timeline(counted: &[&Sample], t0_ns: i64, t1_ns: i64) -> Vec<Maximum> {
    let length = t1_ns.saturating_sub(t0_ns);
    if counted.is_empty() || length <= 0 {
        return Vec::new();
    }
    let slots = SLOTS.min(counted.len() as u64).min(length as u64) as i64;
    let start = |slot: i64| t0_ns + (i128::from(length) * i128::from(slot) / i128::from(slots)) as i64;
    let mut line: Vec<Maximum> =
        (0..slots).map(|slot| Maximum { t_ns: start(slot), max_ns: 0, n: 0 }).collect();
    for sample in counted {
        let since = sample.t_ns.saturating_sub(t0_ns).clamp(0, length - 1);
        let slot = (i128::from(since) * i128::from(slots) / i128::from(length)) as usize;
        let Maximum { max_ns, n, .. } = &mut line[slot];
        *max_ns = if *n == 0 { sample.value_ns } else { sample.value_ns.max(*max_ns) };
        *n += 1;
    }
    line
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use crate::testing::{record, releases};
    use model::probe::{NoiseDetail, ProbeDetail};
    use proptest::prelude::*;

    fn samples(values: &[i64]) -> Vec<Sample> {
        let at = |(i, &value_ns): (usize, &i64)| Sample {
            t_ns: i as i64 * 1000,
            value_ns,
            seq: i as u64,
            missed: 0,
            flags: 0,
        };
        values.iter().enumerate().map(at).collect()
    }

    #[test]
    fn a_quantile_needs_ten_above() {
        // Each of 1 to 1000 once, without order.
        let values: Vec<i64> = (1..=1000).map(|k| k * 617 % 1009).filter(|value| *value <= 1000).collect();
        let values: Vec<i64> = (1..=1000).filter(|k| !values.contains(k)).chain(values.clone()).collect();
        let stats = distribution(&record(ProbeKind::Wakeup), &samples(&values));
        let quantiles: Vec<_> = stats.quantiles.iter().map(|q| (q.p, q.value_ns)).collect();
        let (none, some) = (None, Some);
        assert_eq!(
            quantiles,
            [
                (0.5, some(500)),
                (0.9, some(900)),
                (0.99, some(990)),
                (0.999, none),
                (0.9999, none),
                (0.99999, none)
            ]
        );
        let less = distribution(&record(ProbeKind::Wakeup), &samples(&values[..999]));
        assert!(less.quantiles[2].value_ns.is_none() && less.quantiles[2].effective_above == Some(9.0));
    }

    #[test]
    fn excluded_samples_stay_out_of_every_figure() {
        let mut all = samples(&[9_000_000, 10, 20]);
        all[0].flags = model::sample::flag::FIRST;
        let stats = distribution(&record(ProbeKind::Wakeup), &all);
        assert_eq!((stats.n, stats.excluded, stats.observed_max_ns), (2, 1, Some(20)));
        assert_eq!(stats.timeline.iter().map(|slot| slot.n).sum::<i64>(), 2);
    }

    #[test]
    fn missed_releases_move_the_corrected_quantiles_only() {
        // Sixty stalls: one would be one event, of which no quantile is estimable.
        let mut all = samples(&vec![10; 6_000]);
        for stall in all.chunks_exact_mut(100) {
            stall[40].value_ns = 50_500;
            stall[41].missed = 50;
        }
        let stats = distribution(
            &ProbeRecord { detail: releases(1000, 0, 3_000), ..record(ProbeKind::Wakeup) },
            &all,
        );
        assert_eq!(stats.quantiles[1].value_ns, Some(10));
        assert_eq!(stats.corrected_quantiles[0].value_ns, Some(10));
        assert!(stats.corrected_quantiles[1].value_ns.unwrap() > 30_000, "{:?}", stats.corrected_quantiles);
        assert_eq!(stats.corrected_max_ns, stats.observed_max_ns);
    }

    #[test]
    fn no_samples_say_nothing_and_bound_nothing() {
        let stats = distribution(&record(ProbeKind::Noise), &[]);
        assert_eq!((stats.n, stats.min_ns, stats.observed_max_ns), (0, None, None));
        assert!(stats.exceedances.iter().all(|e| e.count == 0 && e.upper_share == 1.0));
        assert_eq!(stats.stolen.unwrap().total_ns, 0);
        assert!(stats.histogram.is_empty() && stats.timeline.is_empty());
    }

    #[test]
    fn zero_exceedances_are_bounded_by_three_over_n() {
        let stats = distribution(&record(ProbeKind::Wakeup), &samples(&vec![500; 3000]));
        assert!(stats.exceedances.iter().all(|e| e.count == 0 && (e.upper_share - 0.001).abs() < 1e-12));
    }

    #[test]
    fn noise_is_a_share_of_the_time_the_loop_ran() {
        let detail = NoiseDetail { spin_ns: 1_000_000, threshold_ns: 5000, ..NoiseDetail::default() };
        let noise = ProbeRecord { detail: ProbeDetail::Noise(detail), ..record(ProbeKind::Noise) };
        let stats = distribution(&noise, &samples(&[6_000, 14_000]));
        assert_eq!(stats.duration_ns, 1_000_000);
        assert!((stats.stolen.clone().unwrap().share - 0.02).abs() < 1e-12);
        assert_eq!(stats.exceedances[0].threshold_ns, 5000);
        assert!(stats.corrected_quantiles.is_empty() && stats.corrected_max_ns.is_none());
    }

    proptest! {
        #[test]
        fn histogram_and_timeline_lose_no_sample(values in proptest::collection::vec(-2000i64..10_000_000_000, 1..300)) {
            let stats = distribution(&record(ProbeKind::Wakeup), &samples(&values));
            prop_assert_eq!(stats.histogram.iter().map(|b| b.count).sum::<i64>(), values.len() as i64);
            for Bucket { low_ns: low, high_ns: high, count } in &stats.histogram {
                prop_assert_eq!(values.iter().filter(|v| (low..high).contains(v)).count() as i64, *count);
            }
            prop_assert!(stats.histogram.windows(2).all(|pair| pair[0].high_ns == pair[1].low_ns));
            prop_assert_eq!(stats.timeline.iter().map(|s| s.n).sum::<i64>(), values.len() as i64);
            prop_assert!(stats.timeline.len() <= 400);
            let max = stats.timeline.iter().filter(|s| s.n > 0).map(|s| s.max_ns).max();
            prop_assert_eq!(max, stats.observed_max_ns);
        }

        #[test]
        fn a_quantile_has_the_share_below_it_that_it_says(values in proptest::collection::vec(any::<i32>(), 1..400)) {
            let values: Vec<i64> = values.into_iter().map(i64::from).collect();
            for q in distribution(&record(ProbeKind::Wakeup), &samples(&values)).quantiles {
                let Some(value) = q.value_ns else { continue };
                let at_most = values.iter().filter(|v| **v <= value).count() as f64;
                let below = values.iter().filter(|v| **v < value).count() as f64;
                let n = values.len() as f64;
                prop_assert!(at_most >= q.p * n - 1e-6 && below < q.p * n + 1e-6);
            }
        }
    }
}
