//! The ratio of the sets that the second and the first of two curves accept, on the same sets.
//!
//! The logarithm of the ratio of two shares of the same sets has variance (b + c) / ((a + b) (a +
//! c)), a, b, c sets accepted by both, by the first alone, by the second alone (the delta method;
//! Nam and Blackwelder, "Analysis of the ratio of marginal probabilities in a matched-pair
//! setting", Statistics in Medicine 21, 2002, whose score interval it approximates).

use super::Z95;

/// A ratio with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ratio {
    /// Second over first share.
    pub ratio: f64,
    /// Its interval.
    pub interval: [f64; 2],
}

/// The ratio of two shares of the same sets; none where one of them accepts nothing.
pub fn ratio(first: &[bool], second: &[bool]) -> Option<Ratio> {
    let (mut of_first, mut of_second, mut differ) = (0u64, 0u64, 0u64);
    for (first, second) in first.iter().zip(second) {
        of_first += u64::from(*first);
        of_second += u64::from(*second);
        differ += u64::from(first != second);
    }
    if of_first == 0 || of_second == 0 {
        return None;
    }
    let (first, second) = (of_first as f64, of_second as f64);
    let half = Z95 * (differ as f64 / (first * second)).sqrt();
    let ratio = second / first;
    Some(Ratio { ratio, interval: [ratio * (-half).exp(), ratio * half.exp()] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let first: Vec<bool> = (0..500).map(|set| set < 100).collect();
        let second: Vec<bool> = (0..500).map(|set| set < 150).collect();
        let estimate = ratio(&first, &second).unwrap();
        // sqrt(50 / 15,000) = 0.057735, times 1.959964.
        assert!((estimate.ratio - 1.5).abs() < 1e-12);
        assert!((estimate.interval[0] - 1.5 * (-0.113_158f64).exp()).abs() < 1e-5, "{estimate:?}");
        let same = ratio(&first, &first).unwrap();
        assert!((same.interval[0] - 1.0).abs() < 1e-12 && (same.interval[1] - 1.0).abs() < 1e-12);
        assert_eq!(ratio(&[false; 9], &[true; 9]), None);
        assert_eq!(ratio(&[], &[]), None);
    }

    /// Coverage with a fixed seed: 2000 samples of 500 sets, 20 % and 30 % of them accepted, 5 % by
    /// the first alone.
    #[test]
    fn the_interval_covers() {
        let mut uniform = crate::curves::testing::uniform();
        let mut covered = 0;
        for _ in 0..2000 {
            let pair = |u: f64| match u {
                u if u < 0.15 => (true, true),
                u if u < 0.20 => (true, false),
                u => (false, u < 0.35),
            };
            let (first, second): (Vec<bool>, Vec<bool>) = (0..500).map(|_| pair(uniform())).unzip();
            let [low, high] = ratio(&first, &second).unwrap().interval;
            covered += usize::from(low <= 1.5 && 1.5 <= high);
        }
        // 1900 expected, standard deviation 10.
        assert!((1865..=1940).contains(&covered), "{covered}");
    }
}
