//! The ratio of two groups: at least so much, or between two bounds.
//!
//! One-sided tests against the bounds themselves (for two: Schuirmann, Journal of Pharmacokinetics
//! and Biopharmaceutics 15 (1987)), so that "the same" is shown and never follows from too few
//! repetitions.

use super::order::{Pair, decided, sides};
use super::{ALPHA, Decision, Finding, Quantity};

/// Whether the first group is at least `times` the second.
pub fn ratio_at_least(quantity: Quantity, pairs: &[Pair<'_>], times: f64) -> Decision {
    let known = |first: f64, second: f64| first >= times * second;
    decided(quantity, pairs, known, |pairs| {
        let sides = sides(quantity, pairs, times);
        Decision::tested(sides.more, sides.less)
    })
}

/// Whether the first group is at least `low` and at most `high` times the second.
pub fn ratio_between(quantity: Quantity, pairs: &[Pair<'_>], [low, high]: [f64; 2]) -> Decision {
    let known = |first: f64, second: f64| (low * second..=high * second).contains(&first);
    decided(quantity, pairs, known, |pairs| {
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
