//! Bounds beyond the largest sample: laws of extremes fitted to the tail of one window, with every
//! reason against them.
//!
//! Only on request. Two ways that should agree: excesses over a threshold, clusters as one, by a
//! generalised Pareto law; maxima of blocks by a generalised law of extreme values, its shape not
//! forced to Gumbel's (L. Palma Silva, D. Maxim and others, "On using GEV or Gumbel models when
//! applying EVT for probabilistic WCET estimation", RTSS 2017). What they say is an *estimate under
//! stated assumptions*: the same mechanisms, at the same rates, as long as this. Mechanisms that
//! are rarer than the window is long are not in it, and no test can see that they are missing (F.
//! Cazorla and others, WCET 2013; the counter-example of `tests.rs`).
//!
//! The estimate is refused, with a reason, if the series changes, if the fitted values depend on
//! each other, if no threshold gives a Pareto tail, if the largest sample does not fit the tail of
//! the others, if the first half does not predict the second, if the two ways disagree, and beyond
//! a hundred times the samples.

mod conclude;
#[cfg(test)]
mod tests;

pub use conclude::{estimate, of_window};
use model::sample::ProbeKind;
use serde::{Deserialize, Serialize};
use stats::serialize_as_array;
use stats::tail::goodness::Goodness;
use stats::tail::law::{Extreme, Pareto};
use stats::tail::threshold::Candidate;

/// Levels farther out than so many times the samples are refused.
pub const FARTHEST: f64 = 100.0;
/// Fewer samples have no tail to fit.
pub const LEAST_SAMPLES: usize = 10_000;

/// The tail of one window on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// Number of its thread in the window.
    pub thread: u32,
    /// Releases, missed ones charged.
    pub n: u64,
    /// The largest of them, ns.
    pub observed_max_ns: Option<i64>,
    /// Upper bound of the rate of an event that never occurred in n releases: 3/n.
    pub unseen_rate: f64,
    /// Whether the estimate stands; otherwise `reasons` say why not.
    pub estimated: bool,
    /// Why it is refused, one sentence each; empty where it stands.
    pub reasons: Vec<String>,
    /// Every check that was made.
    pub checks: Vec<Check>,
    /// Excesses over a threshold.
    pub pareto: Option<ParetoFit>,
    /// Maxima of blocks.
    pub maxima: Option<MaximaFit>,
    /// Levels, nearest first; none where the estimate is refused.
    pub levels: Vec<Level>,
    /// For a chart, of the Pareto fit: excess quantiles, ns.
    pub qq_ns: Vec<QuantilePair>,
    /// For a chart: levels of the Pareto fit, also where the estimate is refused.
    pub curve: Vec<CurvePoint>,
    /// For a chart: `[releases, value_ns]` of the largest clusters as observed.
    pub observed: Vec<[f64; 2]>,
}

/// The same quantile observed and by the law; in JSON `[observed, fitted]`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct QuantilePair {
    /// As observed.
    pub observed: f64,
    /// By the law.
    pub fitted: f64,
}

serialize_as_array!(QuantilePair { observed, fitted });

/// A level and its 95 % interval; in JSON `[releases, level_ns, low_ns, high_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct CurvePoint {
    /// Reached once in so many releases.
    pub releases: f64,
    /// The level.
    pub level_ns: f64,
    /// Lower end.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
}

serialize_as_array!(CurvePoint { releases, level_ns, low_ns, high_ns });

/// One check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The checked property.
    pub name: String,
    /// The statistic; none where there was too little to say.
    pub statistic: Option<f64>,
    /// Probability of one as extreme under the hypothesis.
    pub p: Option<f64>,
    /// Whether it lets the estimate pass.
    pub passed: bool,
}

/// Excesses over a threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParetoFit {
    /// The threshold, ns.
    pub threshold_ns: i64,
    /// Samples above it.
    pub exceedances: u64,
    /// Clusters that they form: what was fitted.
    pub clusters: u64,
    /// Extremal index.
    pub theta: f64,
    /// The law of excesses.
    pub law: Pareto,
    /// 95 % interval of ξ.
    pub shape_interval: [f64; 2],
    /// Whether it is the law.
    pub goodness: Goodness,
    /// Thresholds that were tried, from low to high.
    pub tried: Vec<Candidate>,
}

/// Maxima of blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaximaFit {
    /// Releases a block.
    pub block: u64,
    /// Blocks.
    pub blocks: u64,
    /// The law of their maxima.
    pub law: Extreme,
    /// 95 % interval of ξ.
    pub shape_interval: [f64; 2],
    /// Whether it is the law.
    pub goodness: Goodness,
}

/// A level that is reached once in so many releases on average, clusters counted once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Once in so many releases.
    pub releases: f64,
    /// By excesses, ns.
    pub pareto_ns: f64,
    /// 95 % interval of that, ns.
    pub pareto_interval_ns: [f64; 2],
    /// By maxima, ns.
    pub maxima_ns: f64,
    /// 95 % interval of that, ns.
    pub maxima_interval_ns: [f64; 2],
}
