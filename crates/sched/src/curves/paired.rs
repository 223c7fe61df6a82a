//! Compares two curves on the same sets: only sets on which they disagree distinguish them.
//!
//! McNemar's test, exact (McNemar, Psychometrika 12, 1947): under equal shares each disagreement
//! falls either way like a fair coin. The interval of the difference: Bonett and Price, "Adjusted
//! Wald confidence interval for a difference of binomial proportions based on paired data", Journal
//! of Educational and Behavioral Statistics 37, 2012.

use super::Z95;
use statrs::function::gamma::ln_gamma;

/// How two curves compare on the same sets.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Paired {
    /// Sets.
    pub sets: u64,
    /// Accepted by the first curve alone.
    pub first_only: u64,
    /// Accepted by the second curve alone.
    pub second_only: u64,
    /// Second less first share.
    pub difference: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// Two-sided p-value of McNemar's exact test.
    pub p: f64,
}

/// Compares verdicts set by set.
pub fn paired(first: &[bool], second: &[bool]) -> Paired {
    let count = |of: fn(bool, bool) -> bool| {
        first.iter().zip(second).filter(|(first, second)| of(**first, **second)).count() as u64
    };
    let (first_only, second_only) = (count(|one, two| one && !two), count(|one, two| two && !one));
    let sets = first.len().min(second.len()) as u64;
    let n = sets as f64 + 2.0;
    let (up, down) = ((second_only as f64 + 1.0) / n, (first_only as f64 + 1.0) / n);
    let half = Z95 * ((up + down - (up - down).powi(2)) / n).sqrt();
    Paired {
        sets,
        first_only,
        second_only,
        difference: (second_only as f64 - first_only as f64) / sets.max(1) as f64,
        interval: [(up - down - half).max(-1.0), (up - down + half).min(1.0)],
        p: mcnemar(first_only, second_only),
    }
}

/// Twice the smaller tail of a fair coin thrown once per disagreement, at most 1.
fn mcnemar(one: u64, other: u64) -> f64 {
    let (n, few) = (one + other, one.min(other));
    let ln_chance = |k: u64| {
        ln_gamma(n as f64 + 1.0)
            - ln_gamma(k as f64 + 1.0)
            - ln_gamma((n - k) as f64 + 1.0)
            - n as f64 * std::f64::consts::LN_2
    };
    // Terms fall quickly away from the middle; going outwards from the largest, negligible ones are
    // left out.
    let mut tail = 0.0;
    for k in (0..=few).rev() {
        let term = ln_chance(k).exp();
        tail += term;
        if term < tail * 1e-17 {
            break;
        }
    }
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By throwing all coins: 2^-n sum of binomials, in integers.
    fn by_counting(one: u32, other: u32) -> f64 {
        let (n, few) = (one + other, one.min(other));
        let mut row = vec![1u128];
        for _ in 0..n {
            row = std::iter::once(1).chain(row.windows(2).map(|pair| pair[0] + pair[1])).chain([1]).collect();
        }
        (2.0 * row[..=few as usize].iter().sum::<u128>() as f64 / 2f64.powi(n as i32)).min(1.0)
    }

    #[test]
    fn the_exact_test_counts_coins() {
        for one in 0..12 {
            for other in 0..30 {
                let (ours, counted) = (mcnemar(u64::from(one), u64::from(other)), by_counting(one, other));
                assert!((ours - counted).abs() < 1e-10, "{one} {other}: {ours} {counted}");
            }
        }
        assert!((mcnemar(0, 0) - 1.0).abs() < 1e-12);
        assert!(mcnemar(0, 4000) < 1e-300 && mcnemar(40_000, 41_000) > 0.0);
    }

    #[test]
    fn only_disagreements_count() {
        let mut first = vec![true; 300];
        first.extend([false; 200]);
        let mut second = first.clone();
        assert_eq!((paired(&first, &second).difference, paired(&first, &second).first_only), (0.0, 0));
        second[300..307].fill(true);
        second[0] = false;
        let pairs = paired(&first, &second);
        assert_eq!((pairs.first_only, pairs.second_only, pairs.sets), (1, 7, 500));
        assert!(
            (pairs.difference - 0.012).abs() < 1e-12 && (pairs.p - 18.0 / 256.0).abs() < 1e-12,
            "{pairs:?}"
        );
        assert!(pairs.interval[0] < 0.012 && pairs.interval[1] > 0.012);
    }

    /// Coverage of the interval with a fixed seed: 2000 samples of 500 pairs, 10 % and 5 %
    /// disagreements.
    #[test]
    fn the_interval_covers() {
        let mut uniform = crate::curves::testing::uniform();
        let mut covered = 0;
        for _ in 0..2000 {
            let pair = |u: f64| match u {
                u if u < 0.10 => (false, true),
                u if u < 0.15 => (true, false),
                u => (u < 0.5, u < 0.5),
            };
            let (first, second): (Vec<bool>, Vec<bool>) = (0..500).map(|_| pair(uniform())).unzip();
            let [low, high] = paired(&first, &second).interval;
            covered += usize::from(low <= 0.05 && 0.05 <= high);
        }
        // 1900 expected, standard deviation 10.
        assert!((1865..=1940).contains(&covered), "{covered}");
    }
}
