//! Two groups: has the first less than some times the second?
//!
//! Repetitions that differ in something else besides, such as a load, form a pair of groups for
//! each of its levels; labels are exchanged within a pair only (van Elteren, Bulletin of the
//! International Statistical Institute 37 (1960)).

use super::exchange::Exchanged;
use super::{Decision, Quantity, constant};
use crate::rates::{Rate, one_sided};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Counts of repetitions that spread more than independent events do, at this level, are no longer
/// judged as such.
const SPREAD: f64 = 0.05;

/// Repetitions of two groups that are alike in everything else.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// Of the first group.
    pub first: &'a [f64],
    /// Of the second.
    pub second: &'a [f64],
}

/// The probabilities of what was seen, or of more of it, in both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sides {
    /// Were the first group not less.
    pub(super) less: f64,
    /// Were it not more.
    pub(super) more: f64,
}

/// Whether the first group has less than the second; a statement that says `or as much` fails only
/// where it has more.
pub fn order(quantity: Quantity, pairs: &[Pair<'_>], or_as_much: bool) -> Decision {
    let step = |first: f64, second: f64| if or_as_much { first <= second } else { first < second };
    decided(quantity, pairs, step, |pairs| {
        let Sides { less, more } = sides(quantity, pairs, 1.0);
        Decision::tested(less, more)
    })
}

/// By `known` where chance has no part, for every pair; by `tested` otherwise. Pairs of which one
/// side is missing are left out.
pub(super) fn decided(
    quantity: Quantity,
    pairs: &[Pair<'_>],
    known: impl Fn(f64, f64) -> bool,
    tested: impl Fn(&[Pair<'_>]) -> Decision,
) -> Decision {
    let whole = |pair: &&Pair<'_>| !pair.first.is_empty() && !pair.second.is_empty();
    let pairs: Vec<Pair<'_>> = pairs.iter().filter(whole).copied().collect();
    if pairs.is_empty() {
        return Decision::NOTHING;
    }
    let alike = |pair: &Pair<'_>| constant(pair.first) && constant(pair.second);
    if quantity == Quantity::Constant && pairs.iter().all(alike) {
        return Decision::known(pairs.iter().all(|pair| known(pair.first[0], pair.second[0])));
    }
    tested(&pairs)
}

/// The first group against `times` the second.
pub(super) fn sides(quantity: Quantity, pairs: &[Pair<'_>], times: f64) -> Sides {
    let exchanged = || {
        let all = pairs.iter().map(|pair| Exchanged::new(pair.first, pair.second, times));
        let all = all.reduce(Exchanged::with).unwrap_or_default();
        Sides { less: all.at_least(), more: all.at_most() }
    };
    let Some(events) = (quantity == Quantity::Count).then(|| events(pairs, times)).flatten() else {
        return exchanged();
    };
    if spreads(pairs) {
        // Repetitions that differ by more than chance are what may be exchanged, not events.
        let Sides { less, more } = exchanged();
        return Sides { less: events.less.max(less), more: events.more.max(more) };
    }
    events
}

/// By the exact test of two Poisson rates; none for numbers that count nothing, or where one group
/// has a larger share of the repetitions of some pairs than of others.
fn events(pairs: &[Pair<'_>], times: f64) -> Option<Sides> {
    let whole = |count: &f64| *count >= 0.0 && count.fract() == 0.0;
    let share = |pair: &Pair<'_>| pair.first.len() as f64 / pair.second.len() as f64;
    let even = pairs.iter().all(|pair| share(pair).total_cmp(&share(&pairs[0])).is_eq());
    let mut all = pairs.iter().flat_map(|pair| pair.first.iter().chain(pair.second));
    if !even || !all.all(whole) {
        return None;
    }
    let rate = |groups: Vec<&[f64]>| {
        let count = groups.iter().map(|group| group.iter().sum::<f64>()).sum::<f64>() as u64;
        let repetitions = groups.iter().map(|group| group.len()).sum::<usize>();
        Rate { count, seconds: repetitions as f64, dispersion: 1.0 }
    };
    let first = rate(pairs.iter().map(|pair| pair.first).collect());
    let second = rate(pairs.iter().map(|pair| pair.second).collect());
    let [less, more] = one_sided(&first, &second, times);
    Some(Sides { less, more })
}

/// Whether counts of one group spread more than independent events: Pearson's statistic, of all
/// groups together.
fn spreads(pairs: &[Pair<'_>]) -> bool {
    let (mut squares, mut freedom) = (0.0, 0usize);
    for group in pairs.iter().flat_map(|pair| [pair.first, pair.second]) {
        let mean = group.iter().sum::<f64>() / group.len() as f64;
        if mean > 0.0 {
            squares += group.iter().map(|count| (count - mean).powi(2) / mean).sum::<f64>();
            freedom += group.len() - 1;
        }
    }
    ChiSquared::new(freedom as f64).is_ok_and(|law| 1.0 - law.cdf(squares) < SPREAD)
}
