//! What the jobs of a periodic probe say: execution and response times, counters, wake-up drift, periodic peaks.
//!
//! The questions are those of the ERTS 2022 paper: how long does a job take and how much of that was it not on its CPU (Fig. 8), what
//! did it cost in cache refills (Figs. 5, 9), does the date of its wake-ups drift (Figs. 10 to 12), and do disturbances come back with a
//! period (Figs. 6, 7). The paper read the last two off its charts; here they are estimated.

use crate::peaks::{Peaks, peaks};
use model::Sample;
use serde::Serialize;

/// Everything that one file of jobs says. Warm-up is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Jobs {
    /// Jobs that count.
    pub n: u64,
    /// Clock from before the job to behind it, ns.
    pub execution_ns: Figure,
    /// CPU time of the thread in between, ns.
    pub cpu_ns: Figure,
    /// The one minus the other (Fig. 8), ns: what the job was kept from its CPU, and the cost of the stamps between the two clocks.
    pub off_cpu_ns: Figure,
    /// From the intended release to the end, ns.
    pub response_ns: Figure,
    /// From the intended release to the wake-up, ns.
    pub wake_up_ns: Figure,
    /// One figure a counter, by the name of its column without `counter_`.
    pub counters: Vec<(String, Figure)>,
    /// Jobs that ended on another CPU than the one before.
    pub moved: u64,
    /// How wake-ups move against the grid of nominal periods.
    pub drift: Option<Drift>,
    /// Peaks of the execution time that come back with a period.
    pub peaks: Peaks,
}

/// Least, mean, most and standard deviation (of the sample, n - 1).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Figure {
    /// Values.
    pub n: u64,
    /// Values that were refused: multiplexed or unreadable.
    pub refused: u64,
    /// Least; none without values.
    pub min: Option<i64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Largest that was observed.
    pub observed_max: Option<i64>,
    /// Standard deviation; none below two values.
    pub std: Option<f64>,
}

/// Wake-up dates against the grid `first + k · period` in CLOCK_MONOTONIC (Fig. 10), and their first difference (Figs. 11, 12).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Drift {
    /// Slope, µs a minute: the median of the slopes between jobs half the window apart, which peaks do not move (Theil 1950, Sen 1968;
    /// the pairs are those of the "incomplete" estimator).
    pub us_per_min: f64,
    /// Half of the slopes lie within this distance of the median, µs a minute: less than it is no drift.
    pub spread_us_per_min: f64,
    /// The last wake-up date minus where the grid puts it, ns.
    pub end_ns: i64,
    /// Differences of successive wake-up dates minus the period, ns, where no release between them was missed.
    pub difference_ns: Figure,
    /// Their correlation with the next one. -1/2: every delay is made up for by the next wake-up, as with releases on a fixed grid; 0:
    /// delays add up.
    pub next_correlation: Option<f64>,
}

impl Figure {
    /// Of values; `refused` are those that are not among them.
    pub fn of(values: &[i64], refused: u64) -> Self {
        let n = values.len() as f64;
        // Two passes: values are large and their spread is small.
        let mean = values.iter().map(|&value| value as f64).sum::<f64>() / n;
        let squares: f64 = values.iter().map(|&value| (value as f64 - mean).powi(2)).sum();
        Self {
            n: values.len() as u64,
            refused,
            min: values.iter().min().copied(),
            mean: (!values.is_empty()).then_some(mean),
            observed_max: values.iter().max().copied(),
            std: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
        }
    }
}

/// One job that counts.
struct Row {
    number: i64,
    sample: Sample,
    wake_ns: i64,
    start_ns: i64,
    end_ns: i64,
    cpu_ns: i64,
    cpu: i64,
}

/// What a refused counter value is stored as.
const REFUSED: i64 = -1;
const COUNTER: &str = "counter_";

/// The samples of one file with its columns (`wake_ns`, `start_ns`, `end_ns`, `cpu_ns`, `cpu`, `counter_*`). None where a column is
/// missing or short: the file is not of a periodic probe.
pub fn jobs(samples: &[Sample], columns: &[(String, Vec<i64>)], period_ns: u64) -> Option<Jobs> {
    let column = |name: &str| {
        let (_, values) = columns.iter().find(|(found, _)| found == name)?;
        (values.len() == samples.len()).then_some(values)
    };
    let (wake, start, end) = (column("wake_ns")?, column("start_ns")?, column("end_ns")?);
    let (cpu_time, cpu) = (column("cpu_ns")?, column("cpu")?);
    let mut passed = 0i64;
    let mut rows = Vec::with_capacity(samples.len());
    for (index, sample) in samples.iter().enumerate() {
        passed = passed.saturating_add(i64::from(sample.missed));
        if sample.counts() {
            rows.push(Row {
                number: passed.saturating_add(sample.seq.min(i64::MAX as u64) as i64),
                sample: *sample,
                wake_ns: wake[index],
                start_ns: start[index],
                end_ns: end[index],
                cpu_ns: cpu_time[index],
                cpu: cpu[index],
            });
        }
    }
    let figure = |value: fn(&Row) -> i64| Figure::of(&rows.iter().map(value).collect::<Vec<_>>(), 0);
    let counters = columns.iter().filter_map(|(name, values)| {
        let name = name.strip_prefix(COUNTER)?;
        let counted = samples.iter().zip(values).filter(|(sample, _)| sample.counts());
        let (good, refused): (Vec<i64>, Vec<i64>) =
            counted.map(|(_, value)| *value).partition(|value| *value != REFUSED);
        Some((name.to_owned(), Figure::of(&good, refused.len() as u64)))
    });
    let execution = |row: &Row| row.end_ns.saturating_sub(row.start_ns);
    let series: Vec<(i64, i64)> = rows.iter().map(|row| (row.start_ns, execution(row))).collect();
    Some(Jobs {
        n: rows.len() as u64,
        execution_ns: figure(|row| row.end_ns.saturating_sub(row.start_ns)),
        cpu_ns: figure(|row| row.cpu_ns),
        off_cpu_ns: figure(|row| row.end_ns.saturating_sub(row.start_ns).saturating_sub(row.cpu_ns)),
        response_ns: figure(|row| row.sample.value_ns),
        wake_up_ns: figure(|row| row.wake_ns.saturating_sub(row.sample.t_ns)),
        counters: counters.collect(),
        moved: rows.windows(2).filter(|pair| pair[0].cpu != pair[1].cpu).count() as u64,
        drift: drift(&rows.iter().map(|row| (row.number, row.wake_ns)).collect::<Vec<_>>(), period_ns),
        peaks: peaks(&series, period_ns),
    })
}

/// Drift of wake-up dates: number of the release and date, ascending. None below four.
pub fn drift(wake_ups: &[(i64, i64)], period_ns: u64) -> Option<Drift> {
    let period = period_ns.clamp(1, i64::MAX as u64) as i64;
    let (&(first_number, first_ns), &(last_number, last_ns)) = (wake_ups.first()?, wake_ups.last()?);
    if wake_ups.len() < 4 {
        return None;
    }
    let off = |number: i64, ns: i64| {
        let grid = i128::from(number.saturating_sub(first_number)) * i128::from(period);
        (i128::from(ns) - i128::from(first_ns) - grid) as f64
    };
    let half = wake_ups.len() / 2;
    let slope = |(&(n0, t0), &(n1, t1)): (&(i64, i64), &(i64, i64))| {
        let minutes = (n1 - n0).max(1) as f64 * period as f64 / 60e9;
        (off(n1, t1) - off(n0, t0)) / 1e3 / minutes
    };
    let mut slopes: Vec<f64> = wake_ups.iter().zip(&wake_ups[half..]).map(slope).collect();
    let us_per_min = median(&mut slopes);
    let mut distances: Vec<f64> = slopes.iter().map(|slope| (slope - us_per_min).abs()).collect();
    let steps = wake_ups.windows(2).filter(|pair| pair[1].0 == pair[0].0 + 1);
    let differences: Vec<i64> =
        steps.map(|pair| pair[1].1.saturating_sub(pair[0].1).saturating_sub(period)).collect();
    Some(Drift {
        us_per_min,
        spread_us_per_min: median(&mut distances),
        end_ns: off(last_number, last_ns) as i64,
        difference_ns: Figure::of(&differences, 0),
        next_correlation: next_correlation(&differences),
    })
}

/// Autocorrelation at lag one; none where nothing varies.
fn next_correlation(values: &[i64]) -> Option<f64> {
    let mean = values.iter().map(|&value| value as f64).sum::<f64>() / values.len() as f64;
    let from_mean = |value: i64| value as f64 - mean;
    let all: f64 = values.iter().map(|&value| from_mean(value).powi(2)).sum();
    let next: f64 = values.windows(2).map(|pair| from_mean(pair[0]) * from_mean(pair[1])).sum();
    (values.len() > 8 && all > 0.0).then(|| next / all)
}

/// The median; 0 without values.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::sample::flag;
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

        #[test]
        fn figures_lie_between_their_extremes(values in prop::collection::vec(-1_000_000i64..1_000_000, 2..50)) {
            let figure = Figure::of(&values, 3);
            let (min, max) = (figure.min.unwrap() as f64, figure.observed_max.unwrap() as f64);
            let (mean, std) = (figure.mean.unwrap(), figure.std.unwrap());
            prop_assert!(min <= mean + 1e-6 && mean <= max + 1e-6);
            // Popoviciu's inequality, for n - 1.
            let n = values.len() as f64;
            prop_assert!(std <= (max - min) / 2.0 * (n / (n - 1.0)).sqrt() + 1e-6);
        }
    }

    #[test]
    fn warm_up_and_refused_values_stay_out() {
        let sample =
            |seq: u64, flags| Sample { t_ns: seq as i64 * 1000, value_ns: 600, seq, missed: 0, flags };
        let samples = [sample(0, flag::FIRST), sample(1, 0), sample(2, 0), sample(3, 0)];
        let column = |name: &str, values: [i64; 4]| (name.to_owned(), values.to_vec());
        let columns = [
            column("wake_ns", [0, 1_010, 2_020, 3_030]),
            column("start_ns", [0, 1_100, 2_100, 3_100]),
            column("end_ns", [9_000, 1_600, 2_600, 3_600]),
            column("cpu_ns", [1, 400, 450, 500]),
            column("cpu", [0, 1, 1, 2]),
            column("counter_faults", [99, 3, REFUSED, 5]),
        ];
        let jobs = jobs(&samples, &columns, 1000).unwrap();
        assert_eq!((jobs.n, jobs.moved), (3, 1));
        assert_eq!(jobs.execution_ns.observed_max, Some(500));
        assert_eq!((jobs.off_cpu_ns.min, jobs.off_cpu_ns.observed_max), (Some(0), Some(100)));
        assert_eq!((jobs.wake_up_ns.min, jobs.wake_up_ns.observed_max), (Some(10), Some(30)));
        let (name, faults) = &jobs.counters[0];
        assert_eq!((name.as_str(), faults.n, faults.refused, faults.mean), ("faults", 2, 1, Some(4.0)));
        assert_eq!(super::jobs(&samples, &columns[1..], 1000), None);
        assert!(
            super::jobs(&[], &columns.map(|(name, _)| (name, Vec::new())), 1000).unwrap().drift.is_none()
        );
    }
}
