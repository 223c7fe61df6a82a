//! Diagnostics of a law of extremes: levels against how rarely they are reached, and quantiles
//! against those of the law.

use super::axis::{Axis, Unit};
use super::frame::{Chart, HALF, px};
use crate::format;
use analysis::tail::CurvePoint;
use std::fmt::Write;

/// The level reached once in so many releases, and what was observed as `[releases, value_ns]`.
/// `None` without a curve.
pub fn return_levels(id: &str, title: &str, curve: &[CurvePoint], observed: &[[f64; 2]]) -> Option<String> {
    let (first, last) = (curve.first()?, curve.last()?);
    let levels = curve.iter().map(|point| point.level_ns);
    let values = || observed.iter().map(|point| point[1]).chain(levels.clone());
    let low = values().fold(f64::INFINITY, f64::min).max(1.0);
    // A band without end must not press everything else to the floor.
    let most = values().fold(0.0, f64::max);
    let high = curve.iter().map(|point| point.high_ns).fold(most, f64::max).min(most * 5.0);
    let description = format!(
        "Level against how rarely it is reached, logarithmic across: {} once in {:.1e} releases, {} to {} with 95 %.",
        format::ns_f(last.level_ns),
        last.releases,
        format::ns_f(last.low_ns),
        format::ns_f(last.high_ns)
    );
    let mut chart = Chart::new(id, title, &description, [HALF, 320.0], 70.0);
    let x = Axis::decades(Unit::Count, first.releases.max(1.0), last.releases, chart.across());
    let y = Axis::log_tight(Unit::Ns, low, high, chart.upwards());
    chart.axes(&x, &y, "once in so many releases", "latency");
    let path = |level: fn(&CurvePoint) -> f64| {
        let mut path = String::new();
        for (index, point) in curve.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{} {}", px(x.px(point.releases)), px(y.px(level(point).max(1.0))));
        }
        path
    };
    chart.series(0, "law", &path(|point| point.level_ns));
    for path in [path(|point| point.low_ns), path(|point| point.high_ns)] {
        chart.raw(&format!("<path class=\"v s0\" stroke-dasharray=\"3 4\" d=\"{path}\"/>"));
    }
    dots(&mut chart, observed.iter().map(|point| [x.px(point[0]), y.px(point[1].max(1.0))]));
    Some(chart.finish())
}

/// Quantiles `[x, y]`, ns, with the line on which both are equal and, where given, that of a
/// regression: slope and intercept, ns. `None` without points.
pub fn qq(
    id: &str,
    title: &str,
    names: [&str; 2],
    points: &[[f64; 2]],
    regression: Option<[f64; 2]>,
) -> Option<String> {
    let most = points.iter().flatten().copied().reduce(f64::max).filter(|most| *most > 0.0)?;
    let least = points.iter().flatten().copied().fold(most, f64::min);
    // From 0 unless that would press everything into a corner.
    let least = if least < most * 0.3 { least.min(0.0) } else { least };
    let mut description = format!("{} quantiles: {} against {}.", points.len(), names[1], names[0]);
    if let Some([slope, intercept]) = regression {
        let _ =
            write!(description, " Regression line: slope {slope:.4}, intercept {}.", format::ns_f(intercept));
    }
    let mut chart = Chart::new(id, title, &description, [HALF, 320.0], 70.0);
    let room = (most - least) * 0.03;
    let x = Axis::linear(Unit::Ns, least, most + room, chart.across());
    let y = Axis::linear(Unit::Ns, least, most + room, chart.upwards());
    chart.axes(&x, &y, names[0], names[1]);
    let line = |from: [f64; 2], to: [f64; 2]| {
        let point = |at: [f64; 2]| format!("{} {}", px(x.px(at[0])), px(y.px(at[1])));
        format!("M{}L{}", point(from), point(to))
    };
    chart.raw(&format!("<path class=\"v s0\" d=\"{}\"/>", line([least; 2], [most; 2])));
    if let Some([slope, intercept]) = regression.filter(|[slope, _]| *slope > 0.0) {
        // Only as far as it stays in the plot.
        let [low, high] = [least, most].map(|end| [((end - intercept) / slope).clamp(least, most), end]);
        let at = |[reach, _]: [f64; 2]| [reach, intercept + slope * reach];
        chart.raw(&format!(
            "<path class=\"v s2\" stroke-dasharray=\"5 4\" d=\"{}\"/>",
            line(at(low), at(high))
        ));
    }
    dots(&mut chart, points.iter().map(|point| [x.px(point[0]), y.px(point[1])]));
    Some(chart.finish())
}

/// Points as one path of small rings.
fn dots(chart: &mut Chart, points: impl Iterator<Item = [f64; 2]>) {
    let mut path = String::new();
    for [left, top] in points {
        let _ = write!(path, "M{} {}a2 2 0 1 0 4 0a2 2 0 1 0 -4 0", px(left - 2.0), px(top));
    }
    chart.raw(&format!("<path class=\"v s1\" d=\"{path}\"/>"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_drawn_once_and_nothing_is_not_a_number() {
        let curve = [
            CurvePoint { releases: 100.0, level_ns: 9e3, low_ns: 8e3, high_ns: 1e4 },
            CurvePoint { releases: 1e6, level_ns: 2e4, low_ns: 1.5e4, high_ns: f64::MAX },
        ];
        let svg = return_levels("a", "t", &curve, &[[100.0, 9e3], [1e4, 1.2e4]]).unwrap();
        assert_eq!(svg.matches("a2 2 0 1 0 4 0").count(), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(return_levels("a", "t", &[], &[]), None);
        let svg = qq("b", "t", ["x", "y"], &[[0.0, 1.0], [500.0, 450.0]], Some([0.9, 1.0])).unwrap();
        assert_eq!((svg.matches("a2 2 0 1 0 4 0").count(), svg.matches("stroke-dasharray").count()), (2, 1));
        assert!(svg.contains("slope 0.9000") && !svg.contains("NaN"), "{svg}");
        assert_eq!(qq("b", "t", ["x", "y"], &[], None), None);
    }
}
