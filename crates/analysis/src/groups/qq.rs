//! Quantiles of one group against those of another, and the line through them.
//!
//! Wilk & Gnanadesikan, "Probability plotting methods for the analysis of data", Biometrika 55
//! (1968): points at (i − ½)/m. Least squares over the points: slope 1 and intercept 0 for equal
//! distributions. R² near 1 says that a line fits, not that it is that line.

use super::measured::MeasuredWindow;
use serde::Serialize;

/// The most points.
const POINTS: usize = 500;

/// The plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QqPlot {
    /// Reference and observed quantile, ns, ascending.
    pub points_ns: Vec<[i64; 2]>,
    /// Of the regression line.
    pub slope: f64,
    /// Of the regression line, ns.
    pub intercept_ns: f64,
    /// Share of the observed quantiles' variance that the line explains; none where they do not
    /// vary.
    pub r_squared: Option<f64>,
}

/// Of all samples of both sides; `None` without samples, or where the reference does not vary.
pub fn qq(reference: &[&MeasuredWindow], observed: &[&MeasuredWindow]) -> Option<QqPlot> {
    let pooled = |windows: &[&MeasuredWindow]| {
        let mut steps: Vec<(i64, u64)> = windows.iter().flat_map(|window| window.samples.steps()).collect();
        steps.sort_unstable();
        steps
    };
    of_steps(&pooled(reference), &pooled(observed))
}

fn of_steps(reference: &[(i64, u64)], observed: &[(i64, u64)]) -> Option<QqPlot> {
    let n = |steps: &[(i64, u64)]| steps.iter().map(|(_, count)| count).sum::<u64>();
    let points = POINTS.min(n(reference) as usize).min(n(observed) as usize);
    let (x, y) = (quantiles(reference, points), quantiles(observed, points));
    let points_ns: Vec<[i64; 2]> = x.into_iter().zip(y).map(|(x, y)| [x, y]).collect();
    let m = points_ns.len() as f64;
    let mean = |at: usize| points_ns.iter().map(|point| point[at] as f64).sum::<f64>() / m;
    let (mx, my) = (mean(0), mean(1));
    let sum = |a: usize, b: usize| -> f64 {
        let off = |point: &[i64; 2], at: usize| point[at] as f64 - if at == 0 { mx } else { my };
        points_ns.iter().map(|point| off(point, a) * off(point, b)).sum()
    };
    let (sxx, sxy, syy) = (sum(0, 0), sum(0, 1), sum(1, 1));
    if points_ns.len() < 2 || sxx <= 0.0 {
        return None;
    }
    let slope = sxy / sxx;
    let r_squared = (syy > 0.0).then(|| sxy * sxy / (sxx * syy));
    Some(QqPlot { points_ns, slope, intercept_ns: my - slope * mx, r_squared })
}

fn quantiles(steps: &[(i64, u64)], points: usize) -> Vec<i64> {
    let n: u64 = steps.iter().map(|(_, count)| count).sum();
    let (mut next, mut upto) = (0, 0u64);
    let at = |i: usize| {
        // The sample in which (i + ½)/m of all lie.
        let rank = (u128::from(n) * (2 * i as u128 + 1)).div_ceil(2 * points as u128) as u64;
        while upto < rank && next < steps.len() {
            upto += steps[next].1;
            next += 1;
        }
        steps[next.max(1) - 1].0
    };
    (0..points).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_scipy_on_equal_sizes() {
        // scipy.stats.linregress(sorted([3,1,4,1,5,9,2,6]), sorted([2,7,1,8,2,8,1,8])), version
        // 1.17.1.
        let steps = |values: &[i64]| {
            let mut sorted: Vec<(i64, u64)> = values.iter().map(|value| (*value, 1)).collect();
            sorted.sort_unstable();
            sorted
        };
        let plot = of_steps(&steps(&[3, 1, 4, 1, 5, 9, 2, 6]), &steps(&[2, 7, 1, 8, 2, 8, 1, 8])).unwrap();
        assert_eq!(plot.points_ns.len(), 8);
        assert!((plot.slope - SCIPY[0]).abs() < 1e-9, "{}", plot.slope);
        assert!((plot.intercept_ns - SCIPY[1]).abs() < 1e-9);
        assert!((plot.r_squared.unwrap() - SCIPY[2]).abs() < 1e-9);
        assert_eq!(of_steps(&steps(&[5, 5]), &steps(&[1, 2])), None);
        assert_eq!(of_steps(&[], &steps(&[1])), None);
    }

    const SCIPY: [f64; 3] = [1.070_921_985_816, 0.475_177_304_965, 0.759_198_215_297];

    proptest! {
        #[test]
        fn a_line_is_found_again(values in proptest::collection::vec(0i64..10_000, 2..300), slope in 1i64..5, intercept in -100i64..100) {
            prop_assume!(values.iter().any(|value| *value != values[0]));
            let mut a: Vec<(i64, u64)> = values.iter().map(|value| (*value, 1)).collect();
            a.sort_unstable();
            let b: Vec<(i64, u64)> = a.iter().map(|(value, n)| (value * slope + intercept, *n)).collect();
            let plot = of_steps(&a, &b).unwrap();
            prop_assert!((plot.slope - slope as f64).abs() < 1e-6 && (plot.intercept_ns - intercept as f64).abs() < 1e-3);
        }
    }
}
