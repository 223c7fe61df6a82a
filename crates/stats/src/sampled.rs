//! Statistics of one window's samples, as plain data: quantiles, exceedances, and what the samples
//! are worth. [`crate::series`] finds it.

use crate::extremal::Extremal;
use serde::{Deserialize, Serialize};

/// One quantile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// Probability, such as 0.999.
    pub p: f64,
    /// The value, `None` where it is not estimable: where fewer than ten effective samples lie
    /// above it.
    pub value_ns: Option<i64>,
    /// 95 % interval by a circular block bootstrap; none where too few blocks are drawn apart.
    #[serde(default)]
    pub interval_ns: Option<[i64; 2]>,
    /// Samples above it over the autocorrelation time of lying there; none without samples.
    #[serde(default)]
    pub effective_above: Option<f64>,
}

/// How the samples of one window depend on each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dependence {
    /// Integrated autocorrelation time of the values, samples.
    pub tau: f64,
    /// Whether that is short beside the window; otherwise it is a lower bound.
    pub resolved: bool,
    /// Samples over `tau`: how many independent ones they are worth for their mean.
    pub n_effective: f64,
    /// Block length by Politis and White, samples.
    pub politis_white: f64,
    /// Length of the blocks that were drawn for intervals, ns.
    pub block_ns: u64,
    /// Length of the cells that blocks consist of, ns.
    pub cell_ns: u64,
    /// How the largest come together; none for few.
    pub extremal: Option<Extremal>,
}

/// How many samples reached a threshold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Exceedance {
    /// The threshold.
    pub threshold_ns: i64,
    /// Releases, missed ones charged, or gaps at or above it.
    pub count: u64,
    /// `count` over all.
    pub share: f64,
    /// One-sided 95 % upper bound of the share (Clopper–Pearson of the effective number; 3 over
    /// that for a zero count).
    pub upper_share: f64,
    /// Two-sided 95 % interval of the share, of the effective number too.
    #[serde(default)]
    pub interval: [f64; 2],
    /// Integrated autocorrelation time of reaching it, samples; for fewer than ten events at least
    /// that of the next lower threshold.
    #[serde(default)]
    pub tau: f64,
    /// Events per hour.
    #[serde(default)]
    pub per_hour: f64,
    /// 95 % interval of that (Poisson, exact, of the effective number); for a zero count 3 over the
    /// time.
    #[serde(default)]
    pub per_hour_interval: [f64; 2],
}
