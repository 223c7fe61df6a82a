//! The chi-square selection of deployments, as published, and the limits of its verdict.
//!
//! R. Delgado and B. W. Choi, "New Insights Into the Real-Time Performance of a Multicore
//! Processor", IEEE Access 8 (2020), §IV: histograms of 1 us bins over the range of the
//! reference's, what lies outside put into its first and last bin; Σ (O − E)²/E; as many degrees of
//! freedom as bins; the hypothesis of equal distributions is rejected above the critical value at 5
//! %, which for 22 bins is 33.924. That is the upper tail, though the text says lower; and bins are
//! not reduced by one, as a goodness of fit with fixed totals would require. The published
//! statistics (23.26 to 65.12) cannot come from raw counts of six million samples, whose least
//! differences give more: they must have been normalised, to what is not said, so the statistic is
//! given for raw counts and per hundred samples.
//!
//! Why it misleads: the statistic grows in proportion to the number of samples, so that for some n
//! every difference is rejected and for some other none; samples of one run depend on each other
//! and on their boot, which inflates it by orders; a lower latency is as bad as a higher one; and
//! bins that the reference left empty, where the worst cases are, have no term. Beside it stand the
//! reference against itself, and the probability of as large a statistic were the labels of whole
//! runs exchangeable ([`stats::permute`]).

use super::measured::{MeasuredWindow, Samples};
use super::qq::{QqPlot, qq};
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};
use stats::permute::{self, Exchanged};
use std::collections::BTreeMap;

/// Width of a bin, ns.
pub const BIN_NS: i64 = 1_000;
/// Level of the test.
pub const ALPHA: f64 = 0.05;
/// More bins than a latency in us can need: a second.
const MOST_BINS: i64 = 1_000_000;

/// Result of the procedure for one group against the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chi2 {
    /// The test.
    pub test: Test,
    /// The same with the reference's first half as reference and its second as observed: runs where
    /// there are several, else time. None where it cannot be halved.
    pub itself: Option<Test>,
    /// Probability of as large a statistic were the labels of runs exchangeable; none with one run.
    pub exchanged: Option<Exchanged>,
    /// Quantiles against those of the reference.
    pub qq: Option<QqPlot>,
}

/// One test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Test {
    /// First and last bin of the reference, us.
    pub range_us: [i64; 2],
    /// Bins, and degrees of freedom.
    pub bins: u64,
    /// Samples of the reference and observed ones.
    pub n: [u64; 2],
    /// Observed samples put into the first and into the last bin from outside.
    pub folded: [u64; 2],
    /// Bins between the ends that the reference left empty: no term.
    pub empty_bins: u64,
    /// Observed samples in those.
    pub in_empty: u64,
    /// Σ (O − E)²/E over raw counts; E scaled to as many samples as were observed.
    pub statistic: f64,
    /// Critical value at 5 %, upper tail.
    pub critical: f64,
    /// Critical value of the lower tail, which the text names.
    pub lower_critical: f64,
    /// Whether the statistic exceeds the critical value.
    pub rejected: bool,
    /// The statistic per hundred observed samples.
    pub per_100: f64,
    /// Whether that exceeds the critical value.
    pub rejected_per_100: bool,
    /// From so many observed samples on, these same shares are rejected; none where they agree
    /// exactly.
    pub rejected_from_n: Option<f64>,
}

type Counts = BTreeMap<i64, u64>;

/// The procedure; `None` where a side has no samples, or the reference spans more than a second.
pub fn chi2(reference: &[&MeasuredWindow], observed: &[&MeasuredWindow]) -> Option<Chi2> {
    let of = |windows: &[&MeasuredWindow]| -> Vec<Counts> {
        windows.iter().map(|w| binned(w.samples.steps())).collect()
    };
    let (expected, seen) = (of(reference), of(observed));
    let test = test(&pooled(expected.iter()), &pooled(seen.iter()))?;
    let all: Vec<&Counts> = expected.iter().chain(&seen).collect();
    let statistic = |labels: &[bool]| {
        let side = |second: bool| {
            pooled(all.iter().zip(labels).filter(|(_, label)| **label == second).map(|(counts, _)| *counts))
        };
        self::test(&side(false), &side(true)).map_or(0.0, |test| test.statistic / test.n[1] as f64)
    };
    let exchanged = (expected.len() > 1 && seen.len() > 1)
        .then(|| permute::p_value(expected.len(), seen.len(), false, statistic));
    Some(Chi2 {
        test,
        itself: itself(reference, &expected),
        exchanged: exchanged.flatten(),
        qq: qq(reference, observed),
    })
}

/// The reference against itself.
fn itself(reference: &[&MeasuredWindow], runs: &[Counts]) -> Option<Test> {
    if runs.len() > 1 {
        // Every other run, so that a drift of the machine is in both halves.
        let half = |odd: usize| pooled(runs.iter().skip(odd).step_by(2));
        return test(&half(0), &half(1));
    }
    let Samples::Blocked { samples, .. } = &reference.first()?.samples else { return None };
    let [first, second] = samples.halves().map(|half| binned(half.into_iter().map(|value| (value, 1))));
    test(&first, &second)
}

fn binned(steps: impl IntoIterator<Item = (i64, u64)>) -> Counts {
    let mut counts = Counts::new();
    steps
        .into_iter()
        .for_each(|(value, count)| *counts.entry(value.div_euclid(BIN_NS)).or_default() += count);
    counts
}

fn pooled<'a>(runs: impl Iterator<Item = &'a Counts>) -> Counts {
    let mut all = Counts::new();
    runs.flatten().for_each(|(bin, count)| *all.entry(*bin).or_default() += count);
    all
}

/// Bins of 1 us with their counts.
fn test(expected: &Counts, observed: &Counts) -> Option<Test> {
    let (&low, &high) = (expected.keys().next()?, expected.keys().next_back()?);
    let bins = high - low + 1;
    let n = [expected.values().sum::<u64>(), observed.values().sum::<u64>()];
    if n.contains(&0) || bins > MOST_BINS {
        return None;
    }
    let mut folded = [0, 0];
    let mut inside = Counts::new();
    for (&bin, &count) in observed {
        folded[0] += if bin < low { count } else { 0 };
        folded[1] += if bin > high { count } else { 0 };
        *inside.entry(bin.clamp(low, high)).or_default() += count;
    }
    let scale = n[1] as f64 / n[0] as f64;
    let term = |(bin, &count): (&i64, &u64)| {
        let e = count as f64 * scale;
        (inside.get(bin).copied().unwrap_or(0) as f64 - e).powi(2) / e
    };
    let statistic: f64 = expected.iter().map(term).sum();
    let law = ChiSquared::new(bins as f64).ok()?;
    let critical = law.inverse_cdf(1.0 - ALPHA);
    let per_100 = statistic * 100.0 / n[1] as f64;
    Some(Test {
        range_us: [low, high],
        bins: bins as u64,
        n,
        folded,
        empty_bins: bins as u64 - expected.len() as u64,
        in_empty: inside.iter().filter(|(bin, _)| !expected.contains_key(bin)).map(|(_, count)| count).sum(),
        statistic,
        critical,
        lower_critical: law.inverse_cdf(ALPHA),
        rejected: statistic > critical,
        per_100,
        rejected_per_100: per_100 > critical,
        rejected_from_n: (statistic > 0.0).then(|| critical * n[1] as f64 / statistic),
    })
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;

    fn counts(of: &[(i64, u64)]) -> Counts {
        of.iter().copied().collect()
    }

    #[test]
    fn twenty_two_bins_have_the_published_critical_value() {
        // Table 4; the bins themselves are not published.
        let flat: Vec<(i64, u64)> = (0..22).map(|bin| (bin, 10)).collect();
        let result = test(&counts(&flat), &counts(&flat)).unwrap();
        assert_eq!(result.bins, 22);
        assert!(
            (result.critical - 33.924).abs() < 5e-4 && (result.lower_critical - 12.338).abs() < 5e-4,
            "{result:?}"
        );
        assert!(!result.rejected && result.statistic == 0.0 && result.rejected_from_n.is_none());
    }

    #[test]
    fn ends_are_folded_in_and_empty_bins_have_no_term() {
        let reference = counts(&[(2, 50), (3, 30), (5, 20)]);
        let observed = counts(&[(0, 10), (2, 40), (3, 25), (4, 5), (5, 10), (9, 10)]);
        let result = test(&reference, &observed).unwrap();
        assert_eq!((result.range_us, result.bins, result.folded), ([2, 5], 4, [10, 10]));
        assert_eq!((result.empty_bins, result.in_empty), (1, 5));
        // O = 50, 25, 20 against E = 50, 30, 20; the five samples in bin 4 are nowhere.
        assert!((result.statistic - 25.0 / 30.0).abs() < 1e-12);
    }

    #[test]
    fn the_same_shares_are_accepted_or_rejected_by_their_number() {
        let (e, o) = ([(1, 60), (2, 40)], [(1, 55), (2, 45)]);
        let times =
            |of: &[(i64, u64)], k: u64| counts(&of.iter().map(|(bin, n)| (*bin, n * k)).collect::<Vec<_>>());
        let [few, many] = [1, 60_000].map(|k| test(&times(&e, k), &times(&o, k)).unwrap());
        assert!(!few.rejected && many.rejected && many.statistic > 60_000.0 * 0.99 * few.statistic);
        assert!((few.per_100 - many.per_100).abs() < 1e-9);
        assert!((few.rejected_from_n.unwrap() - many.rejected_from_n.unwrap()).abs() < 1e-3);
    }

    #[test]
    fn totals_that_differ_are_scaled() {
        let result = test(&counts(&[(1, 600), (2, 400)]), &counts(&[(1, 60), (2, 40)])).unwrap();
        assert_eq!(result.statistic, 0.0);
        assert!(test(&Counts::new(), &counts(&[(1, 1)])).is_none());
        assert!(test(&counts(&[(0, 1), (MOST_BINS, 1)]), &counts(&[(1, 1)])).is_none());
    }
}
