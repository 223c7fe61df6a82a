//! A share of accepted sets: Wilson's interval, the difference of two unrelated samples, and the
//! number of sets that would show it.
//!
//! Wilson 1927; its coverage is close to nominal for all shares, the ends included (Brown, Cai and
//! DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16, 2001).

use super::Z95;
use statrs::function::erf::erfc;

/// A share of sets, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Proportion {
    /// Accepted.
    pub accepted: u64,
    /// Asked.
    pub sets: u64,
    /// Their ratio.
    pub share: f64,
    /// Wilson's interval.
    pub interval: [f64; 2],
}

/// The share of `accepted` among `sets` ≥ 1.
pub fn wilson(accepted: u64, sets: u64) -> Proportion {
    let (n, z2) = (sets.max(1) as f64, Z95 * Z95);
    let share = accepted as f64 / n;
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z95 / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    // At the ends the interval reaches them exactly; rounding would leave 10^-17.
    let low = if accepted == 0 { 0.0 } else { middle - half };
    let high = if accepted >= sets { 1.0 } else { middle + half };
    Proportion { accepted, sets, share, interval: [low.max(0.0), high.min(1.0)] }
}

/// Difference of two shares of unrelated samples, as in published results.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Unrelated {
    /// First less second share.
    pub difference: f64,
    /// Its distance from 0 in standard errors, under equal shares.
    pub z: f64,
    /// Two-sided probability of such a distance if the shares are equal.
    pub p: f64,
}

/// The pooled two-sample test of equal shares, `n` sets each; shares from 0 to 1.
pub fn unrelated(first: f64, second: f64, n: u64) -> Unrelated {
    let pooled = f64::midpoint(first, second);
    let error = (2.0 * pooled * (1.0 - pooled) / n.max(1) as f64).sqrt();
    let difference = first - second;
    let z = if error > 0.0 { difference / error } else { 0.0 };
    Unrelated { difference, z, p: erfc(z.abs() / std::f64::consts::SQRT_2) }
}

/// Sets a sample needs for unrelated samples to show this difference at 5 % with a chance of 80 %
/// (Fleiss, "Statistical Methods for Rates and Proportions", ch. 4, without continuity correction);
/// none for equal shares.
pub fn sets_to_distinguish(first: f64, second: f64) -> Option<u64> {
    const Z80: f64 = 0.841_621_233_572_914_2;
    let difference = first - second;
    let spread = first * (1.0 - first) + second * (1.0 - second);
    let needed = (Z95 + Z80).powi(2) * spread / (difference * difference);
    (needed.is_finite() && difference != 0.0).then(|| needed.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() <= by, "{a} {b}");
    }

    #[test]
    fn intervals_of_published_shares() {
        // The published 66.4 and 69.2 % are known to within four points.
        for (accepted, low, high) in [
            (332, 0.621_45, 0.703_98),
            (346, 0.650_14, 0.730_88),
            (19, 0.024_46, 0.058_60),
            (0, 0.0, 0.007_624),
        ] {
            let one = wilson(accepted, 500);
            close(one.interval[0], low, 2e-4);
            close(one.interval[1], high, 2e-4);
        }
        assert_eq!(wilson(500, 500).interval[1].to_bits(), 1f64.to_bits());
    }

    /// By definition: the shares from which the sample is z standard errors away.
    #[test]
    fn ends_of_the_interval_solve_wilsons_equation() {
        for (accepted, sets) in [(1u64, 7u64), (3, 500), (250, 500), (499, 500), (12, 13)] {
            let one = wilson(accepted, sets);
            for end in one.interval {
                close(((one.share - end) / (end * (1.0 - end) / sets as f64).sqrt()).abs(), Z95, 1e-9);
            }
        }
    }

    #[test]
    fn published_differences_of_500_sets() {
        let widest = unrelated(0.716, 0.664, 500);
        close(widest.z, 1.78, 0.005);
        close(widest.p, 0.075, 0.001);
        let at_85 = unrelated(0.062, 0.038, 500);
        close(at_85.z, 1.74, 0.005);
        close(at_85.p, 0.081, 0.001);
        assert_eq!(unrelated(0.0, 0.0, 500).p.to_bits(), 1f64.to_bits());
    }

    #[test]
    fn sets_needed() {
        // About 18,500 sets for 69.4 % against 68.1 %.
        let needed = sets_to_distinguish(0.6945, 0.681).unwrap();
        assert!((18_000..19_000).contains(&needed), "{needed}");
        assert_eq!(sets_to_distinguish(0.5, 0.5), None);
        assert_eq!(sets_to_distinguish(0.0, 0.0), None);
    }
}
