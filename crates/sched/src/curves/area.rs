//! A curve as one number: its area (SUA, schedulable utilization area: Chisholm, Ward, Kim and
//! Anderson, RTSS 2015), and weighted schedulability, sum U S(U) / sum U (Bastoni, Brandenburg and
//! Anderson, OSPERT 2010).
//!
//! The same sets run along the whole axis, so each set has an area of its own, and a curve's is
//! their mean. Its interval is that of a mean, and makes no assumption on how neighbouring points
//! depend on each other.

use super::Z95;

/// A number with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Area {
    /// Area under the curve by trapezoids, divided by the length of the axis: 1 where everything is
    /// accepted.
    pub area: f64,
    /// Its interval.
    pub area_interval: [f64; 2],
    /// Weighted schedulability.
    pub weighted: f64,
    /// Its interval.
    pub weighted_interval: [f64; 2],
}

/// Weights of the points of an axis, ascending, that sum to 1.
fn trapezoids(axis: &[f64]) -> Vec<f64> {
    let length = axis.last().copied().unwrap_or(0.0) - axis.first().copied().unwrap_or(0.0);
    let at = |i: usize| axis[i.min(axis.len() - 1)];
    let weight = |i: usize| (at(i + 1) - at(i.saturating_sub(1))) / 2.0 / length;
    if length > 0.0 { (0..axis.len()).map(weight).collect() } else { vec![1.0; axis.len()] }
}

fn weights(axis: &[f64]) -> Vec<f64> {
    let sum: f64 = axis.iter().sum();
    axis.iter().map(|x| x / sum).collect()
}

/// Mean and interval over sets of a weighted sum over points.
fn mean(values: impl Iterator<Item = f64>) -> (f64, [f64; 2]) {
    let values: Vec<f64> = values.collect();
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    let half = Z95 * (variance / n).sqrt();
    (mean, [mean - half, mean + half])
}

fn of_sets(weights: &[f64], points: &[Vec<bool>]) -> Vec<f64> {
    let sets = points.iter().map(Vec::len).min().unwrap_or(0);
    let of = |set: usize| {
        weights.iter().zip(points).map(|(weight, point)| if point[set] { *weight } else { 0.0 }).sum()
    };
    (0..sets).map(of).collect()
}

/// The numbers of one curve; `points[i]` are the verdicts at `axis[i]`, ascending.
pub fn area(axis: &[f64], points: &[Vec<bool>]) -> Area {
    let (area, area_interval) = mean(of_sets(&trapezoids(axis), points).into_iter());
    let (weighted, weighted_interval) = mean(of_sets(&weights(axis), points).into_iter());
    Area { area, area_interval, weighted, weighted_interval }
}

/// What the second curve gains over the first, set by set.
pub fn area_gain(axis: &[f64], first: &[Vec<bool>], second: &[Vec<bool>]) -> Area {
    let gain = |weights: &[f64]| {
        let (first, second) = (of_sets(weights, first), of_sets(weights, second));
        mean(first.into_iter().zip(second).map(|(first, second)| second - first))
    };
    let ((area, area_interval), (weighted, weighted_interval)) =
        (gain(&trapezoids(axis)), gain(&weights(axis)));
    Area { area, area_interval, weighted, weighted_interval }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let axis = [0.5, 0.7, 1.0];
        // Shares 1, 1/2, 0.
        let points = [vec![true, true], vec![true, false], vec![false, false]];
        let result = area(&axis, &points);
        // (0.2 * (1 + 0.5) / 2 + 0.3 * (0.5 + 0) / 2) / 0.5
        assert!((result.area - 0.45).abs() < 1e-12, "{result:?}");
        assert!((result.weighted - (0.5 + 0.35) / 2.2).abs() < 1e-12, "{result:?}");
        let none = [vec![false, false], vec![false, false], vec![false, false]];
        let gain = area_gain(&axis, &none, &points);
        assert!(
            (gain.area - result.area).abs() < 1e-12
                && (gain.area_interval[0] - result.area_interval[0]).abs() < 1e-12
        );
        assert!(result.area_interval[0] < result.area && result.area < result.area_interval[1]);
    }

    #[test]
    fn a_single_point_and_no_sets() {
        assert!((area(&[0.8], &[vec![true, false]]).area - 0.5).abs() < 1e-12);
        assert!(area(&[0.8, 0.9], &[vec![], vec![]]).area.abs() < 1e-12);
    }
}
