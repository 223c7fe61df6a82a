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
    let (quantity, draw): (_, Box<dyn Fn(f64, &mut ChaCha8Rng) -> f64>) = match assumed {
        Assumed::Nothing => return f64::from(u8::from(repetitions > 0)),
        Assumed::Events(mean) => {
            (Quantity::Count, Box::new(move |times, random| poisson(mean * times, random)))
        }
        Assumed::Spread(spread) => {
            (Quantity::Measured, Box::new(move |times, random| times * (spread * normal(random)).exp()))
        }
    };
    let mut random = generator(4, repetitions as u64);
    let mut group = |times: f64| (0..repetitions).map(|_| draw(times, &mut random)).collect::<Vec<f64>>();
    let found = (0..STUDIES).filter(|_| {
        let (less, more) = (group(1.0), group(EFFECT));
        order(quantity, &[Pair { first: &less, second: &more }], false).finding == Finding::Holds
    });
    found.count() as f64 / STUDIES as f64
}

/// A draw of Poisson's law: products of uniform numbers in pieces that do not underflow (Knuth, "The
/// Art of Computer Programming" 2, 3.4.1).
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
