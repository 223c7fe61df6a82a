//! The two laws of extremes: the generalised Pareto distribution of excesses over a threshold, and
//! the generalised distribution of extreme values of maxima of blocks.
//!
//! S. Coles, "An Introduction to Statistical Modeling of Extreme Values", 2001, ch. 3 and 4:
//! parameters by maximum likelihood, intervals by profile likelihood, since those of levels far out
//! are far from symmetric. The shape ξ is positive for heavy tails, negative for bounded ones;
//! below −½ the likelihood has no interior maximum worth the name (Smith, Biometrika 72 (1985)), so
//! it is searched from there to 1.5.

use super::lmoments;
use super::simplex::{least, minimise};
use serde::{Deserialize, Serialize};

/// Shapes that are looked at.
const SHAPES: [f64; 2] = [-0.5, 1.5];
/// Nearer to 0 a shape is taken for 0.
const FLAT: f64 = 1e-7;
/// Half the 95 % quantile of χ² with one degree of freedom.
const HALF_CHI2: f64 = 1.920_729;

/// A law that can be fitted, drawn from, and held against data.
pub trait Law: Sized {
    /// By maximum likelihood, from the L-moments, of values in ascending order; none for too few,
    /// or ones that do not vary.
    fn fit(sorted: &[f64]) -> Option<Self>;
    /// The share of values at or below one.
    fn below(&self, value: f64) -> f64;
    /// A value of the law by a uniform number.
    fn drawn(&self, uniform: f64) -> f64;
}

/// A generalised Pareto distribution of excesses over 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pareto {
    /// Scale, ns.
    pub scale: f64,
    /// ξ.
    pub shape: f64,
}

impl Law for Pareto {
    fn fit(sorted: &[f64]) -> Option<Self> {
        let [scale, shape] = lmoments::pareto(lmoments::of_sorted(sorted)?);
        let start =
            if scale > 0.0 { [scale.ln(), shape.clamp(-0.4, 1.0)] } else { [sorted.last()?.ln(), 0.0] };
        let ([log_scale, shape], value) =
            minimise(start, [0.2, 0.1], |&[log_scale, shape]| -likelihood(sorted, log_scale.exp(), shape));
        (value < f64::MAX).then(|| Self { scale: log_scale.exp(), shape })
    }

    fn below(&self, excess: f64) -> f64 {
        1.0 - self.above(excess)
    }

    fn drawn(&self, uniform: f64) -> f64 {
        self.level((1.0 - uniform).max(f64::MIN_POSITIVE))
    }
}

impl Pareto {
    /// Log-likelihood of excesses in ascending order.
    pub fn log_likelihood(&self, sorted: &[f64]) -> f64 {
        likelihood(sorted, self.scale, self.shape)
    }

    /// The share above, exactly where it is small.
    pub fn above(&self, excess: f64) -> f64 {
        let scaled = excess.max(0.0) / self.scale;
        if self.shape.abs() < FLAT {
            return (-scaled).exp();
        }
        (1.0 + self.shape * scaled).max(0.0).powf(-1.0 / self.shape)
    }

    /// The excess that a share of `above` exceeds.
    pub fn level(&self, above: f64) -> f64 {
        self.scale * growth(self.shape, -above.ln())
    }

    /// 95 % interval of ξ by profile likelihood.
    pub fn shape_interval(&self, sorted: &[f64]) -> [f64; 2] {
        let around = self.scale.ln();
        let profile = |shape: f64| {
            -least(around - 3.0, around + 3.0, |log_scale| -likelihood(sorted, log_scale.exp(), shape)).1
        };
        let top = likelihood(sorted, self.scale, self.shape);
        interval(self.shape, SHAPES, 0.05, |shape| profile(shape) - top)
    }

    /// 95 % interval, by profile likelihood, of the excess that a share of `above` exceeds.
    pub fn level_interval(&self, sorted: &[f64], above: f64) -> [f64; 2] {
        let top = likelihood(sorted, self.scale, self.shape);
        let profile = |level: f64| {
            let at = |shape: f64| -likelihood(sorted, level / growth(shape, -above.ln()), shape);
            -least(SHAPES[0], SHAPES[1], at).1
        };
        let best = self.level(above);
        interval(best, [0.0, f64::INFINITY], best * 0.1, |level| profile(level) - top)
    }
}

/// (e^(ξ·t) − 1)/ξ: how far out a level lies, in scales, whose share above is e^(−t).
fn growth(shape: f64, t: f64) -> f64 {
    if shape.abs() < FLAT { t } else { (shape * t).exp_m1() / shape }
}

fn likelihood(sorted: &[f64], scale: f64, shape: f64) -> f64 {
    if !(SHAPES[0]..=SHAPES[1]).contains(&shape) || scale <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let n = sorted.len() as f64;
    if shape.abs() < FLAT {
        return -n * scale.ln() - sorted.iter().sum::<f64>() / scale;
    }
    // The largest decides whether all lie in the support.
    if sorted.last().is_some_and(|largest| 1.0 + shape * largest / scale <= 0.0) {
        return f64::NEG_INFINITY;
    }
    let logs: f64 = sorted.iter().map(|excess| (shape * excess / scale).ln_1p()).sum();
    -n * scale.ln() - (1.0 + 1.0 / shape) * logs
}

/// A generalised distribution of extreme values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Extreme {
    /// Location, ns.
    pub location: f64,
    /// Scale, ns.
    pub scale: f64,
    /// ξ.
    pub shape: f64,
}

impl Law for Extreme {
    fn fit(sorted: &[f64]) -> Option<Self> {
        let [location, scale, shape] = lmoments::extreme(lmoments::of_sorted(sorted)?);
        let scale = if scale > 0.0 { scale } else { 1.0 };
        // Of scales and in units of them, so that all steps are alike.
        let of = |&[place, log_scale, shape]: &[f64; 3]| {
            -maxima(sorted, location + place * scale, scale * log_scale.exp(), shape)
        };
        let ([place, log_scale, shape], value) =
            minimise([0.0, 0.0, shape.clamp(-0.4, 1.0)], [0.1, 0.1, 0.1], of);
        (value < f64::MAX).then(|| Self {
            location: location + place * scale,
            scale: scale * log_scale.exp(),
            shape,
        })
    }

    fn below(&self, value: f64) -> f64 {
        let scaled = (value - self.location) / self.scale;
        let t = if self.shape.abs() < FLAT {
            (-scaled).exp()
        } else {
            (1.0 + self.shape * scaled).max(0.0).powf(-1.0 / self.shape)
        };
        (-t).exp()
    }

    fn drawn(&self, uniform: f64) -> f64 {
        self.location + self.scale * growth(self.shape, -(-uniform.max(f64::MIN_POSITIVE).ln()).ln())
    }
}

impl Extreme {
    /// Log-likelihood of maxima in ascending order.
    pub fn log_likelihood(&self, sorted: &[f64]) -> f64 {
        maxima(sorted, self.location, self.scale, self.shape)
    }

    /// The value that a share of `above` of the maxima exceeds.
    pub fn level(&self, above: f64) -> f64 {
        self.location + self.scale * growth(self.shape, -(-(-above).ln_1p()).ln())
    }

    /// 95 % interval of ξ by profile likelihood.
    pub fn shape_interval(&self, sorted: &[f64]) -> [f64; 2] {
        let top = maxima(sorted, self.location, self.scale, self.shape);
        let profile = |shape: f64| {
            let of = |&[place, log_scale]: &[f64; 2]| {
                -maxima(sorted, self.location + place * self.scale, self.scale * log_scale.exp(), shape)
            };
            -minimise([0.0, 0.0], [0.1, 0.1], of).1
        };
        interval(self.shape, SHAPES, 0.05, |shape| profile(shape) - top)
    }

    /// 95 % interval, by profile likelihood, of the value that a share of `above` of the maxima
    /// exceeds.
    pub fn level_interval(&self, sorted: &[f64], above: f64) -> [f64; 2] {
        let top = maxima(sorted, self.location, self.scale, self.shape);
        let t = -(-(-above).ln_1p()).ln();
        let profile = |level: f64| {
            let of = |&[log_scale, shape]: &[f64; 2]| {
                let scale = self.scale * log_scale.exp();
                -maxima(sorted, level - scale * growth(shape, t), scale, shape)
            };
            // The scale that keeps the location where it is, at this shape.
            let reach = (level - self.location) / growth(self.shape, t) / self.scale;
            let start = [reach.max(0.1).ln().clamp(-2.0, 2.0), self.shape];
            let tilted = [0.0, self.shape];
            minimise(start, [0.1, 0.1], of).1.min(minimise(tilted, [0.1, 0.1], of).1)
        };
        let best = self.level(above);
        let step = (best - self.location).abs().max(self.scale) * 0.1;
        interval(best, [f64::NEG_INFINITY, f64::INFINITY], step, |level| -profile(level) - top)
    }
}

fn maxima(sorted: &[f64], location: f64, scale: f64, shape: f64) -> f64 {
    if !(SHAPES[0]..=SHAPES[1]).contains(&shape) || scale <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let one = |value: &f64| {
        let scaled = (value - location) / scale;
        if shape.abs() < FLAT {
            return -scaled - (-scaled).exp();
        }
        let inside = 1.0 + shape * scaled;
        if inside <= 0.0 {
            return f64::NEG_INFINITY;
        }
        -(1.0 + 1.0 / shape) * inside.ln() - inside.powf(-1.0 / shape)
    };
    sorted.iter().map(one).sum::<f64>() - sorted.len() as f64 * scale.ln()
}

/// Where a profile, 0 at its top, falls to the 95 % limit on both sides of `best`.
fn interval(best: f64, [least, most]: [f64; 2], step: f64, profile: impl Fn(f64) -> f64) -> [f64; 2] {
    let inside = |at: f64| profile(at) > -HALF_CHI2;
    let end = |direction: f64, edge: f64| {
        let (mut near, mut width) = (best, step);
        let mut far = loop {
            let next = near + direction * width;
            let beyond = if direction > 0.0 { next >= edge } else { next <= edge };
            if beyond {
                if edge.is_infinite() || inside(edge) {
                    return edge;
                }
                break edge;
            }
            if !inside(next) {
                break next;
            }
            (near, width) = (next, width * 1.6);
            if width > step * 1e9 {
                return edge;
            }
        };
        for _ in 0..30 {
            let middle = f64::midpoint(near, far);
            if inside(middle) { near = middle } else { far = middle }
        }
        f64::midpoint(near, far)
    };
    [end(-1.0, least), end(1.0, most)]
}
