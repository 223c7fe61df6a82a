//! How many pairs have the first value below the second (Mann and Whitney, Annals of Mathematical
//! Statistics 18 (1947)), ties as halves, and how that is distributed were labels exchangeable.

use statrs::distribution::{ContinuousCDF, Normal};

/// Pairs up to which the distribution is counted out; beyond, the normal one is as good.
const COUNTED: usize = 900;

/// What was seen, and its distribution.
#[derive(Debug, Clone)]
pub(super) struct Exchanged {
    /// Twice the number of pairs.
    seen: usize,
    law: Law,
}

#[derive(Debug, Clone)]
enum Law {
    /// Probability of each number.
    Counted(Vec<f64>),
    Normal {
        mean: f64,
        variance: f64,
    },
}

impl Default for Exchanged {
    /// Of nothing.
    fn default() -> Self {
        Self { seen: 0, law: Law::Counted(vec![1.0]) }
    }
}

impl Exchanged {
    /// Of the first group against `times` the second.
    pub(super) fn new(first: &[f64], second: &[f64], times: f64) -> Self {
        let second: Vec<f64> = second.iter().map(|value| value * times).collect();
        let seen = first.iter().flat_map(|one| second.iter().map(move |other| twice(*one, *other))).sum();
        let mut all: Vec<f64> = first.iter().chain(&second).copied().collect();
        all.sort_by(f64::total_cmp);
        let ties: Vec<usize> = all.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(<[f64]>::len).collect();
        let (m, n) = (first.len(), second.len());
        let law = if m * n <= COUNTED { Law::Counted(counted(m, n, &ties)) } else { normal(m, n, &ties) };
        Self { seen, law }
    }

    /// Both, of groups that are independent of one another.
    pub(super) fn with(self, other: Self) -> Self {
        let law = match (&self.law, &other.law) {
            (Law::Counted(a), Law::Counted(b)) => Law::Counted(convolved(a, b)),
            (a, b) => {
                let ([mean, variance], [other_mean, other_variance]) = (a.moments(), b.moments());
                Law::Normal { mean: mean + other_mean, variance: variance + other_variance }
            }
        };
        Self { seen: self.seen + other.seen, law }
    }

    /// The probability of as many pairs, or more.
    pub(super) fn at_least(&self) -> f64 {
        match &self.law {
            Law::Counted(shares) => shares[self.seen..].iter().sum::<f64>().min(1.0),
            Law::Normal { mean, variance } => tail(self.seen as f64 - 1.0 - mean, *variance),
        }
    }

    /// The probability of as few, or fewer.
    pub(super) fn at_most(&self) -> f64 {
        match &self.law {
            Law::Counted(shares) => shares[..=self.seen].iter().sum::<f64>().min(1.0),
            Law::Normal { mean, variance } => tail(mean - self.seen as f64 - 1.0, *variance),
        }
    }
}

impl Law {
    fn moments(&self) -> [f64; 2] {
        match self {
            Self::Normal { mean, variance } => [*mean, *variance],
            Self::Counted(shares) => {
                let moment = |of: &dyn Fn(f64) -> f64| {
                    shares.iter().enumerate().map(|(at, share)| share * of(at as f64)).sum::<f64>()
                };
                let mean = moment(&|at| at);
                [mean, moment(&|at| (at - mean).powi(2))]
            }
        }
    }
}

/// 2 where the first is less, 1 where both are the same.
pub(super) fn twice(first: f64, second: f64) -> usize {
    usize::from(first < second) + usize::from(first <= second)
}

/// Above `distance`, at a variance.
fn tail(distance: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    Normal::standard().sf(distance / variance.sqrt())
}

/// Of `m` labels of one kind and `n` of the other on values with these ties, in ascending order:
/// the share of labellings with each number. Values are gone through in turn; the state is how many
/// labels of the first kind have been given, and the number so far.
fn counted(m: usize, n: usize, ties: &[usize]) -> Vec<f64> {
    let width = 2 * m * n + 1;
    let mut ways = vec![vec![0.0; width]; m + 1];
    ways[0][0] = 1.0;
    let mut given = 0;
    for &tie in ties {
        let mut next = vec![vec![0.0; width]; m + 1];
        for (of_first, row) in ways.iter().enumerate().take(given.min(m) + 1) {
            let Some(of_second) = given.checked_sub(of_first).filter(|count| *count <= n) else { continue };
            for more in 0..=tie.min(m - of_first) {
                let others = tie - more;
                if of_second + others > n {
                    continue;
                }
                let (step, choices) = (2 * of_first * others + more * others, choose(tie, more));
                for (at, count) in row.iter().enumerate().filter(|(_, count)| **count > 0.0) {
                    next[of_first + more][at + step] += count * choices;
                }
            }
        }
        ways = next;
        given += tie;
    }
    let all: f64 = ways[m].iter().sum();
    ways[m].iter().map(|count| count / all).collect()
}

fn choose(n: usize, k: usize) -> f64 {
    (0..k).map(|at| (n - at) as f64 / (at + 1) as f64).product()
}

/// The variance of twice the number, ties included (Lehmann, "Nonparametrics", 1975, 1.5).
fn normal(m: usize, n: usize, ties: &[usize]) -> Law {
    let (pairs, all) = ((m * n) as f64, (m + n) as f64);
    let tied: f64 = ties.iter().map(|tie| (tie * tie * tie - tie) as f64).sum();
    let variance = pairs / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
    Law::Normal { mean: pairs, variance: 4.0 * variance }
}

fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (at, share) in a.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        for (other_at, other) in b.iter().enumerate() {
            sum[at + other_at] += share * other;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_that_of_all_labellings() {
        // 3 against 3 without ties: 20 labellings.
        let apart = Exchanged::new(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 1.0);
        assert!((apart.at_least() - 0.05).abs() < 1e-12 && (apart.at_most() - 1.0).abs() < 1e-12);
        // All alike: one number, with certainty.
        let alike = Exchanged::new(&[1.0; 4], &[1.0; 4], 1.0);
        assert!((alike.at_least() - 1.0).abs() < 1e-12 && (alike.at_most() - 1.0).abs() < 1e-12);
        // 1, 2 | 2, 3: of six labellings one has more below (3.5 of 4), none as many but itself.
        let tied = Exchanged::new(&[1.0, 2.0], &[2.0, 3.0], 1.0);
        assert!((tied.at_least() - 2.0 / 6.0).abs() < 1e-12, "{}", tied.at_least());
        // Twice the same pair of groups: both apart, one chance in 400.
        let both = apart.clone().with(apart);
        assert!((both.at_least() - 1.0 / 400.0).abs() < 1e-12);
    }

    #[test]
    fn the_normal_distribution_takes_over_without_a_step() {
        let values =
            |from: usize, count: usize| (0..count).map(|at| (from + 2 * at) as f64).collect::<Vec<_>>();
        let (first, second) = (values(0, 30), values(9, 30));
        let exact = Exchanged::new(&first, &second, 1.0);
        let normal = Exchanged { law: normal(30, 30, &[1; 60]), ..exact.clone() };
        assert!((exact.at_least() - normal.at_least()).abs() < 0.002, "{exact:?}");
        assert!((exact.at_most() - normal.at_most()).abs() < 0.002);
    }
}
