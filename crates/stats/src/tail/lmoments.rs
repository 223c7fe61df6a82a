//! L-moments of a sample, and the parameters that they give: where a likelihood starts from.
//!
//! J. Hosking, "L-moments: analysis and estimation of distributions using linear combinations of
//! order statistics", Journal of the Royal Statistical Society B 52 (1990); of the generalised
//! Pareto distribution J. Hosking and J. Wallis, Technometrics 29 (1987); of that of extreme values
//! J. Hosking, J. Wallis and E. Wood, Technometrics 27 (1985). The shape is ξ throughout (Hosking's
//! k is −ξ).

use statrs::function::gamma::gamma;

/// The first three L-moments: location, scale, and skewness as a ratio to the scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LMoments {
    /// The mean.
    pub mean: f64,
    /// The second moment: half the mean difference of two samples.
    pub scale: f64,
    /// The third over the second.
    pub skewness: f64,
}

/// Of values in ascending order, without bias; none for fewer than three, or values that do not
/// vary.
pub fn of_sorted(sorted: &[f64]) -> Option<LMoments> {
    let n = sorted.len() as f64;
    let mut weighted = [0.0; 3];
    for (at, value) in sorted.iter().enumerate() {
        let j = at as f64;
        weighted[0] += value;
        weighted[1] += value * j / (n - 1.0);
        weighted[2] += value * j * (j - 1.0) / ((n - 1.0) * (n - 2.0));
    }
    let [b0, b1, b2] = weighted.map(|sum| sum / n);
    let (scale, third) = (2.0 * b1 - b0, 6.0 * b2 - 6.0 * b1 + b0);
    (sorted.len() > 2 && scale > 0.0).then(|| LMoments { mean: b0, scale, skewness: third / scale })
}

/// Scale and shape of a generalised Pareto distribution of excesses over 0.
pub fn pareto(moments: LMoments) -> [f64; 2] {
    let shape = 2.0 - moments.mean / moments.scale;
    [moments.mean * (1.0 - shape), shape]
}

/// Location, scale and shape of a generalised distribution of extreme values.
pub fn extreme(moments: LMoments) -> [f64; 3] {
    // The skewness rises with ξ, from -1 to 1 at ξ = 1.
    let skewness = |shape: f64| {
        if shape.abs() < 1e-6 {
            return 2.0 * 3f64.ln() / 2f64.ln() - 3.0;
        }
        2.0 * (1.0 - 3f64.powf(shape)) / (1.0 - 2f64.powf(shape)) - 3.0
    };
    let (mut low, mut high) = (-4.0, 0.999);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if skewness(middle) < moments.skewness { low = middle } else { high = middle }
    }
    let shape = f64::midpoint(low, high);
    if shape.abs() < 1e-6 {
        let scale = moments.scale / 2f64.ln();
        return [moments.mean - 0.577_215_664_901_532_9 * scale, scale, 0.0];
    }
    let g = gamma(1.0 - shape);
    let scale = -moments.scale * shape / ((1.0 - 2f64.powf(shape)) * g);
    [moments.mean + scale * (1.0 - g) / shape, scale, shape]
}
