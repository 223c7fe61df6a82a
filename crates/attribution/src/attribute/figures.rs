//! A distribution that grows value by value: exact count, mean, minimum and maximum; quantiles to
//! within 1 %.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A distribution, ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Values.
    pub n: u64,
    /// Smallest.
    pub min_ns: i64,
    /// Mean.
    pub mean_ns: f64,
    /// Median, within 1 %.
    pub median_ns: i64,
    /// 99th percentile, within 1 %.
    pub p99_ns: i64,
    /// Observed maximum.
    pub max_ns: i64,
}

/// Values of ns. Those below zero (an early timer) count as 0 in the quantiles only.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    n: u64,
    total_ns: i128,
    min_ns: i64,
    max_ns: i64,
    /// None until the first value, and where the histogram cannot be made.
    histogram: Option<Histogram<u32>>,
}

impl Sums {
    /// Takes a value.
    pub(crate) fn add(&mut self, value_ns: i64) {
        if self.n == 0 {
            (self.min_ns, self.max_ns) = (value_ns, value_ns);
            // Two significant digits: a few KB a histogram.
            self.histogram = Histogram::new(2).ok();
        }
        self.n += 1;
        self.total_ns += i128::from(value_ns);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
        if let Some(histogram) = &mut self.histogram {
            // It grows with its values; values it cannot hold are in the exact sums.
            let _ = histogram.record(value_ns.max(0).cast_unsigned());
        }
    }

    /// The distribution; `None` without values.
    pub(crate) fn summary(&self) -> Option<Figures> {
        let histogram = self.histogram.as_ref()?;
        let quantile = |q: f64| {
            (histogram.value_at_quantile(q).min(i64::MAX as u64) as i64).clamp(self.min_ns, self.max_ns)
        };
        Some(Figures {
            n: self.n,
            min_ns: self.min_ns,
            mean_ns: self.total_ns as f64 / self.n as f64,
            median_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            max_ns: self.max_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_within_one_per_cent(mut values in prop::collection::vec(0i64..5_000_000_000, 1..200)) {
            let mut sums = Sums::default();
            values.iter().for_each(|value| sums.add(*value));
            values.sort_unstable();
            let summary = sums.summary().unwrap();
            let rank = |q: f64| values[((q * values.len() as f64).ceil() as usize).max(1) - 1] as f64;
            for (found, wanted) in [(summary.median_ns, rank(0.5)), (summary.p99_ns, rank(0.99))] {
                prop_assert!((found as f64 - wanted).abs() <= wanted * 0.01 + 1.0, "{found} {wanted}");
            }
            prop_assert_eq!((summary.min_ns, summary.max_ns), (values[0], *values.last().unwrap()));
        }
    }

    #[test]
    fn no_values_have_no_summary() {
        assert!(Sums::default().summary().is_none());
    }
}
