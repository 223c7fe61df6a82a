//! How large values come together: the extremal index, and the clusters that follow from it.
//!
//! Of a stationary series the largest of n samples is distributed as that of θ·n independent ones;
//! 1/θ is the mean size of a cluster of exceedances. The intervals estimator and its way of
//! declustering need no length of a run chosen by hand: C. Ferro and J. Segers, "Inference for
//! clusters of extreme values", Journal of the Royal Statistical Society B 65 (2003).

use serde::{Deserialize, Serialize};

/// Fewer exceedances give no index.
const LEAST: usize = 20;

/// How exceedances of a threshold cluster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Extremal {
    /// The threshold, ns.
    pub threshold_ns: i64,
    /// Samples above it.
    pub exceedances: u64,
    /// The extremal index: 1 where they come alone.
    pub theta: f64,
    /// Clusters that they form.
    pub clusters: u64,
}

/// The extremal index by the places of exceedances in the series, ascending; none for few.
pub fn index(places: &[u64]) -> Option<f64> {
    if places.len() < LEAST {
        return None;
    }
    let gaps = || places.windows(2).map(|pair| (pair[1] - pair[0]).max(1) as f64);
    let n = places.len() as f64 - 1.0;
    let theta = if gaps().fold(0.0, f64::max) <= 2.0 {
        2.0 * gaps().sum::<f64>().powi(2) / (n * gaps().map(|gap| gap * gap).sum::<f64>())
    } else {
        let sum: f64 = gaps().map(|gap| gap - 1.0).sum();
        2.0 * sum * sum / (n * gaps().map(|gap| (gap - 1.0) * (gap - 2.0)).sum::<f64>())
    };
    Some(theta.clamp(1.0 / places.len() as f64, 1.0))
}

/// The gap between exceedances beyond which a new cluster begins.
fn separation(places: &[u64], theta: f64) -> u64 {
    let mut gaps: Vec<u64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable_by_key(|gap| std::cmp::Reverse(*gap));
    // As many gaps separate as there are clusters, less one; equal gaps all separate or none does.
    let wanted = ((theta * places.len() as f64) as usize).min(gaps.len().saturating_sub(1));
    gaps.get(wanted).copied().unwrap_or(0)
}

/// The largest exceedance of each cluster, as `(place, value)`, in the order of time; and the index
/// that made them.
pub fn clusters(exceedances: &[(u64, i64)]) -> (Vec<(u64, i64)>, Option<f64>) {
    let places: Vec<u64> = exceedances.iter().map(|(place, _)| *place).collect();
    let Some(theta) = index(&places) else { return (exceedances.to_vec(), None) };
    let apart = separation(&places, theta);
    let mut peaks: Vec<(u64, i64)> = Vec::new();
    let mut last = None;
    for &(place, value) in exceedances {
        let goes_on = last.is_some_and(|last| place - last <= apart) && theta < 1.0;
        match peaks.last_mut() {
            Some(peak) if goes_on => {
                if value > peak.1 {
                    *peak = (place, value);
                }
            }
            _ => peaks.push((place, value)),
        }
        last = Some(place);
    }
    (peaks, Some(theta))
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use fixture::Ar1;

    /// Exceedances of the upper hundredth.
    fn above(values: &[i64]) -> Vec<(u64, i64)> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let limit = sorted[sorted.len() - sorted.len() / 100 - 1];
        let all = values.iter().enumerate().map(|(at, &value)| (at as u64, value));
        all.filter(|(_, value)| *value > limit).collect()
    }

    #[test]
    fn independent_samples_have_an_index_of_one() {
        let values = Ar1::new(0.0, 11).values(50_000);
        let (peaks, theta) = clusters(&above(&values));
        assert!(theta.unwrap() > 0.9, "{theta:?}");
        assert!(peaks.len() >= 450, "{}", peaks.len());
    }

    #[test]
    fn maxima_of_four_neighbours_have_an_index_of_a_quarter() {
        // Leadbetter, Lindgren & Rootzén, "Extremes and Related Properties of Random Sequences and
        // Processes", 1983, §3.7.
        let alone = Ar1::new(0.0, 12).values(80_003);
        let values: Vec<i64> = alone.windows(4).map(|four| four.iter().copied().max().unwrap()).collect();
        let exceedances = above(&values);
        let (peaks, theta) = clusters(&exceedances);
        assert!((theta.unwrap() - 0.25).abs() < 0.05, "{theta:?}");
        assert!(
            (peaks.len() as f64 / (exceedances.len() as f64 / 4.0) - 1.0).abs() < 0.25,
            "{}",
            peaks.len()
        );
        let largest = values.iter().max();
        assert_eq!(peaks.iter().map(|(_, value)| value).max(), largest);
    }

    #[test]
    fn few_exceedances_stay_as_they_are() {
        let few = [(1, 5), (2, 6)];
        assert_eq!(clusters(&few), (few.to_vec(), None));
        assert_eq!(index(&[]), None);
    }
}
