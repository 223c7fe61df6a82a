//! Releases that are fitted together, and their model for a given period.

use super::{Fit, PeriodicModel};
use crate::hull::Side;
use crate::window::Window;

/// A release and its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Release {
    pub(super) index: i64,
    earliest_ns: i64,
    latest_ns: i64,
}

impl Release {
    pub(super) fn new(index: i64, window: Window) -> Self {
        Self { index, earliest_ns: window.earliest_ns, latest_ns: window.latest_ns }
    }

    /// The ends that set the offset, and the jitter.
    fn ends(&self, fit: Fit) -> [i64; 2] {
        match fit {
            Fit::Certain => [self.earliest_ns, self.latest_ns],
            Fit::Possible => [self.latest_ns, self.earliest_ns],
        }
    }
}

/// What the models of a batch need of its releases.
pub(super) struct Hull {
    below: Side,
    above: Side,
}

impl Hull {
    pub(super) fn of(batch: &[Release], fit: Fit) -> Self {
        let (mut below, mut above) = (Side::below(), Side::above());
        for release in batch {
            let [first, last] = release.ends(fit);
            below.push(release.index, first);
            above.push(release.index, last);
        }
        Self { below, above }
    }

    /// The model of this period.
    pub(super) fn model(&self, period_ns: i64) -> PeriodicModel {
        let offset_ns = self.below.extreme_ns(period_ns);
        let jitter_ns = self.above.extreme_ns(period_ns).saturating_sub(offset_ns);
        PeriodicModel { period_ns, offset_ns, jitter_ns }
    }

    /// A model of other releases for these, too.
    pub(super) fn widened(&self, model: PeriodicModel) -> PeriodicModel {
        let here = self.model(model.period_ns);
        let offset_ns = model.offset_ns.min(here.offset_ns);
        let end_ns = |one: PeriodicModel| one.offset_ns.saturating_add(one.jitter_ns);
        let jitter_ns = end_ns(model).max(end_ns(here)).saturating_sub(offset_ns);
        PeriodicModel { offset_ns, jitter_ns, ..model }
    }
}

/// The model whose jitter is least, by bisection between half and twice the mean interval.
pub(super) fn least_jitter(batch: &[Release], fit: Fit) -> PeriodicModel {
    let batch = without_outer_outliers(batch);
    let hull = Hull::of(batch, fit);
    let mean_ns = mean_interval_ns(batch);
    let (mut low, mut high) = ((mean_ns * 0.5).floor() as i64, (mean_ns * 2.0).ceil() as i64);
    let mut best = None;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let [shorter, longer] = [middle, middle + 1].map(|period_ns| hull.model(period_ns));
        if shorter.jitter_ns < longer.jitter_ns {
            (high, best) = (middle, Some(shorter));
        } else {
            (low, best) = (middle, Some(longer));
        }
    }
    best.unwrap_or_else(|| hull.model(mean_ns.round_ties_even() as i64))
}

fn intervals(batch: &[Release]) -> impl Iterator<Item = i64> {
    batch.windows(2).map(|pair| pair[1].latest_ns.saturating_sub(pair[0].latest_ns))
}

fn mean_interval_ns(batch: &[Release]) -> f64 {
    if batch.len() < 2 {
        return 0.0;
    }
    let total: i128 = intervals(batch).map(i128::from).sum();
    total as f64 / (batch.len() - 1) as f64
}

/// Without the releases before the first usual interval, and those behind the last. An interval is
/// unusual where it differs from the median by more than three times the median difference (Hampel's
/// identifier, unscaled).
fn without_outer_outliers(batch: &[Release]) -> &[Release] {
    let mut sorted: Vec<i64> = intervals(batch).collect();
    if sorted.is_empty() {
        return batch;
    }
    let median_2 = twice_the_median(&mut sorted);
    let difference_2 = |interval: i64| (2 * i128::from(interval) - median_2).abs();
    let mut differences: Vec<i128> = sorted.iter().map(|one| difference_2(*one)).collect();
    let usual_4 = twice_the_median(&mut differences);
    let is_usual = |interval: i64| usual_4 == 0 || 2 * difference_2(interval) <= 3 * usual_4;
    let intervals: Vec<i64> = intervals(batch).collect();
    let first = intervals.iter().position(|one| is_usual(*one)).unwrap_or(0);
    let last = intervals.iter().rposition(|one| is_usual(*one)).unwrap_or(intervals.len() - 1);
    &batch[first..last + 2]
}

/// Sorts in part. Twice, so that it is an integer where it lies between two.
fn twice_the_median<T: Copy + Ord + Into<i128>>(values: &mut [T]) -> i128 {
    let half = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, middle, _) = values.select_nth_unstable(half);
    let middle = (*middle).into();
    if even { middle + below.iter().max().map_or(middle, |one| (*one).into()) } else { 2 * middle }
}
