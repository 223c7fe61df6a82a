//! The exceedance curve (complementary distribution): which share of samples, or how many gaps per second, reach x.
//!
//! Log-log: a bound "x in at most one of a million" is read off directly. Each curve ends in a dot at its observed maximum, one
//! sample high; beyond it the run says nothing, and nothing is drawn.

use super::axis::{Axis, Unit};
use super::frame::{Chart, HALF, Steps};
use super::{Curve, maxima};
use crate::format;

/// What the vertical axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Share of the samples; [`Curve::total`] is n.
    Share,
    /// Events per second; [`Curve::total`] is seconds.
    PerSecond,
}

/// Draws the curves; `None` where nothing can be drawn.
pub fn exceedance(id: &str, title: &str, what: &str, tail: Tail, curves: &[Curve]) -> Option<String> {
    let curves: Vec<&Curve> = curves.iter().filter(|c| c.total > 0.0 && c.drawn().next().is_some()).collect();
    let low = curves.iter().flat_map(|c| c.drawn()).map(|bucket| bucket[0]).min()? as f64;
    let high = curves.iter().map(|curve| curve.max_ns).max()? as f64;
    let least = curves.iter().map(|curve| 1.0 / curve.total).fold(f64::INFINITY, f64::min);
    let most = curves.iter().map(|curve| count(curve) as f64 / curve.total).fold(0.0, f64::max);
    let (unit, y_name) = match tail {
        Tail::Share => (Unit::Share, "share of samples at or above"),
        Tail::PerSecond => (Unit::PerSecond, "gaps per second at or above"),
    };
    let mut chart = Chart::new(id, title, &description(what, &curves), [HALF, 320.0], 70.0);
    let x = Axis::log_tight(Unit::Ns, low, high, chart.across());
    let y = Axis::decades(unit, least, most, chart.upwards());
    chart.axes(&x, &y, what, y_name);
    for curve in &curves {
        chart.series(curve.style, &curve.label, &steps(curve, &x, &y));
    }
    for curve in &curves {
        let (at, one) = (x.px(curve.max_ns as f64), y.px(1.0 / curve.total));
        chart.dot(curve.style, at, one);
    }
    chart.key(&maxima(curves.iter().copied()));
    Some(chart.finish())
}

fn count(curve: &Curve) -> i64 {
    curve.drawn().map(|bucket| bucket[2]).sum()
}

/// At a bucket's lower edge all samples from this bucket on count; inside a bucket the curve is not known and drawn level.
fn steps(curve: &Curve, x: &Axis, y: &Axis) -> String {
    let mut left = count(curve);
    let mut steps = Steps::default();
    for [low, _, count] in curve.drawn() {
        let (at, height) = (x.px(*low as f64), y.px(left as f64 / curve.total));
        if steps.is_empty() {
            steps.start(at, height);
        } else {
            steps.across(at);
            steps.upright(height);
        }
        left -= count;
    }
    steps.across(x.px(curve.max_ns as f64));
    steps.upright(y.px(1.0 / curve.total));
    steps.path()
}

fn description(what: &str, curves: &[&Curve]) -> String {
    let parts: Vec<String> =
        curves.iter().map(|c| format!("{}: observed maximum {}", c.label, format::ns(c.max_ns))).collect();
    format!("Exceedance curve of {what}, logarithmic on both axes. {}.", parts.join("; "))
}
