//! Whether a fitted law is that of the data: Anderson–Darling, which looks at the tails, and
//! Cramér–von Mises, by a parametric bootstrap.
//!
//! Parameters are fitted to the data that the law is held against, so tables for known laws do not hold: samples of the fitted law are
//! fitted anew and have their own statistics (W. Stute, W. Manteiga and M. Quindimil, "Bootstrap based goodness-of-fit-tests", Metrika 40
//! (1993)); p = (1 + #≥)/(1 + N). Statistics as in M. Stephens, "EDF statistics for goodness of fit and some comparisons", Journal of the
//! American Statistical Association 69 (1974).

use super::law::Law;
use crate::random::uniform;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Two statistics with their probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Goodness {
    /// A².
    pub anderson_darling: f64,
    /// Probability of one as large, were the law right.
    pub anderson_darling_p: f64,
    /// W².
    pub cramer_von_mises: f64,
    /// The same of that.
    pub cramer_von_mises_p: f64,
    /// Samples that were drawn for the probabilities.
    pub draws: usize,
}

/// A² of the shares below each value, ascending.
pub fn anderson_darling(shares: &[f64]) -> f64 {
    let n = shares.len() as f64;
    // A sample at the very edge of the support would make it infinite.
    let kept = |share: f64| share.clamp(1e-300, 1.0 - 1e-16);
    let pairs = shares.iter().zip(shares.iter().rev()).enumerate();
    let sum: f64 = pairs
        .map(|(at, (&low, &high))| (2.0 * at as f64 + 1.0) * (kept(low).ln() + (1.0 - kept(high)).ln()))
        .sum();
    -n - sum / n
}

/// W² of the shares below each value, ascending.
pub fn cramer_von_mises(shares: &[f64]) -> f64 {
    let n = shares.len() as f64;
    let off = |(at, share): (usize, &f64)| (share - (2.0 * at as f64 + 1.0) / (2.0 * n)).powi(2);
    1.0 / (12.0 * n) + shares.iter().enumerate().map(off).sum::<f64>()
}

/// Holds a law against the data that it was fitted to.
pub fn goodness<L: Law>(sorted: &[f64], law: &L, draws: usize, random: &mut ChaCha8Rng) -> Goodness {
    let statistics = |law: &L, sorted: &[f64]| {
        let shares: Vec<f64> = sorted.iter().map(|value| law.below(*value)).collect();
        [anderson_darling(&shares), cramer_von_mises(&shares)]
    };
    let observed = statistics(law, sorted);
    let mut as_far = [0usize; 2];
    let mut made = vec![0.0; sorted.len()];
    for _ in 0..draws {
        made.fill_with(|| law.drawn(uniform(random)));
        made.sort_unstable_by(f64::total_cmp);
        // What cannot even be fitted is as far off as can be.
        let drawn = L::fit(&made).map_or([f64::MAX; 2], |law| statistics(&law, &made));
        (0..2).for_each(|at| as_far[at] += usize::from(drawn[at] >= observed[at]));
    }
    let p = as_far.map(|count| (count + 1) as f64 / (draws + 1) as f64);
    Goodness {
        anderson_darling: observed[0],
        anderson_darling_p: p[0],
        cramer_von_mises: observed[1],
        cramer_von_mises_p: p[1],
        draws,
    }
}
