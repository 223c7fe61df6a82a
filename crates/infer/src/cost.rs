//! How long jobs executed: the most that any n jobs in a row took together.
//!
//! Observed execution times, however many, are no worst case; the curve has its n beside it.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Computes the curve of a stream. Memory: `most` sums.
#[derive(Debug, Clone)]
pub struct Costs {
    most: usize,
    /// Sums of the last 1, 2, … jobs, the longest first.
    sums_ns: VecDeque<u64>,
    curve_ns: Vec<u64>,
    n: u64,
    total_ns: u64,
}

/// The curve, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostCurve {
    /// For n jobs in a row, from 1: the most that they took together, ns.
    pub curve_ns: Vec<u64>,
    /// Jobs observed.
    pub n: u64,
    /// What all of them took, ns.
    pub total_ns: u64,
}

impl CostCurve {
    /// The most that one job took, ns.
    pub fn most_ns(&self) -> u64 {
        self.curve_ns.first().copied().unwrap_or(0)
    }
}

impl Costs {
    /// For up to `most` jobs in a row, at least 1.
    pub fn new(most: usize) -> Self {
        let (sums_ns, curve_ns) = (VecDeque::new(), Vec::new());
        Self { most: most.max(1), sums_ns, curve_ns, n: 0, total_ns: 0 }
    }

    /// Adds the next job.
    pub fn add(&mut self, cost_ns: u64) {
        self.n += 1;
        self.total_ns = self.total_ns.saturating_add(cost_ns);
        if self.sums_ns.len() == self.most {
            self.sums_ns.pop_front();
        }
        self.sums_ns.push_back(0);
        for (at, sum_ns) in self.sums_ns.iter_mut().rev().enumerate() {
            *sum_ns = sum_ns.saturating_add(cost_ns);
            match self.curve_ns.get_mut(at) {
                Some(most_ns) => *most_ns = sum_ns.max(most_ns).to_owned(),
                None => self.curve_ns.push(*sum_ns),
            }
        }
    }

    /// Jobs of which one was not observed come next: no sum reaches across.
    pub fn interrupt(&mut self) {
        self.sums_ns.clear();
    }

    /// What has been observed so far.
    pub fn curve(&self) -> CostCurve {
        CostCurve { curve_ns: self.curve_ns.clone(), n: self.n, total_ns: self.total_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_sum_reaches_across_a_gap() {
        let mut costs = Costs::new(3);
        [5, 1].into_iter().for_each(|cost| costs.add(cost));
        costs.interrupt();
        costs.add(4);
        assert_eq!(costs.curve(), CostCurve { curve_ns: vec![5, 6], n: 3, total_ns: 10 });
    }

    proptest! {
        #[test]
        fn the_curve_is_the_largest_sum_of_each_length(
            jobs in prop::collection::vec(0u64..1000, 1..40),
            most in 1usize..10,
        ) {
            let mut costs = Costs::new(most);
            jobs.iter().for_each(|cost| costs.add(*cost));
            let largest = |n| jobs.windows(n).map(|some| some.iter().sum()).max().unwrap();
            let expected: Vec<u64> = (1..=most.min(jobs.len())).map(largest).collect();
            prop_assert_eq!(costs.curve().curve_ns, expected);
        }
    }
}
