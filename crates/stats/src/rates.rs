//! Two Poisson rates: whether they differ, and by how much.
//!
//! Test: given both counts together, one of them is binomial (Przyborowski & Wilenski, Biometrika
//! 31 (1940)). Interval of the difference: from the exact intervals of both rates (Garwood), by
//! MOVER (Zou & Donner, "Construction of confidence limits about effect measures", Statistics in
//! Medicine 27 (2008)). Several classes at once: Holm, Scandinavian Journal of Statistics 6 (1979).

use crate::bounds::{beta_regularised, poisson_lower, poisson_upper};

/// Events over a time, with their dispersion (1 for independent events).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Events.
    pub count: u64,
    /// Time they were watched, s.
    pub seconds: f64,
    /// Variance of their counts in blocks over the mean, at least 1.
    pub dispersion: f64,
}

impl Rate {
    /// Events per second; 0 for no time.
    pub fn per_s(&self) -> f64 {
        if self.seconds > 0.0 { self.count as f64 / self.seconds } else { 0.0 }
    }

    /// Two-sided 95 % limits of the rate, per second.
    fn limits(&self, dispersion: f64) -> [f64; 2] {
        let events = self.count as f64 / dispersion;
        let scale = dispersion / self.seconds;
        [poisson_lower(events, 0.025) * scale, poisson_upper(events, 0.025) * scale]
    }
}

/// The dispersion of both together: variance of all counts over their number.
fn shared_dispersion(a: &Rate, b: &Rate) -> f64 {
    let events = (a.count + b.count) as f64;
    if events == 0.0 {
        return 1.0;
    }
    ((a.count as f64 * a.dispersion + b.count as f64 * b.dispersion) / events).max(1.0)
}

/// Two-sided probability of counts at least as far apart, were the rates the same; 1 where nothing
/// was seen or watched.
pub fn p_value(a: &Rate, b: &Rate) -> f64 {
    let [at_most, at_least] = one_sided(a, b, 1.0);
    (2.0 * at_least.min(at_most)).min(1.0)
}

/// Were the rate of `a` `times` that of `b`: the probability of as little of `a`, and of as much.
/// Both are 1 where nothing was seen or watched.
pub fn one_sided(a: &Rate, b: &Rate, times: f64) -> [f64; 2] {
    let dispersion = shared_dispersion(a, b);
    let (k, n) = (a.count as f64 / dispersion, (a.count + b.count) as f64 / dispersion);
    let share = times * a.seconds / (times * a.seconds + b.seconds);
    if n <= 0.0 || !share.is_finite() || share <= 0.0 || share >= 1.0 {
        return [1.0, 1.0];
    }
    let at_least = if k <= 0.0 { 1.0 } else { beta_regularised(k, n - k + 1.0, share) };
    let at_most = if n - k <= 0.0 { 1.0 } else { beta_regularised(n - k, k + 1.0, 1.0 - share) };
    [at_most, at_least]
}

/// 95 % interval of `a − b`, per second; `None` where either was not watched.
pub fn difference_interval(a: &Rate, b: &Rate) -> Option<[f64; 2]> {
    if a.seconds <= 0.0 || b.seconds <= 0.0 {
        return None;
    }
    let dispersion = shared_dispersion(a, b);
    let ([la, ua], [lb, ub]) = (a.limits(dispersion), b.limits(dispersion));
    let (ra, rb) = (a.per_s(), b.per_s());
    let low = ra - rb - (ra - la).hypot(ub - rb);
    let high = ra - rb + (ua - ra).hypot(rb - lb);
    Some([low, high])
}

/// Holm's adjustment: what each probability is worth among all of them, in the order given.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, &at) in order.iter().enumerate() {
        largest = largest.max(p_values[at] * (p_values.len() - rank) as f64);
        adjusted[at] = largest.min(1.0);
    }
    adjusted
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(count: u64, seconds: f64) -> Rate {
        Rate { count, seconds, dispersion: 1.0 }
    }

    #[test]
    fn the_test_is_the_binomial_one() {
        // 5 against 0 in equal times: 2 * (1/2)^5.
        assert!((p_value(&rate(5, 10.0), &rate(0, 10.0)) - 0.0625).abs() < 1e-12);
        // 7 of 10 with share 1/4: 2 * P(X >= 7) = 2 * 3676/4^10.
        assert!((p_value(&rate(7, 1.0), &rate(3, 3.0)) - 2.0 * 3676.0 / 4f64.powi(10)).abs() < 1e-12);
        assert_eq!(p_value(&rate(0, 1.0), &rate(0, 1.0)), 1.0);
        assert_eq!(p_value(&rate(3, 0.0), &rate(0, 1.0)), 1.0);
    }

    #[test]
    fn a_burst_does_not_convince() {
        let burst = Rate { count: 8, seconds: 10.0, dispersion: 8.0 };
        assert!(p_value(&burst, &rate(0, 10.0)) > 0.5);
        let [low, _] = difference_interval(&burst, &rate(0, 10.0)).unwrap();
        assert!(low < 0.0);
    }

    #[test]
    fn holm_agrees_with_the_textbook() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{adjusted:?}");
    }

    proptest! {
        #[test]
        fn swapping_sides_swaps_the_answer(a in 0u64..500, b in 0u64..500, s in 1.0f64..100.0, t in 1.0f64..100.0) {
            let (a, b) = (rate(a, s), rate(b, t));
            prop_assert!((p_value(&a, &b) - p_value(&b, &a)).abs() < 1e-9);
            let ([l1, h1], [l2, h2]) = (difference_interval(&a, &b).unwrap(), difference_interval(&b, &a).unwrap());
            prop_assert!((l1 + h2).abs() < 1e-6 && (h1 + l2).abs() < 1e-6);
            prop_assert!(l1 <= a.per_s() - b.per_s() && a.per_s() - b.per_s() <= h1);
        }
    }
}
