//! With what probability repetitions find an effect of a given size: whether it is worth while to
//! run them.

use super::order::{Pair, order};
use super::{Finding, Quantity};
use crate::random::{normal, uniform};
use crate::resample::generator;
use rand_chacha::ChaCha8Rng;

/// The effect that is planned for: one group has so many times as much as the other.
pub const EFFECT: f64 = 1.5;
/// A statement is called decidable where an effect of [`EFFECT`] is found with this probability.
pub const POWER: f64 = 0.9;
/// Studies that are drawn.
const STUDIES: usize = 400;

/// What is assumed of the repetitions of one group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Assumed {
    /// Chance has no part.
    Nothing,
    /// Events in one repetition of the lesser group.
    Events(f64),
    /// Standard deviation of a repetition's logarithm.
    Spread(f64),
}

/// The share of studies with so many repetitions a group in which an effect of [`EFFECT`] is found.
pub fn power(assumed: Assumed, repetitions: usize) -> f64 {
    let quantity = match assumed {
        Assumed::Nothing => return f64::from(u8::from(repetitions > 0)),
        Assumed::Events(_) => Quantity::Count,
        Assumed::Spread(_) => Quantity::Measured,
    };
    let mut random = generator(4, repetitions as u64);
    let mut group = |times: f64| {
        let one = |_| assumed.draw(times, &mut random);
        (0..repetitions).map(one).collect::<Vec<f64>>()
    };
    let found = (0..STUDIES).filter(|_| {
        let (less, more) = (group(1.0), group(EFFECT));
        let pair = Pair { first: &less, second: &more };
        order(quantity, &[pair], false).finding == Finding::Holds
    });
    found.count() as f64 / STUDIES as f64
}

impl Assumed {
    /// A repetition of a group with so many times as much.
    fn draw(self, times: f64, random: &mut ChaCha8Rng) -> f64 {
        match self {
            Self::Nothing => times,
            Self::Events(mean) => poisson(mean * times, random),
            Self::Spread(spread) => times * (spread * normal(random)).exp(),
        }
    }
}

/// A draw of Poisson's law: products of uniform numbers in pieces that do not underflow (Knuth,
/// "The Art of Computer Programming" 2, 3.4.1).
fn poisson(mean: f64, random: &mut ChaCha8Rng) -> f64 {
    const PIECE: f64 = 500.0;
    let mut left = mean;
    let mut count = 0.0;
    while left > 0.0 {
        let limit = (-left.min(PIECE)).exp();
        let mut product = uniform(random);
        while product > limit {
            product *= uniform(random);
            count += 1.0;
        }
        left -= PIECE;
    }
    count
}

/// Steps in which a limit is found: to a thousandth of its range.
const STEPS: u32 = 10;

/// The largest spread of repetitions at which so many a group find the effect; none where they are
/// too few at any.
pub fn largest_spread(repetitions: usize) -> Option<f64> {
    let finds = |spread: f64| power(Assumed::Spread(spread), repetitions) >= POWER;
    let [mut low, mut high] = [0.0, 2.0];
    if !finds(low) {
        return None;
    }
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if finds(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// The least number of events in one repetition of the lesser group at which so many repetitions
/// find the effect.
pub fn least_events(repetitions: usize) -> f64 {
    let finds = |events: f64| power(Assumed::Events(events), repetitions) >= POWER;
    // One repetition needs about a hundred, and several share them.
    let [mut low, mut high] = [0.0, 200.0 / repetitions.max(1) as f64];
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if finds(middle) { high = middle } else { low = middle }
    }
    high.ceil()
}
