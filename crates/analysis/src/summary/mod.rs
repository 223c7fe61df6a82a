//! One series of samples in bounded memory, however long: a hundred megabytes would hold it all,
//! ten are used.
//!
//! The same statistics as those of a whole run ([`stats::series`]), in one pass over a samples
//! file: losses and missed releases, quantiles, exceedances, the largest samples with their times.
//! Quantiles are exact up to a millisecond ([`counts`]). In place of a bootstrap their intervals
//! are those of ranks: the exact binomial interval of the effective number (C. Woodruff,
//! "Confidence intervals for medians and other position measures", Journal of the American
//! Statistical Association 47 (1952)), with the autocorrelation time of each level from [`cells`].

mod cells;
mod counts;
mod stream;
#[cfg(test)]
mod tests;

use crate::distribution::THRESHOLDS_NS;
use cells::Cells;
use counts::Counts;
use model::sample::ProbeKind;
use serde::{Deserialize, Serialize};
use stats::bounds::share_interval;
use stats::sampled::{Exceedance, Quantile};
use stats::serialize_as_array;
use stats::series::{ABOVE, LEVELS, deepening, exceedance};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use stream::{of_file, of_run};

/// The largest samples that are kept with their times.
pub const LARGEST: usize = 100;

/// The summary of a samples file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Where it is.
    pub file: String,
    /// The probe.
    pub probe: ProbeKind,
    /// The phase.
    pub phase: String,
    /// The CPU.
    pub cpu: u32,
    /// Number of the measuring thread in the window.
    pub thread: u32,
    /// Interval between releases, ns.
    pub period_ns: Option<u64>,
    /// Samples that count.
    pub n: u64,
    /// Samples stored but not counted (first, warm-up, clock step).
    pub excluded: u64,
    /// Releases that passed unserved, charged in all statistics.
    pub missed: u64,
    /// Samples lost to a full ring; none where only the samples file is known.
    pub ring_lost: Option<u64>,
    /// From the first sample to the last, ns.
    pub span_ns: i64,
    /// Samples with a negative value: woken early.
    pub early: u64,
    /// Smallest value.
    pub min_ns: Option<i64>,
    /// Observed maximum.
    pub observed_max_ns: Option<i64>,
    /// Quantiles of all releases or gaps.
    pub quantiles: Vec<Quantile>,
    /// Shares at or above thresholds.
    pub exceedances: Vec<Exceedance>,
    /// The largest samples, largest first; missed releases aside.
    pub largest: Vec<Large>,
}

/// One of the largest samples; in JSON `[t_ns, value_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Large {
    /// When.
    pub t_ns: i64,
    /// Its value.
    pub value_ns: i64,
}

serialize_as_array!(Large { t_ns, value_ns });

/// A summary under construction.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    counts: Counts,
    cells: Cells,
    pub(crate) n: u64,
    pub(crate) excluded: u64,
    pub(crate) missed: u64,
    pub(crate) span: Option<[i64; 2]>,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    early: u64,
    largest: BinaryHeap<Reverse<[i64; 2]>>,
}

impl Builder {
    /// The next releases or gaps, in the order of time.
    pub(crate) fn add(&mut self, values: &[i64]) {
        let (Some(least), Some(most)) = (values.iter().min(), values.iter().max()) else { return };
        self.min_ns = Some(self.min_ns.map_or(*least, |min| min.min(*least)));
        self.max_ns = Some(self.max_ns.map_or(*most, |max| max.max(*most)));
        values.iter().for_each(|&value| self.counts.add(value));
        if *least < 0 {
            self.early += values.iter().filter(|&&value| value < 0).count() as u64;
        }
        self.cells.add(values);
    }

    /// Whether a sample of this value would be among the largest.
    pub(crate) fn large(&self, value_ns: i64) -> bool {
        self.largest.len() < LARGEST
            || self.largest.peek().is_some_and(|Reverse([least, _])| value_ns > *least)
    }

    /// Keeps a sample if it is among the largest.
    pub(crate) fn offer(&mut self, t_ns: i64, value_ns: i64) {
        if !self.large(value_ns) {
            return;
        }
        self.largest.push(Reverse([value_ns, t_ns]));
        if self.largest.len() > LARGEST {
            self.largest.pop();
        }
    }

    /// The statistics. `limits_ns`: further thresholds.
    fn finish(self, limits_ns: &[i64], from_ns: Option<u64>) -> Figures {
        let n = self.counts.steps().map(|(_, count)| count).sum::<u64>();
        let quantiles = LEVELS.iter().map(|&parts| self.quantile(parts, n)).collect();
        let span_ns = self.span.map_or(0, |[first, last]| last.saturating_sub(first));
        let from = from_ns.map_or(i64::MIN, |ns| ns.min(i64::MAX as u64) as i64);
        let mut thresholds: Vec<i64> =
            THRESHOLDS_NS.iter().chain(limits_ns).copied().filter(|&limit| limit >= from).collect();
        thresholds.sort_unstable();
        thresholds.dedup();
        let at_least =
            |limit: i64| self.counts.steps().filter(|(value, _)| *value >= limit).map(|(_, n)| n).sum();
        let counts = thresholds.iter().map(|&limit| (limit, at_least(limit), self.cells.tau(limit)));
        let counts: Vec<(i64, u64, stats::effective::Tau)> = counts.collect();
        let exceedances = deepening(&counts, n)
            .into_iter()
            .map(|(limit, count, tau)| exceedance(limit, count, n, tau, span_ns.max(0) as u64))
            .collect();
        let mut largest: Vec<Large> =
            self.largest.into_iter().map(|Reverse([value_ns, t_ns])| Large { t_ns, value_ns }).collect();
        largest.sort_unstable_by_key(|one| (Reverse(one.value_ns), one.t_ns));
        Figures {
            quantiles,
            exceedances,
            largest,
            span_ns,
            early: self.early,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
        }
    }

    fn quantile(&self, parts: u64, n: u64) -> Quantile {
        let p = parts as f64 / 100_000.0;
        let mut quantile = Quantile { p, ..Quantile::default() };
        let rank = stats::nearest_rank(n as usize, parts) as u64;
        let Some(value) = self.at_rank(rank) else { return quantile };
        let above = self.cells.tau(value.saturating_add(1)).samples;
        let tau = above.max(self.cells.tau(value).samples);
        let effective = (n - rank) as f64 / tau;
        quantile.effective_above = Some(effective);
        if effective >= ABOVE {
            quantile.value_ns = Some(value);
            let worth = n as f64 / tau;
            let ends = share_interval(p * worth, worth).map(|share| (share * n as f64).ceil() as u64);
            let at = |rank: u64| self.at_rank(rank.clamp(1, n)).unwrap_or(value);
            quantile.interval_ns = Some(ends.map(at));
        }
        quantile
    }

    /// The value of a rank, from 1.
    fn at_rank(&self, rank: u64) -> Option<i64> {
        let mut upto = 0;
        let reached = |(value, count): (i64, u64)| {
            upto += count;
            (upto >= rank).then_some(value)
        };
        if rank == 0 { None } else { self.counts.steps().find_map(reached) }
    }
}

/// The quantiles of values in the order of time, with intervals by ranks.
pub fn quantiles_of(values: &[i64]) -> Vec<Quantile> {
    let mut builder = Builder::default();
    builder.add(values);
    LEVELS.iter().map(|&parts| builder.quantile(parts, values.len() as u64)).collect()
}

/// What a builder has found.
struct Figures {
    quantiles: Vec<Quantile>,
    exceedances: Vec<Exceedance>,
    largest: Vec<Large>,
    span_ns: i64,
    early: u64,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
}
