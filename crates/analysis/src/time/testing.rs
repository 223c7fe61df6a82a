//! Series for the tests of this room.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// Uniform in [0, 1).
pub(crate) fn uniform(random: &mut ChaCha8Rng) -> f64 {
    f64::from(random.next_u32()) / (f64::from(u32::MAX) + 1.0)
}

/// Standard normal (Box and Muller 1958).
pub(crate) fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (one, other) = (1.0 - uniform(random), uniform(random));
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

/// A stationary series in which each value is `rho` of the one before and a normal innovation.
pub(crate) fn autoregressive(random: &mut ChaCha8Rng, rho: f64, n: usize) -> Vec<f64> {
    let mut value = normal(random) / (1.0 - rho * rho).sqrt();
    (0..n)
        .map(|_| {
            value = rho * value + normal(random);
            value
        })
        .collect()
}
