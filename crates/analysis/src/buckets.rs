//! Gaps of a busy loop in buckets of one width, as oslat prints them (rt-tests, `oslat.c`): a
//! bucket holds what lies between a whole number of widths and the next; what is longer than all of
//! them is counted apart, not in the last.

use model::Sample;
use serde::{Deserialize, Serialize};

/// A histogram of linear buckets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buckets {
    /// Width of a bucket, ns.
    pub width_ns: u64,
    /// Gaps from `k` widths on and shorter than `k + 1`, for each k from 0.
    pub counts: Vec<u64>,
    /// Gaps that are longer than all buckets.
    pub over: u64,
}

/// The gaps that statistics include, each shorter by `bias_ns`. A width of 0 is taken as 1.
pub fn buckets(samples: &[Sample], bias_ns: u64, width_ns: u64, count: usize) -> Buckets {
    let width_ns = width_ns.max(1);
    let mut buckets = Buckets { width_ns, counts: vec![0; count], over: 0 };
    for sample in samples.iter().filter(|sample| sample.counts()) {
        let length_ns = (sample.value_ns.max(0) as u64).saturating_sub(bias_ns);
        let at = usize::try_from(length_ns / width_ns).unwrap_or(usize::MAX);
        *buckets.counts.get_mut(at).unwrap_or(&mut buckets.over) += 1;
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::sample::flag;
    use proptest::prelude::*;

    fn gap(value_ns: i64) -> Sample {
        Sample { value_ns, ..Sample::default() }
    }

    #[test]
    fn a_bucket_begins_at_a_whole_number_of_widths() {
        let warm_up = Sample { flags: flag::WARM_UP, ..gap(700) };
        let gaps = [gap(499), gap(500), gap(999), gap(1_000), gap(1_499), gap(1_500), gap(90_000), warm_up];
        assert_eq!(buckets(&gaps, 0, 500, 3), Buckets { width_ns: 500, counts: vec![1, 2, 2], over: 2 });
        assert_eq!(buckets(&gaps, 10, 500, 1).counts, [2], "499 and 500 less the bias");
        assert_eq!(buckets(&gaps, 0, 500, 0).over, 7);
    }

    proptest! {
        #[test]
        fn no_gap_is_lost(values in proptest::collection::vec(-50i64..5_000_000, 0..100), bias in 0u64..1000, width in 0u64..10_000, count in 0usize..64) {
            let gaps: Vec<_> = values.iter().map(|&value| gap(value)).collect();
            let histogram = buckets(&gaps, bias, width, count);
            prop_assert_eq!(histogram.counts.len(), count);
            prop_assert_eq!(histogram.counts.iter().sum::<u64>() + histogram.over, gaps.len() as u64);
        }
    }
}
