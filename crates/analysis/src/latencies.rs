//! Wake-up latencies of a run as bounds of probabilities: P(L > x) for every x, at 95 % confidence.
//!
//! Clopper and Pearson's upper bound of the share of releases later than x (`bounds`), 3/n beyond
//! all that was observed, and of several windows the largest at each x. Swallowed releases are
//! charged with the lateness they had (`missed`), and a sample that was lost may have been later
//! than all others: it counts as such. The samples of one window are taken for independent draws;
//! that they are is an assumption.

use crate::Error;
use crate::missed;
use crate::samples::{belonging, unbiased};
use model::run::ProbeRecord;
use model::sample::ProbeKind;
use model::{Sample, samples_file};
use stats::bounds;
use std::collections::BTreeMap;
use std::path::Path;

/// Every step with at most this many releases above it is kept; further down, one per growth of the
/// count by a fiftieth.
const TAIL: u64 = 500;

/// The wake-ups of one window on one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowLatencies {
    /// Phase of the window.
    pub phase: String,
    /// The CPU.
    pub cpu: u32,
    /// Effective policy.
    pub policy: String,
    /// Latency, ns, and how many releases had it; ascending, early ones as 0.
    pub counts: Vec<(u64, u64)>,
    /// Samples lost to a full ring: their latencies are unknown.
    pub lost: u64,
}

/// Every window of a run in which wake-ups were measured.
pub fn latencies(run_dir: &Path) -> Result<Vec<WindowLatencies>, Error> {
    let run = model::run::stored::read_run(run_dir)?;
    let mut windows = Vec::new();
    for record in run.probes.iter().filter(|record| record.probe() == ProbeKind::Wakeup) {
        let path = run_dir.join(&record.file);
        let read =
            samples_file::read(&path).and_then(|(meta, samples)| belonging(record, &path, &meta, samples));
        windows.push(of_window(record, &unbiased(record, read?)));
    }
    Ok(windows)
}

fn of_window(record: &ProbeRecord, samples: &[Sample]) -> WindowLatencies {
    let mut counts = BTreeMap::new();
    let served = samples.iter().filter(|sample| sample.counts()).map(|sample| sample.value_ns);
    let charged = missed::of_probe(record, samples).into_iter().map(|release| release.lateness_ns);
    for value in served.chain(charged) {
        *counts.entry(value.max(0) as u64).or_default() += 1;
    }
    WindowLatencies {
        phase: record.phase.clone(),
        cpu: record.cpu,
        policy: record.policy_effective.name.clone(),
        counts: counts.into_iter().collect(),
        lost: record.ring_lost,
    }
}

/// The upper bound of a share of releases.
fn upper(count: u64, n: u64) -> f64 {
    bounds::share_upper(count as f64, n as f64)
}

impl WindowLatencies {
    /// Releases, those of unknown lateness included.
    pub fn n(&self) -> u64 {
        self.counts.iter().map(|one| one.1).sum::<u64>() + self.lost
    }

    /// Bounds of P(L > x): from x up to the next one.
    fn stairs(&self) -> Vec<(u64, f64)> {
        let n = self.n();
        let (mut later, mut previous) = (self.lost, None);
        let mut stairs = Vec::new();
        for &(latency_ns, count) in self.counts.iter().rev() {
            if previous.is_none_or(|previous| later <= TAIL || later > previous + previous / 50) {
                stairs.push((latency_ns, upper(later, n)));
                previous = Some(later);
            }
            later += count;
        }
        if stairs.last().is_none_or(|step| step.0 > 0) {
            stairs.push((0, upper(later, n)));
        }
        stairs.reverse();
        stairs
    }
}

/// Bounds of P(L > x) that hold in every window: `(x, bound)`, each up to the next x, the first x
/// 0, bounds never rising.
pub fn exceedance(windows: &[WindowLatencies]) -> Vec<(u64, f64)> {
    let stairs: Vec<Vec<(u64, f64)>> = windows.iter().map(WindowLatencies::stairs).collect();
    let mut steps: Vec<u64> = stairs.iter().flatten().map(|step| step.0).collect();
    steps.sort_unstable();
    steps.dedup();
    let at = |latency_ns: u64| {
        let of = |stairs: &Vec<(u64, f64)>| {
            let behind = stairs.partition_point(|step| step.0 <= latency_ns);
            behind.checked_sub(1).map_or(1.0, |at| stairs[at].1)
        };
        stairs.iter().map(of).fold(0.0, f64::max)
    };
    steps.into_iter().map(|latency_ns| (latency_ns, at(latency_ns))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    fn window(values: &[i64], lost: u64) -> WindowLatencies {
        let sample = |(at, value_ns): (usize, &i64)| Sample {
            t_ns: at as i64 * 1_000_000,
            value_ns: *value_ns,
            seq: at as u64,
            missed: 0,
            flags: 0,
        };
        let samples: Vec<Sample> = values.iter().enumerate().map(sample).collect();
        of_window(&ProbeRecord { ring_lost: lost, ..record(ProbeKind::Wakeup) }, &samples)
    }

    #[test]
    fn every_step_is_the_upper_bound_of_a_share() {
        let one = window(&[-5, 10, 10, 30], 0);
        assert_eq!((one.n(), one.counts.clone()), (4, vec![(0, 1), (10, 2), (30, 1)]));
        let steps = exceedance(&[one]);
        // Of four none is later than 30, one than 10, three than 0.
        // Clopper and Pearson, one-sided at 95 %: P(X <= 3) = 1 - p^4 and P(X <= 1) are 0.05 there;
        // none is bounded by 3/n.
        let expected = [(0, 0.95_f64.powf(0.25)), (10, 0.751_395), (30, 0.75)];
        assert_eq!(steps.len(), expected.len());
        for ((from, bound), (at, value)) in steps.iter().zip(expected) {
            assert!(*from == at && (bound - value).abs() < 1e-6, "{steps:?}");
        }
    }

    #[test]
    fn what_was_lost_may_have_been_the_latest_and_the_worst_window_counts() {
        let lost = exceedance(&[window(&[10; 100], 2)]);
        assert_eq!(lost.last(), Some(&(10, upper(2, 102))));
        let quiet = window(&vec![10; 10_000], 0);
        let loud = window(&[20; 1_000], 0);
        let steps = exceedance(&[quiet, loud]);
        assert_eq!(steps, [(0, 1.0), (10, 1.0), (20, 3.0 / 1_000.0)]);
        assert_eq!(exceedance(&[]), []);
    }

    #[test]
    fn thousands_of_steps_are_thinned_and_stay_bounds() {
        let values: Vec<i64> = (1..=20_000).collect();
        let one = window(&values, 0);
        let steps = exceedance(&[one]);
        assert!((500..1_000).contains(&steps.len()), "{}", steps.len());
        assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1));
        for latency in [0u64, 5, 777, 12_345, 19_990, 20_000] {
            let behind = steps.partition_point(|step| step.0 <= latency);
            let bound = steps[behind - 1].1;
            assert!(bound >= upper(20_000 - latency, 20_000) - 1e-12, "{latency}: {bound}");
        }
    }
}
