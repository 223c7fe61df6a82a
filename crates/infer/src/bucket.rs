//! Demand that follows no task model: in any interval at most a burst, and beside it a rate.
//!
//! A leaky bucket (Cruz, "A Calculus for Network Delay, Part I", IEEE Transactions on Information
//! Theory 37, 1991): for a given rate the least burst is the highest level that the bucket reached.
//! Which rate is best depends on the interval; the levels of many are kept.

use serde::{Deserialize, Serialize};

/// Rates that are tried, as a share of a CPU: the first, and the factor to the next.
const FIRST_RATE: f64 = 0.0001;
const FACTOR: f64 = 1.3;
const RATES: usize = 35;

/// In every interval of length d the demand was at most `burst_ns + rate · d`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Share of a CPU.
    pub rate: f64,
    /// The most beyond that, ns.
    pub burst_ns: u64,
    /// The longest single demand, ns.
    pub longest_ns: u64,
    /// How many there were.
    pub n: u64,
}

/// Levels of buckets, one for each rate. Memory: constant.
#[derive(Debug, Clone)]
pub struct Buckets {
    levels_ns: [f64; RATES],
    peaks_ns: [f64; RATES],
    last_ns: i64,
    longest_ns: u64,
    n: u64,
}

impl Default for Buckets {
    fn default() -> Self {
        let levels_ns = [0.0; RATES];
        Self { levels_ns, peaks_ns: levels_ns, last_ns: i64::MIN, longest_ns: 0, n: 0 }
    }
}

fn rates() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(FIRST_RATE), |rate| Some(rate * FACTOR))
}

impl Buckets {
    /// Adds a demand of so much time at a moment not before the last.
    pub fn add(&mut self, at_ns: i64, cost_ns: u64) {
        let passed_ns = at_ns.saturating_sub(self.last_ns).max(0) as f64;
        for ((level, peak), rate) in self.levels_ns.iter_mut().zip(&mut self.peaks_ns).zip(rates()) {
            *level = (*level - rate * passed_ns).max(0.0) + cost_ns as f64;
            *peak = level.max(*peak);
        }
        self.last_ns = at_ns;
        self.longest_ns = self.longest_ns.max(cost_ns);
        self.n += 1;
    }

    /// The bucket with the least demand in intervals of this length; `None` where nothing was
    /// demanded.
    pub fn best(&self, length_ns: u64) -> Option<Bucket> {
        let demand = |(peak, rate): (f64, f64)| peak + rate * length_ns as f64;
        let all = self.peaks_ns.iter().copied().zip(rates());
        let (peak, rate) = all.min_by(|a, b| demand(*a).total_cmp(&demand(*b)))?;
        let burst_ns = peak.ceil() as u64;
        (self.n > 0).then_some(Bucket { rate, burst_ns, longest_ns: self.longest_ns, n: self.n })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_demands_nothing() {
        assert_eq!(Buckets::default().best(1_000), None);
    }

    proptest! {
        #[test]
        fn no_interval_has_more(
            demands in prop::collection::vec((0i64..5_000, 1u64..3_000), 1..60),
            length in 1u64..100_000,
        ) {
            let mut at = 0;
            let demands: Vec<(i64, u64)> =
                demands.into_iter().map(|(gap, cost)| { at += gap; (at, cost) }).collect();
            let mut buckets = Buckets::default();
            demands.iter().for_each(|(at, cost)| buckets.add(*at, *cost));
            let bucket = buckets.best(length).unwrap();
            for first in 0..demands.len() {
                for last in first..demands.len() {
                    let total: u64 = demands[first..=last].iter().map(|one| one.1).sum();
                    let passed = (demands[last].0 - demands[first].0) as f64;
                    prop_assert!(total as f64 <= bucket.burst_ns as f64 + bucket.rate * passed + 1e-3);
                }
            }
        }
    }
}
