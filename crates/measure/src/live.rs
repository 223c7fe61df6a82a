//! What a probe has stored so far, for whoever watches: exact extremes and a histogram of three
//! digits.

use hdrhistogram::Histogram;
use model::Sample;
use model::sample::flag;
use std::collections::VecDeque;
use sys::clock::SECOND_NS;

/// Seconds whose largest values are kept.
const SECONDS: usize = 60;

/// Running statistics of one probe. Warm-up is left out, as in every statistic.
#[derive(Debug, Default)]
pub struct Live {
    /// Samples that count.
    pub count: u64,
    /// All samples, the first and the warm-up included.
    pub stored: u64,
    /// The largest value of all samples, the first and the warm-up included, ns.
    pub peak_ns: Option<i64>,
    /// Releases that passed unserved.
    pub missed: u64,
    /// Samples woken before their release.
    pub early: u64,
    /// Smallest value, ns.
    pub min_ns: Option<i64>,
    /// Largest value, ns.
    pub max_ns: Option<i64>,
    /// Last value, ns.
    pub last_ns: Option<i64>,
    /// Sum of the values, ns.
    pub sum_ns: i128,
    /// Seconds of CLOCK_MONOTONIC and the largest value of the samples that ended in each; newest
    /// last, seconds without a sample left out.
    maxima: VecDeque<(i64, i64)>,
    /// Made with the first sample; it grows by itself, so that no value falls off its end.
    histogram: Option<Histogram<u64>>,
}

impl Live {
    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample) {
        self.missed += u64::from(sample.missed);
        self.stored += 1;
        self.peak_ns = self.peak_ns.max(Some(sample.value_ns));
        if sample.flags & flag::NOT_COUNTED != 0 {
            return;
        }
        let value = sample.value_ns;
        self.count += 1;
        self.early += u64::from(value < 0);
        self.min_ns = Some(self.min_ns.map_or(value, |least| least.min(value)));
        self.max_ns = self.max_ns.max(Some(value));
        self.last_ns = Some(value);
        self.sum_ns += i128::from(value);
        self.in_its_second(sample.t_ns.saturating_add(value).div_euclid(SECOND_NS), value);
        if self.histogram.is_none() {
            self.histogram = Histogram::new(3).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            let _ = histogram.record(value.max(0) as u64);
        }
    }

    fn in_its_second(&mut self, second: i64, value: i64) {
        match self.maxima.back_mut() {
            Some((last, max)) if *last >= second => *max = value.max(*max),
            _ => {
                if self.maxima.len() == SECONDS {
                    self.maxima.pop_front();
                }
                self.maxima.push_back((second, value));
            }
        }
    }

    /// The largest value of each of the last 60 seconds up to `now_ns` (CLOCK_MONOTONIC), newest
    /// last, ns; 0 where there was none.
    pub fn maxima_ns(&self, now_ns: i64) -> Vec<i64> {
        let now = now_ns.div_euclid(SECOND_NS);
        let first = now - SECONDS as i64 + 1;
        let mut all = vec![0; SECONDS];
        for (second, max) in &self.maxima {
            if let Some(at) = usize::try_from(second - first).ok().and_then(|at| all.get_mut(at)) {
                *at = *max;
            }
        }
        all
    }

    /// A quantile to three digits, ns; none without samples. Early samples count as 0.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        self.histogram.as_ref().map(|histogram| histogram.value_at_quantile(share))
    }

    /// The mean, ns.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_leave_the_warm_up_out_and_keep_early_samples() {
        let mut live = Live::default();
        let sample = |value_ns, flags, missed| Sample { value_ns, flags, missed, ..Sample::default() };
        live.add(&sample(1_000_000, flag::FIRST, 0));
        live.add(&sample(-20, 0, 2));
        live.add(&sample(4_000_000_000, 0, 0));
        assert_eq!((live.count, live.missed, live.early), (2, 2, 1));
        assert_eq!((live.min_ns, live.max_ns), (Some(-20), Some(4_000_000_000)));
        live.add(&sample(5_000_000_000, flag::WARM_UP, 0));
        assert_eq!((live.stored, live.peak_ns, live.max_ns), (4, Some(5_000_000_000), Some(4_000_000_000)));
        let of_seconds = live.maxima_ns(5 * SECOND_NS);
        assert_eq!(
            (of_seconds.len(), of_seconds[53], of_seconds[58], of_seconds[59]),
            (60, -20, 4_000_000_000, 0)
        );
        assert!(live.maxima_ns(500 * SECOND_NS).iter().all(|max| *max == 0));
        assert_eq!(live.quantile_ns(0.5), Some(0));
        let top = live.quantile_ns(1.0).unwrap() as f64;
        assert!((top / 4e9 - 1.0).abs() < 1e-3, "{top}");
    }
}
