//! Periods that compete.

use super::batch::{Hull, Release, least_jitter};
use super::{Fit, PeriodicModel};
use std::collections::BTreeSet;

/// Periods around that with the least jitter.
const SPACED: i64 = 50;
/// How far they reach to either side, in jitters.
const DISPERSION: f64 = 3.0;
/// Added to a rounded period, in its last decimal.
const ADJUSTMENTS: [i64; 5] = [-2, -1, 0, 1, 2];
/// A candidate is dropped above this multiple of the least jitter.
const DROPPED: i64 = 5;

/// The candidates after some batches, by period.
#[derive(Debug, Clone)]
pub(super) struct Candidates {
    models: Vec<PeriodicModel>,
    batches: i64,
    /// Of the periods with the least jitter of the batches, ns.
    mean_ns: f64,
}

impl Candidates {
    /// With one more batch; `None` where no period above 0 is there.
    pub(super) fn after(before: Option<Self>, batch: &[Release], fit: Fit) -> Option<Self> {
        let (best, hull) = (least_jitter(batch, fit), Hull::of(batch, fit));
        match before {
            Some(before) => Some(before.with(best, batch[0].index, &hull, fit)),
            None => Self::first(best, &hull),
        }
    }

    fn first(best: PeriodicModel, hull: &Hull) -> Option<Self> {
        let periods: BTreeSet<i64> = spaced(best).chain(rounded(best.period_ns)).collect();
        let models: Vec<_> = periods.into_iter().map(|period_ns| hull.model(period_ns)).collect();
        let mean_ns = best.period_ns as f64;
        (!models.is_empty()).then_some(Self { models, batches: 1, mean_ns })
    }

    /// `done`: the number of the batch's first release.
    fn with(self, best: PeriodicModel, done: i64, hull: &Hull, fit: Fit) -> Self {
        let batches = self.batches + 1;
        let mean_ns = self.mean_ns + (best.period_ns as f64 - self.mean_ns) / batches as f64;
        let of_interest = BTreeSet::from([mean_ns.round_ties_even() as i64, best.period_ns]);
        let derived = of_interest.into_iter().filter_map(|period_ns| self.derived(period_ns, done));
        let updated: BTreeSet<PeriodicModel> =
            self.models.iter().copied().chain(derived).map(|one| hull.widened(one)).collect();
        let counted = |one: &&PeriodicModel| fit == Fit::Certain || one.jitter_ns > 0;
        let least = updated.iter().filter(counted).map(|one| one.jitter_ns).min();
        let stays = |one: &PeriodicModel| {
            one.jitter_ns <= 0 || least.is_none_or(|least| one.jitter_ns <= least.saturating_mul(DROPPED))
        };
        let mut models: Vec<PeriodicModel> = updated.into_iter().filter(stays).collect();
        while models.len() > self.models.len() {
            let largest = models.iter().map(|one| one.jitter_ns).max();
            if let Some(worst) = models.iter().position(|one| Some(one.jitter_ns) == largest) {
                models.remove(worst);
            }
        }
        Self { models, batches, mean_ns }
    }

    /// A model of another period for the `done` releases before, from the nearest that there is.
    fn derived(&self, period_ns: i64, done: i64) -> Option<PeriodicModel> {
        let near = self.models.iter().min_by_key(|one| one.period_ns.abs_diff(period_ns))?;
        let drift_ns = done.saturating_mul(near.period_ns - period_ns);
        Some(if near.period_ns < period_ns {
            let offset_ns = near.offset_ns.saturating_add(drift_ns);
            let end_ns = near.offset_ns.saturating_add(near.jitter_ns);
            PeriodicModel { period_ns, offset_ns, jitter_ns: end_ns.saturating_sub(offset_ns) }
        } else {
            PeriodicModel { period_ns, jitter_ns: near.jitter_ns.saturating_add(drift_ns), ..*near }
        })
    }

    /// The roundest period among those with little jitter.
    pub(super) fn best(&self, fit: Fit) -> Option<PeriodicModel> {
        let least = self.models.iter().map(|one| one.jitter_ns).min()?;
        let acceptable = |one: &&PeriodicModel| {
            one.jitter_ns <= 0 || 4 * i128::from(one.jitter_ns) <= 5 * i128::from(least)
        };
        let rank = |one: &PeriodicModel| (trailing_zeros(one.period_ns), -one.jitter_ns);
        // Of equals the first, which has the smaller period; `max_by_key` would take the last.
        let best = *self.models.iter().filter(acceptable).rev().max_by_key(|one| rank(one))?;
        let jitter_ns = if fit == Fit::Possible { best.jitter_ns.max(0) } else { best.jitter_ns };
        Some(PeriodicModel { jitter_ns, ..best })
    }
}

fn spaced(best: PeriodicModel) -> impl Iterator<Item = i64> {
    let reach = DISPERSION * best.jitter_ns as f64;
    let low = best.period_ns as f64 - reach;
    let around = (0..SPACED - 1).map(move |at| {
        let period = low + 2.0 * reach * at as f64 / (SPACED - 2) as f64;
        period.round_ties_even() as i64
    });
    std::iter::once(best.period_ns).chain(around).filter(|period_ns| *period_ns > 0)
}

/// The period at ever fewer decimals. What would be the same at the next is left to that one.
fn rounded(period_ns: i64) -> impl Iterator<Item = i64> {
    let granularities = std::iter::successors(Some(10_i64), |one| one.checked_mul(10));
    granularities.take_while(move |one| *one < period_ns).flat_map(move |granularity| {
        let is_last = granularity.checked_mul(10).is_none_or(|next| next >= period_ns);
        ADJUSTMENTS.into_iter().filter_map(move |adjustment| {
            let candidate = period_ns / granularity + adjustment;
            (candidate > 0 && (is_last || candidate % 10 != 0)).then_some(candidate * granularity)
        })
    })
}

fn trailing_zeros(mut n: i64) -> u32 {
    let mut count = 0;
    while n != 0 && n % 10 == 0 {
        (count, n) = (count + 1, n / 10);
    }
    count
}
