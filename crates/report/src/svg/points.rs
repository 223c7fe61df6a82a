//! Shares over an axis, with the interval of each: schedulability curves.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, px};
use crate::format;
use std::fmt::Write;

/// Half the length of the bar at the end of an interval, px.
const CAP: f64 = 3.0;
/// Curves are set apart by this much, px, so that their intervals do not lie on each other.
const APART: f64 = 4.0;

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    /// What it is.
    pub label: String,
    /// Which style.
    pub style: usize,
    /// Ascending.
    pub points: Vec<SharePoint>,
    /// Shares said by others, without interval: `[x, share]`; drawn as crosses.
    pub published: Vec<[f64; 2]>,
}

/// A share and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharePoint {
    /// Place along the axis.
    pub x: f64,
    /// The share.
    pub share: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Draws the curves; `None` without a point.
pub fn shares(id: &str, title: &str, axis: [&str; 2], curves: &[Shares]) -> Option<String> {
    let xs = || curves.iter().flat_map(|curve| &curve.points).map(|point| point.x);
    let (low, high) = (xs().reduce(f64::min)?, xs().reduce(f64::max)?);
    let room = ((high - low) * 0.03).max(1e-6);
    let mut chart = Chart::new(id, title, &description(axis[0], curves), [FULL, 420.0], 70.0);
    let x = Axis::linear(Unit::Count, low - room, high + room, chart.across());
    let y = Axis::linear(Unit::Share, 0.0, 1.0, chart.upwards());
    chart.axes(&x, &y, axis[0], axis[1]);
    for (at, curve) in curves.iter().enumerate() {
        let shift = (at as f64 - (curves.len() as f64 - 1.0) / 2.0) * APART;
        let (mut line, mut bars) = (String::new(), String::new());
        for (index, point) in curve.points.iter().enumerate() {
            let (left, top) = (x.px(point.x) + shift, y.px(point.share));
            let _ = write!(line, "{}{} {}", if index == 0 { 'M' } else { 'L' }, px(left), px(top));
            let (bottom, top) = (y.px(point.low), y.px(point.high));
            let (from, width) = (px(left - CAP), px(2.0 * CAP));
            let _ = write!(bars, "M{} {}V{}M{from} {}h{width}", px(left), px(bottom), px(top), px(bottom));
            let _ = write!(bars, "M{from} {}h{width}", px(top));
        }
        chart.series(curve.style, &curve.label, &line);
        chart.raw(&format!("<path class=\"v s{}\" d=\"{bars}\"/>", curve.style));
        let mut crosses = String::new();
        for [value, share] in &curve.published {
            let (left, top) = (x.px(*value) + shift, y.px(*share));
            let _ = write!(crosses, "M{} {}l8 8m0 -8l-8 8", px(left - 4.0), px(top - 4.0));
        }
        if !crosses.is_empty() {
            chart.raw(&format!("<path class=\"v s{}\" d=\"{crosses}\"/>", curve.style));
        }
    }
    let published = |curve: &Shares| if curve.published.is_empty() { "" } else { "; × published" };
    let entry = |curve: &Shares| (curve.style, format!("{}{}", curve.label, published(curve)));
    chart.key(&curves.iter().map(entry).collect::<Vec<_>>());
    Some(chart.finish())
}

fn description(axis: &str, curves: &[Shares]) -> String {
    let one = |curve: &Shares| {
        let point = |point: &SharePoint| format!("{} at {}", percent(point.share), format::short(point.x));
        format!("{}: {}", curve.label, curve.points.iter().map(point).collect::<Vec<_>>().join(", "))
    };
    format!("Shares over {axis}. {}.", curves.iter().map(one).collect::<Vec<_>>().join("; "))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::svg::standalone;

    fn curve(label: &str, style: usize, published: Vec<[f64; 2]>) -> Shares {
        let point = |[x, share, low, high]: [f64; 4]| SharePoint { x, share, low, high };
        let points = [[0.7, 1.0, 0.99, 1.0], [0.8, 0.68, 0.64, 0.72], [0.9, 0.0, 0.0, 0.01]].map(point);
        Shares { label: label.into(), style, points: points.to_vec(), published }
    }

    #[test]
    fn a_curve_has_its_points_intervals_and_published_figures() {
        let curves = [curve("vanilla", 0, vec![[0.8, 0.664]]), curve("other", 1, Vec::new())];
        let svg = shares("c", "t", ["utilization", "schedulable"], &curves).unwrap();
        let line = svg.split("data-l=\"vanilla\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(line.matches(['M', 'L']).count(), 3);
        assert_eq!(svg.matches("l8 8m0 -8l-8 8").count(), 1);
        assert!(svg.contains("vanilla; × published") && svg.contains("68.0 % at 0.8"), "{svg}");
        assert!(!svg.contains("NaN"));
        let file = standalone(&svg);
        assert!(file.starts_with("<svg class=\"chart\"") && file.contains("xmlns="));
        assert!(file.contains("aria-labelledby=\"c-t c-d\""));
    }

    #[test]
    fn without_points_there_is_no_chart_and_one_point_is_one() {
        assert_eq!(shares("c", "t", ["x", "y"], &[]), None);
        let point = SharePoint { x: 4.0, share: 0.5, low: 0.4, high: 0.6 };
        let one = Shares { points: vec![point], ..curve("one", 0, Vec::new()) };
        assert!(!shares("c", "t", ["x", "y"], &[one]).unwrap().contains("NaN"));
    }
}
