//! From where on the tail begins: the lowest threshold above which excesses are generalised Pareto.
//!
//! B. Bader, J. Yan and X. Zhang, "Automated threshold selection for extreme value analysis via
//! ordered goodness-of-fit tests with adjustment for false discovery rate", Annals of Applied
//! Statistics 12 (2018): thresholds from low to high, each with its Anderson–Darling test;
//! ForwardStop (G'Sell and others, JRSS B 78 (2016)) rejects the first k of which the mean of −ln(1
//! − p) is at most 0.1.

use super::goodness::{Goodness, goodness};
use super::law::{Law, Pareto};
use crate::extremal;
use crate::resample::generator;
use crate::serialize_as_array;
use serde::Deserialize;

/// Exceedances of the thresholds that are tried, most first; of a sample at most a tenth.
const EXCEEDANCES: [usize; 5] = [1_600, 800, 400, 200, 100];
/// Clusters that a fit needs.
pub(crate) const LEAST_CLUSTERS: usize = 50;
/// Level of ForwardStop.
const DISCOVERY: f64 = 0.1;
/// Draws of each test.
pub const DRAWS: usize = 199;

/// Excesses over a threshold, clusters as one.
#[derive(Debug, Clone)]
pub struct Peaks {
    /// The threshold.
    pub threshold_ns: i64,
    /// Values above it.
    pub exceedances: usize,
    /// Place in the series and value of the largest of each cluster, in the order of time.
    pub clusters: Vec<(u64, i64)>,
    /// Excesses of these, ascending, ns.
    pub excesses: Vec<f64>,
    /// 1 where the exceedances are too few to say.
    pub theta: f64,
}

/// Excesses over a threshold of values in the order of time; `blur` takes the steps out of values
/// that are known to a coarse unit only.
pub fn peaks(values: &[i64], threshold_ns: i64, blur: &dyn Fn(u64) -> f64) -> Peaks {
    let all = values.iter().enumerate().map(|(place, &value)| (place as u64, value));
    let above: Vec<(u64, i64)> = all.filter(|(_, value)| *value > threshold_ns).collect();
    let (clusters, theta) = extremal::clusters(&above);
    let mut excesses: Vec<f64> = clusters
        .iter()
        .map(|(place, value)| ((value - threshold_ns) as f64 + blur(*place)).max(f64::MIN_POSITIVE))
        .collect();
    excesses.sort_unstable_by(f64::total_cmp);
    Peaks { threshold_ns, exceedances: above.len(), clusters, excesses, theta: theta.unwrap_or(1.0) }
}

/// A threshold that was tried; in JSON `[threshold_ns, clusters, shape, p]`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Candidate {
    /// The threshold, ns.
    pub threshold_ns: f64,
    /// Clusters above it.
    pub clusters: f64,
    /// ξ of the law of their excesses.
    pub shape: f64,
    /// Probability of the Anderson–Darling test.
    pub p: f64,
}

serialize_as_array!(Candidate { threshold_ns, clusters, shape, p });

/// A threshold with its fit.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// What lies above it.
    pub peaks: Peaks,
    /// The law of the excesses.
    pub law: Pareto,
    /// Whether it is their law.
    pub goodness: Goodness,
    /// Thresholds that were tried, from low to high.
    pub tried: Vec<Candidate>,
    /// Whether its own test is passed; where none is, the highest threshold is given.
    pub fits: bool,
}

/// The lowest threshold that ForwardStop leaves; none where there is not one with enough clusters.
pub fn choose(values: &[i64], sorted: &[i64], blur: &dyn Fn(u64) -> f64) -> Option<Chosen> {
    let mut candidates: Vec<(Peaks, Pareto, Goodness)> = Vec::new();
    let mut before = None;
    for wanted in EXCEEDANCES.into_iter().filter(|&wanted| wanted <= sorted.len() / 10) {
        let threshold_ns = sorted[sorted.len() - 1 - wanted];
        if before == Some(threshold_ns) {
            continue;
        }
        before = Some(threshold_ns);
        let peaks = peaks(values, threshold_ns, blur);
        if peaks.clusters.len() < LEAST_CLUSTERS {
            continue;
        }
        let Some(law) = Pareto::fit(&peaks.excesses) else { continue };
        let mut random = generator(5, wanted as u64);
        let goodness = goodness(&peaks.excesses, &law, DRAWS, &mut random);
        candidates.push((peaks, law, goodness));
    }
    let p: Vec<f64> = candidates.iter().map(|(.., goodness)| goodness.anderson_darling_p).collect();
    let rejected = forward_stop(&p);
    let tried = candidates
        .iter()
        .map(|(peaks, law, goodness)| Candidate {
            threshold_ns: peaks.threshold_ns as f64,
            clusters: peaks.clusters.len() as f64,
            shape: law.shape,
            p: goodness.anderson_darling_p,
        })
        .collect();
    let at = rejected.min(candidates.len().checked_sub(1)?);
    let (peaks, law, goodness) = candidates.swap_remove(at);
    Some(Chosen { peaks, law, goodness, tried, fits: rejected < p.len() })
}

/// How many of the first tests are rejected.
pub fn forward_stop(p: &[f64]) -> usize {
    let mut sum = 0.0;
    let mut rejected = 0;
    for (at, p) in p.iter().enumerate() {
        sum -= (-p.min(1.0 - 1e-12)).ln_1p();
        if sum / (at as f64 + 1.0) <= DISCOVERY {
            rejected = at + 1;
        }
    }
    rejected
}
