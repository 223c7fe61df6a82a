//! The latency plot: how many samples fell into each bucket, both axes logarithmic, one step line a
//! phase.
//!
//! The community's picture (cyclictest and OSADL draw it with a linear x axis); logarithmic buckets
//! keep the body and a tail three decades away in one plot, and an empty bucket shows as a fall to
//! the axis.

use super::axis::{Axis, Unit};
use super::frame::{Chart, HALF, Steps};
use super::{Curve, maxima};
use crate::format;

/// Draws the curves; `None` where no bucket can be drawn.
pub fn histogram(id: &str, title: &str, what: &str, curves: &[Curve]) -> Option<String> {
    let buckets = || curves.iter().flat_map(Curve::drawn);
    let low = buckets().map(|bucket| bucket.low_ns).min()? as f64;
    let high = buckets().map(|bucket| bucket.high_ns).max()? as f64;
    let most = buckets().map(|bucket| bucket.count).max()? as f64;
    let mut chart = Chart::new(id, title, &description(what, curves), [HALF, 320.0], 58.0);
    let x = Axis::log_tight(Unit::Ns, low, high, chart.across());
    let mut y = Axis::decades(Unit::Count, 1.0, most, chart.upwards());
    // Half a decade below one sample, so that a single sample stands clear of the axis.
    y.low = 0.5;
    chart.axes(&x, &y, what, "samples per bucket");
    for curve in curves {
        chart.series(curve.style, &curve.label, &steps(curve, &x, &y));
    }
    chart.key(&maxima(curves));
    Some(chart.finish())
}

/// Up to the count of each bucket, down to the axis where the next bucket is empty.
fn steps(curve: &Curve, x: &Axis, y: &Axis) -> String {
    let floor = y.px(0.0);
    let mut steps = Steps::default();
    let mut end = None;
    for bucket in curve.drawn() {
        if end != Some(bucket.low_ns) {
            if end.is_some() {
                steps.upright(floor);
            }
            steps.start(x.px(bucket.low_ns as f64), floor);
        }
        steps.upright(y.px(bucket.count as f64));
        steps.across(x.px(bucket.high_ns as f64));
        end = Some(bucket.high_ns);
    }
    steps.upright(floor);
    steps.path()
}

fn description(what: &str, curves: &[Curve]) -> String {
    let parts: Vec<String> =
        curves.iter().map(|c| format!("{}: observed maximum {}", c.label, format::ns(c.max_ns))).collect();
    format!("Histogram of {what}, logarithmic on both axes. {}.", parts.join("; "))
}
