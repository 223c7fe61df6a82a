//! The ratio of two groups: at least so much, or between two bounds.
//!
//! One-sided tests against the bounds themselves (for two: Schuirmann, Journal of Pharmacokinetics
//! and Biopharmaceutics 15 (1987)), so that "the same" is shown and never follows from too few
//! repetitions.

use super::order::{Pair, decided, sides};
use super::{ALPHA, Decision, Finding, Quantity};

/// Two groups as positive numbers: drifts that are all negative are compared by their sizes.
/// Numbers of both signs have no ratio.
struct Sizes(Vec<[Vec<f64>; 2]>);

impl Sizes {
    fn of(pairs: &[Pair<'_>]) -> Option<Self> {
        let all = || pairs.iter().flat_map(|pair| pair.first.iter().chain(pair.second));
        let negative = all().any(|value| *value < 0.0);
        if negative && all().any(|value| *value > 0.0) {
            return None;
        }
        let sizes = |group: &[f64]| group.iter().map(|value| value.abs()).collect();
        Some(Self(pairs.iter().map(|pair| [sizes(pair.first), sizes(pair.second)]).collect()))
    }

    fn pairs(&self) -> Vec<Pair<'_>> {
        self.0.iter().map(|[first, second]| Pair { first, second }).collect()
    }
}

/// Whether the first group is at least `times` the second.
pub fn ratio_at_least(quantity: Quantity, pairs: &[Pair<'_>], times: f64) -> Decision {
    let Some(sizes) = Sizes::of(pairs) else { return Decision::NOTHING };
    let known = |first: f64, second: f64| first >= times * second;
    decided(quantity, &sizes.pairs(), known, |pairs| {
        let sides = sides(quantity, pairs, times);
        Decision::tested(sides.more, sides.less)
    })
}

/// Whether the first group is at least `low` and at most `high` times the second.
pub fn ratio_between(quantity: Quantity, pairs: &[Pair<'_>], [low, high]: [f64; 2]) -> Decision {
    let Some(sizes) = Sizes::of(pairs) else { return Decision::NOTHING };
    let known = |first: f64, second: f64| (low * second..=high * second).contains(&first);
    decided(quantity, &sizes.pairs(), known, |pairs| {
        let below = sides(quantity, pairs, low);
        let above = sides(quantity, pairs, high);
        let outside = below.more.max(above.less);
        let inside = below.less.min(above.more);
        // Both must be shown, so neither needs a share of the level.
        let finding = if outside <= ALPHA {
            Finding::Holds
        } else if inside <= ALPHA / 2.0 {
            Finding::Fails
        } else {
            Finding::Undecided
        };
        Decision { finding, p_false: Some(outside), p_true: Some(inside) }
    })
}
