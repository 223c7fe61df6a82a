//! Random numbers of the distributions that resampling needs, from the counted streams of
//! [`crate::resample::generator`].

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// Uniform in [0, 1).
pub fn uniform(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Uniform among the whole numbers below `count`.
pub fn below(count: usize, random: &mut ChaCha8Rng) -> usize {
    ((u64::from(random.next_u32()) * count as u64) >> 32) as usize
}

/// Standard normal: Box and Muller, Annals of Mathematical Statistics 29 (1958).
pub fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}
