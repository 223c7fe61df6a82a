//! A distribution known by counts in bins of one width, as other tools store their samples.
//!
//! A value is taken as the lower edge of its bin, as the tools themselves report it; every value is
//! known to one width. What lies beyond the last bin is counted, and only its number and the tool's
//! own maximum are known.

use stats::nearest_rank;

/// Counts by bin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bins {
    /// Lower edges in ns with their counts, ascending, no count 0.
    pub counts: Vec<(i64, u64)>,
    /// Width of a bin, ns.
    pub width_ns: u64,
    /// Samples beyond the last bin.
    pub over: u64,
    /// The lower edge of what is beyond, ns.
    pub over_from_ns: Option<i64>,
    /// The largest value that the tool saw, ns.
    pub max_ns: Option<i64>,
    /// The smallest.
    pub min_ns: Option<i64>,
}

impl Bins {
    /// All samples, those beyond the last bin included.
    pub fn n(&self) -> u64 {
        self.counts.iter().fold(self.over, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The bin of the nearest-rank quantile of `parts` in 100,000; `None` with fewer than ten
    /// samples above it, and where it lies beyond the last bin.
    pub fn quantile(&self, parts: u64) -> Option<i64> {
        let n = usize::try_from(self.n()).ok()?;
        let rank = nearest_rank(n, parts);
        if rank == 0 || n < rank + 10 {
            return None;
        }
        let mut upto = 0;
        let reached = |&(edge, count): &(i64, u64)| {
            upto = u64::saturating_add(upto, count);
            (upto >= rank as u64).then_some(edge)
        };
        self.counts.iter().find_map(reached)
    }

    /// Samples of at least `from_ns`; `None` where that lies beyond the last bin: the number is
    /// unknown.
    pub fn at_least(&self, from_ns: i64) -> Option<u64> {
        if self.over > 0 && self.over_from_ns.is_none_or(|over| from_ns > over) {
            return None;
        }
        let counted = self.counts.iter().filter(|(edge, _)| *edge >= from_ns);
        Some(counted.fold(self.over, |sum, (_, count)| sum.saturating_add(*count)))
    }

    /// Both together: two threads of one tool. The coarser width and the lower limit count.
    pub fn merge(&mut self, other: &Self) {
        let mut counts = std::mem::take(&mut self.counts);
        counts.extend_from_slice(&other.counts);
        counts.sort_unstable();
        counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 = if same { kept.1.saturating_add(next.1) } else { kept.1 };
            same
        });
        self.counts = counts;
        self.width_ns = self.width_ns.max(other.width_ns);
        self.over = self.over.saturating_add(other.over);
        self.over_from_ns = match (self.over_from_ns, other.over_from_ns) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.min_ns = match (self.min_ns, other.min_ns) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bins(counts: &[(i64, u64)], over: u64) -> Bins {
        let over_from_ns = (over > 0).then_some(100_000);
        Bins { counts: counts.to_vec(), width_ns: 1000, over, over_from_ns, ..Bins::default() }
    }

    #[test]
    fn what_is_beyond_the_last_bin_is_not_guessed() {
        let histogram = bins(&[(1000, 900), (5000, 60)], 40);
        assert_eq!(histogram.quantile(50_000), Some(1000));
        assert_eq!(histogram.quantile(95_000), Some(5000));
        assert_eq!(histogram.quantile(97_000), None, "beyond the last bin");
        assert_eq!(histogram.at_least(2000), Some(100));
        assert_eq!(histogram.at_least(100_000), Some(40));
        assert_eq!(histogram.at_least(100_001), None);
        assert_eq!(bins(&[(1000, 5)], 0).at_least(1_000_000), Some(0));
        assert_eq!(bins(&[(1000, 19)], 0).quantile(50_000), None, "nine above");
        assert_eq!(Bins::default().quantile(50_000), None);
    }

    proptest! {
        #[test]
        fn a_merge_is_the_bins_of_all(one in proptest::collection::vec(0i64..50, 0..200), two in proptest::collection::vec(0i64..50, 0..200)) {
            let of = |values: &[i64]| {
                let mut sum = Bins::default();
                values.iter().for_each(|&value| sum.merge(&bins(&[(value, 1)], 0)));
                sum
            };
            let mut merged = of(&one);
            merged.merge(&of(&two));
            let all: Vec<i64> = one.iter().chain(&two).copied().collect();
            prop_assert_eq!(&merged, &of(&all));
            prop_assert_eq!(merged.n(), all.len() as u64);
        }
    }
}
