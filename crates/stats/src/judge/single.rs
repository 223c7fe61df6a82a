//! One group against a number, or against nothing.

use super::{Decision, Quantity, constant};
use crate::bounds::{beta_regularised, poisson_lower, poisson_upper};

/// Whether a group is at least a number: its mean for counts, its median otherwise.
pub fn at_least(quantity: Quantity, values: &[f64], number: f64) -> Decision {
    if values.is_empty() {
        return Decision::NOTHING;
    }
    if quantity == Quantity::Constant && constant(values) {
        return Decision::known(values[0] >= number);
    }
    let [as_little, as_much] = sides(quantity, values, number);
    Decision::tested(as_much, as_little)
}

/// Whether it is at most a number.
pub fn at_most(quantity: Quantity, values: &[f64], number: f64) -> Decision {
    if values.is_empty() {
        return Decision::NOTHING;
    }
    if quantity == Quantity::Constant && constant(values) {
        return Decision::known(values[0] <= number);
    }
    let [as_little, as_much] = sides(quantity, values, number);
    Decision::tested(as_little, as_much)
}

/// Were the number the middle: the probability of as little, and of as much.
fn sides(quantity: Quantity, values: &[f64], number: f64) -> [f64; 2] {
    if quantity == Quantity::Count {
        let (count, expected) = (values.iter().sum::<f64>(), number * values.len() as f64);
        return [poisson_at_most(count, expected), poisson_at_least(count, expected)];
    }
    let above = values.iter().filter(|value| **value > number).count() as f64;
    let below = values.iter().filter(|value| **value < number).count() as f64;
    [half_at_least(below, above + below), half_at_least(above, above + below)]
}

/// Of `n` fair coins at least `k`.
fn half_at_least(k: f64, n: f64) -> f64 {
    if k <= 0.0 { 1.0 } else { beta_regularised(k, n - k + 1.0, 0.5) }
}

/// Events at least `count` where `expected` are: the level at which the exact lower limit reaches
/// them.
fn poisson_at_least(count: f64, expected: f64) -> f64 {
    level(|alpha| poisson_lower(count, alpha) >= expected)
}

fn poisson_at_most(count: f64, expected: f64) -> f64 {
    level(|alpha| poisson_upper(count, alpha) <= expected)
}

/// The smallest level at which a limit, which moves to the count as the level grows, excludes a
/// number.
fn level(excludes: impl Fn(f64) -> bool) -> f64 {
    let [mut low, mut high] = [0.0, 1.0];
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if excludes(middle) { high = middle } else { low = middle }
    }
    high
}

/// Whether something never happens. One event is proof of the opposite; none is none in so many
/// repetitions, and what could still be is for the caller to say.
pub fn absent(values: &[f64]) -> Decision {
    if values.is_empty() {
        Decision::NOTHING
    } else {
        Decision::known(values.iter().all(|value| *value <= 0.0))
    }
}

/// Whether something happens. One event is proof; that none was seen is no proof of the opposite
/// where chance has a part.
pub fn present(quantity: Quantity, values: &[f64]) -> Decision {
    let seen = values.iter().any(|value| *value > 0.0);
    if seen || quantity == Quantity::Constant && !values.is_empty() {
        Decision::known(seen)
    } else {
        Decision::NOTHING
    }
}
