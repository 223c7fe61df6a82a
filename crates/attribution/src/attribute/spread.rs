//! The durations of one row's events, in little memory: there are hundreds of rows, and each event
//! goes to another one, so a row must stay in the cache.
//!
//! The buckets are those of an HDR histogram of two significant digits: 256 of one ns, then 128 for
//! each further power of two. Counts are bytes that carry; the histogram is made on request.

use hdrhistogram::Histogram;
use rustc_hash::FxHashMap;

/// The number of one-ns buckets, and of buckets for each further power of two.
const SINGLE: u64 = 256;
const HALF: u64 = SINGLE / 2;

/// A distribution.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread {
    max_ns: u64,
    counts: Vec<u8>,
    /// Full bytes, by bucket.
    carried: FxHashMap<u32, u64>,
}

/// The number of the bucket of a value.
#[inline]
fn bucket(ns: u64) -> usize {
    let shift = (ns | (SINGLE - 1)).ilog2() - HALF.ilog2();
    (u64::from(shift) * HALF + (ns >> shift)) as usize
}

/// The lowest value of a bucket.
fn lowest(bucket: u64) -> u64 {
    let shift = (bucket / HALF).saturating_sub(1);
    (bucket - shift * HALF) << shift
}

impl Spread {
    /// Adds a value.
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        self.max_ns = self.max_ns.max(ns);
        let at = bucket(ns);
        if at >= self.counts.len() {
            self.counts.resize((at + 1).next_multiple_of(HALF as usize), 0);
        }
        let count = &mut self.counts[at];
        *count = count.wrapping_add(1);
        if *count == 0 {
            *self.carried.entry(at as u32).or_default() += 1;
        }
    }

    #[cfg(test)]
    fn len(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum::<u64>()
            + self.carried.values().map(|full| full << u8::BITS).sum::<u64>()
    }

    /// The largest value, to the nanosecond.
    pub(crate) fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The same as a histogram.
    pub(crate) fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new(2).expect("two significant digits are allowed");
        let last = bucket(self.max_ns) as u64;
        for (at, count) in (0..).zip(&self.counts) {
            let full = self.carried.get(&(at as u32)).copied().unwrap_or(0);
            let mut count = u64::from(*count) + (full << u8::BITS);
            if at == last && count > 0 {
                // It grows as needed; a time beyond its range, 500 years, is invalid.
                let _ = histogram.record(self.max_ns);
                count -= 1;
            }
            if count > 0 {
                let _ = histogram.record_n(lowest(at), count);
            }
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_histogram_that_takes_each_value(
            values in prop::collection::vec((0u32..60, any::<u64>(), 1u64..700), 0..40),
        ) {
            let mut spread = Spread::default();
            let mut histogram: Histogram<u64> = Histogram::new(2).unwrap();
            for (bits, value, times) in values {
                let ns = value & ((2 << bits) - 1);
                (0..times).for_each(|_| spread.add(ns));
                histogram.record_n(ns, times).unwrap();
            }
            let ours = spread.histogram();
            prop_assert_eq!((spread.len(), ours.len(), ours.max()), (histogram.len(), histogram.len(), histogram.max()));
            prop_assert_eq!(histogram.highest_equivalent(spread.max_ns()), histogram.max());
            for q in [0.0, 0.01, 0.5, 0.9, 0.99, 1.0] {
                prop_assert_eq!(ours.value_at_quantile(q), histogram.value_at_quantile(q));
            }
        }
    }

    #[test]
    fn buckets_follow_one_another_without_gaps() {
        for at in 0..7000u64 {
            assert_eq!(bucket(lowest(at)) as u64, at);
            assert_eq!(bucket(lowest(at + 1) - 1) as u64, at);
        }
        let mut spread = Spread::default();
        spread.add(u64::MAX);
        assert_eq!(spread.len(), 1);
    }
}
