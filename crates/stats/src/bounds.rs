//! Upper confidence bounds for counts, and the rule of three for zero counts.
//!
//! Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the
//! binomial", Biometrika 26 (1934); Garwood, "Fiducial limits for the Poisson distribution",
//! Biometrika 28 (1936); Hanley & Lippman-Hand, "If nothing goes wrong, is everything all right?",
//! JAMA 249 (1983). Regularised incomplete beta: continued fraction of DiDonato & Morris, ACM TOMS
//! 18 (1992), by Lentz's method.

use statrs::function::gamma::{gamma_lr, gamma_ur, ln_gamma};

/// Confidence of every one-sided bound of this crate.
pub const CONFIDENCE: f64 = 0.95;

/// One-sided upper bound of a probability after `count` events in `n` independent trials, at
/// [`CONFIDENCE`]; 3/n for none. Both may be fractions, of trials that depend on each other and are
/// worth fewer.
///
/// 1 for no trials at all: nothing is known.
pub fn share_upper(count: f64, n: f64) -> f64 {
    if n <= 0.0 || count >= n {
        return 1.0;
    }
    if count <= 0.0 {
        return (3.0 / n).min(1.0);
    }
    // P(X <= count) falls as p grows; the bound is where it reaches 1 - CONFIDENCE.
    let k = count;
    bisect(k / n, 1.0, |p| 1.0 - beta_regularised(k + 1.0, n - k, p) > 1.0 - CONFIDENCE)
}

/// Two-sided 95 % interval of a probability after `count` events in `n` independent trials
/// (Clopper–Pearson); both may be fractions, of trials that depend on each other and are worth
/// fewer. Its upper end after none is that of the one-sided rule of three, since there is no other
/// side.
pub fn share_interval(count: f64, n: f64) -> [f64; 2] {
    const TAIL: f64 = (1.0 - CONFIDENCE) / 2.0;
    if n <= 0.0 || n.is_nan() {
        return [0.0, 1.0];
    }
    let count = count.clamp(0.0, n);
    if count <= 0.0 {
        return [0.0, (3.0 / n).min(1.0)];
    }
    if count >= n {
        return [TAIL.powf(1.0 / n), 1.0];
    }
    let at_least = |p: f64| beta_regularised(count, n - count + 1.0, p);
    let at_most = |p: f64| 1.0 - beta_regularised(count + 1.0, n - count, p);
    [bisect(0.0, count / n, |p| at_least(p) < TAIL), bisect(count / n, 1.0, |p| at_most(p) > TAIL)]
}

/// One-sided upper bound of a Poisson mean after `count` events, at [`CONFIDENCE`]; 3 for none.
pub fn count_upper(count: u64) -> f64 {
    if count == 0 { 3.0 } else { poisson_upper(count as f64, 1.0 - CONFIDENCE) }
}

/// The mean at which a Poisson variable is at most `count` with probability `alpha`. `count` may be
/// fractional (deflated counts).
pub fn poisson_upper(count: f64, alpha: f64) -> f64 {
    let k = count.max(0.0);
    let high = k + 10.0 * (k + 1.0).sqrt() + 10.0;
    bisect(k, high, |mean| gamma_ur(k + 1.0, mean.max(f64::MIN_POSITIVE)) > alpha)
}

/// The mean at which a Poisson variable is at least `count` with probability `alpha`; 0 for no
/// events.
pub fn poisson_lower(count: f64, alpha: f64) -> f64 {
    if count <= 0.0 {
        return 0.0;
    }
    bisect(0.0, count, |mean| mean <= 0.0 || gamma_lr(count, mean) < alpha)
}

/// The point at which `below` turns false, between `low` (where it holds) and `high`.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if below(middle) { low = middle } else { high = middle }
    }
    high
}

/// I_x(a, b), the regularised incomplete beta function, for a, b > 0 and 0 ≤ x ≤ 1.
pub fn beta_regularised(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast only on its own side of the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_regularised(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    (front.exp() * beta_fraction(a, b, x) / a).clamp(0.0, 1.0)
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    // Steps grow with the square root of the larger argument: this serves counts up to 10^10.
    const STEPS: u32 = 200_000;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut above = 1.0;
    let mut below = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = below;
    for step in 1..=STEPS {
        let k = f64::from(step);
        let even = k * (b - k) * x / ((a + 2.0 * k - 1.0) * (a + 2.0 * k));
        let odd = -(a + k) * (a + b + k) * x / ((a + 2.0 * k) * (a + 2.0 * k + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            below = 1.0 / away(1.0 + term * below);
            above = away(1.0 + term / above);
            factor = below * above;
            fraction *= factor;
        }
        if (factor - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-6 * b.abs().max(1e-12), "{a} is not {b}");
    }

    #[test]
    fn shares_agree_with_tables() {
        // Clopper-Pearson 95 % one-sided, from the beta quantile (closed forms where n is small).
        close(share_upper(1.0, 2.0), 0.95f64.sqrt());
        close(share_upper(9.0, 10.0), 0.95f64.powf(0.1));
        assert_eq!(share_upper(0.0, 1e6), 3e-6);
        assert_eq!(share_upper(0.0, 0.0), 1.0);
        assert_eq!(share_upper(5.0, 5.0), 1.0);
    }

    #[test]
    fn intervals_of_shares_agree_with_scipy() {
        // scipy.stats.binomtest(k, n).proportion_ci(), exact; fixtures/statistics/oracle.json has
        // more.
        for (k, n, low, high) in
            [(1.0, 10.0, 0.002_528_579, 0.445_016_1), (7.0, 1000.0, 0.002_818_96, 0.014_369_9)]
        {
            let [a, b] = share_interval(k, n);
            assert!((a / low - 1.0).abs() < 1e-4 && (b / high - 1.0).abs() < 1e-4, "{a} {b}");
        }
        assert_eq!(share_interval(0.0, 3_000.0), [0.0, 0.001]);
        assert_eq!(share_interval(0.0, 0.0), [0.0, 1.0]);
        assert_eq!(share_interval(5.0, 5.0)[1], 1.0);
    }

    #[test]
    fn poisson_bounds_agree_with_tables() {
        // Chi-square quantiles over 2, from printed tables: upper 95 % for 1, 2 and 10 events.
        for (count, bound) in [(1, 4.743_865), (2, 6.295_794), (10, 16.962_22)] {
            close(count_upper(count), bound);
        }
        close(poisson_lower(1.0, 0.025), -(0.975f64.ln()));
        close(poisson_upper(0.0, 0.025), -(0.025f64.ln()));
        assert_eq!(count_upper(0), 3.0);
    }

    #[test]
    fn large_counts_approach_the_normal_limit() {
        let (k, n) = (5e5_f64, 1e6_f64);
        let normal = 0.5 + 1.644_853_6 * (0.25 / n).sqrt();
        assert!((share_upper(k, n) - normal).abs() < 2e-6, "{}", share_upper(k, n));
    }

    proptest! {
        #[test]
        fn the_bound_is_where_the_tail_has_five_percent(n in 1u64..60, count in 0u64..60) {
            prop_assume!(count > 0 && count < n);
            let p = share_upper(count as f64, n as f64);
            // The binomial tail, summed directly.
            let mut term = (1.0 - p).powi(n as i32);
            let mut sum = term;
            for k in 1..=count {
                term *= (n - k + 1) as f64 / k as f64 * p / (1.0 - p);
                sum += term;
            }
            prop_assert!((sum - 0.05).abs() < 1e-9, "{} of {}: {} at {}", count, n, sum, p);
        }

        #[test]
        fn bounds_grow_with_the_count(count in 0u64..5000, n in 5002u64..100_000) {
            let upper = |count: u64| share_upper(count as f64, n as f64);
            prop_assert!(upper(count) < upper(count + 1));
            prop_assert!(count_upper(count) < count_upper(count + 1));
            prop_assert!(upper(count) > count as f64 / n as f64);
            let ([low, high], [less, more]) =
                (share_interval(count as f64, n as f64), share_interval(count as f64 / 4.0, n as f64 / 4.0));
            prop_assert!(less <= low && low <= high && high <= more, "fewer samples know less");
        }
    }
}
