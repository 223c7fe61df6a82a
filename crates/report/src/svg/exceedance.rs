//! The exceedance curve (complementary distribution): which share of samples, or how many gaps per
//! second, reach x.
//!
//! Log-log: a bound "x in at most one of a million" is read off directly. Each curve ends in a dot
//! at its observed maximum, one sample high; beyond it the run says nothing, and nothing is drawn.
//! The band about the tail is the 95 % interval of the count at each place, were the samples
//! independent (Garwood, Biometrika 28 (1936)); of dependent ones it is wider. Percentiles stand at
//! the right, by the number of their nines, as HdrHistogram plots have them.

use stats::bounds::{poisson_lower, poisson_upper};
use std::fmt::Write;

use super::axis::{Axis, Unit};
use super::frame::{Chart, HALF, Steps, px};
use super::{Curve, maxima};
use crate::format;

/// Above so many samples the band is no wider than the line.
const BAND: i64 = 2_000;
/// What is beyond each end of the interval.
const ALPHA: f64 = 0.025;
/// A limit farther from the curves than this says enough by its number.
const NEAR: f64 = 12.0;

/// What the vertical axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Share of the samples; [`Curve::total`] is n.
    Share,
    /// Events per second; [`Curve::total`] is seconds.
    PerSecond,
}

/// An upright line at what values must not pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit<'a> {
    /// Where, ns.
    pub at_ns: f64,
    /// What it is.
    pub label: &'a str,
}

/// Draws the curves; `None` where nothing can be drawn.
pub fn exceedance(
    id: &str,
    title: &str,
    what: &str,
    tail: Tail,
    curves: &[Curve],
    limit: Option<Limit<'_>>,
) -> Option<String> {
    let curves: Vec<&Curve> = curves.iter().filter(|c| c.total > 0.0 && c.drawn().next().is_some()).collect();
    let low = curves.iter().flat_map(|c| c.drawn()).map(|bucket| bucket.low_ns).min()? as f64;
    let high = curves.iter().map(|curve| curve.max_ns).max()? as f64;
    let limit = limit.filter(|limit| limit.at_ns >= low && limit.at_ns <= high * NEAR);
    let least = curves.iter().map(|curve| 1.0 / curve.total).fold(f64::INFINITY, f64::min);
    let most = curves.iter().map(|curve| count(curve) as f64 / curve.total).fold(0.0, f64::max);
    let (unit, y_name) = match tail {
        Tail::Share => (Unit::Share, "share of samples at or above"),
        Tail::PerSecond => (Unit::PerSecond, "gaps per second at or above"),
    };
    let mut chart = Chart::new(id, title, &description(what, &curves), [HALF, 320.0], 70.0);
    if tail == Tail::Share {
        chart.area[1] = HALF - 52.0;
    }
    let x = Axis::log_tight(Unit::Ns, low, limit.map_or(high, |limit| limit.at_ns.max(high)), chart.across());
    let y = Axis::decades(unit, least, most, chart.upwards());
    chart.axes(&x, &y, what, y_name);
    if tail == Tail::Share {
        nines(&mut chart, &y);
    }
    for curve in &curves {
        chart.raw(&format!("<path class=\"b i s{}\" d=\"{}\"/>", curve.style, band(curve, &x, &y)));
    }
    for curve in &curves {
        chart.series(curve.style, &curve.label, &steps(curve, &x, &y));
    }
    for curve in &curves {
        let (at, one) = (x.px(curve.max_ns as f64), y.px(1.0 / curve.total));
        chart.dot(curve.style, at, one);
    }
    if let Some(limit) = limit {
        draw_limit(&mut chart, x.px(limit.at_ns), limit.label);
    }
    chart.key(&maxima(curves.iter().copied()));
    Some(chart.finish())
}

/// Percentiles beside the axis: a share of 0.1 % at or above is p99.9.
fn nines(chart: &mut Chart, y: &Axis) {
    let right = chart.area[1];
    for digits in 1..=9u32 {
        let share = 10f64.powi(-(digits as i32));
        if share < y.low * 0.999 {
            break;
        }
        let name = if digits == 1 { "p90".to_owned() } else { format!("p{}", nines_of(digits)) };
        chart.text(right + 6.0, y.px(share) + 4.0, "t", &name);
    }
}

/// `99`, `99.9`, `99.99`.
fn nines_of(digits: u32) -> String {
    let point = if digits > 2 { "." } else { "" };
    format!("99{point}{}", "9".repeat(digits as usize - 2))
}

fn draw_limit(chart: &mut Chart, at: f64, label: &str) {
    let [_, _, top, bottom] = chart.area;
    chart.raw(&format!("<path class=\"lim\" d=\"M{} {}V{}\"/>", px(at), px(top), px(bottom)));
    let middle = f64::midpoint(top, bottom);
    chart.raw(&format!(
        "<text class=\"t\" transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        px(at - 5.0),
        px(middle),
        super::escape(label)
    ));
}

fn count(curve: &Curve) -> i64 {
    curve.drawn().map(|bucket| bucket.count).sum()
}

/// `[x, samples from there on]` at the lower edge of each bucket, then at the observed maximum.
fn corners(curve: &Curve) -> Vec<(f64, i64)> {
    let mut left = count(curve);
    let mut corners = Vec::new();
    for bucket in curve.drawn() {
        corners.push((bucket.low_ns as f64, left));
        left -= bucket.count;
    }
    corners
}

/// From where [`BAND`] samples are left: along the upper ends, and back along the lower ones.
fn band(curve: &Curve, x: &Axis, y: &Axis) -> String {
    let corners: Vec<(f64, i64)> = corners(curve).into_iter().filter(|(_, left)| *left <= BAND).collect();
    let Some(last) = corners.last() else { return String::new() };
    let end = x.px(curve.max_ns as f64);
    let at = |count: f64| px(y.px(count / curve.total));
    let (mut there, mut back) = (String::new(), Vec::new());
    for (index, (from, left)) in corners.iter().enumerate() {
        let (from, count) = (px(x.px(*from)), *left as f64);
        let upper = at(poisson_upper(count, ALPHA));
        let _ = if index == 0 { write!(there, "M{from} {upper}") } else { write!(there, "H{from}V{upper}") };
        back.push((from, at(poisson_lower(count, ALPHA))));
    }
    let _ = write!(there, "H{}V{}", px(end), at(poisson_lower(last.1 as f64, ALPHA)));
    let mut levels = back.into_iter().rev().peekable();
    while let Some((from, _)) = levels.next() {
        let _ = write!(there, "H{from}");
        if let Some((_, next)) = levels.peek() {
            let _ = write!(there, "V{next}");
        }
    }
    there + "z"
}

/// At a bucket's lower edge all samples from this bucket on count; inside a bucket the curve is not
/// known and drawn level.
fn steps(curve: &Curve, x: &Axis, y: &Axis) -> String {
    let mut steps = Steps::default();
    for (from, left) in corners(curve) {
        let (at, height) = (x.px(from), y.px(left as f64 / curve.total));
        if steps.is_empty() {
            steps.start(at, height);
        } else {
            steps.across(at);
            steps.upright(height);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::distribution::Bucket;

    fn curve() -> Curve {
        let bucket = |(low_ns, high_ns, count)| Bucket { low_ns, high_ns, count };
        let histogram = [(1_000, 2_000, 90_000), (2_000, 4_000, 90), (4_000, 8_000, 1)].map(bucket).to_vec();
        Curve { label: "idle".into(), style: 0, histogram, max_ns: 6_000, total: 90_091.0 }
    }

    fn drawn(limit: Option<Limit<'_>>) -> String {
        exceedance("e", "t", "latency", Tail::Share, &[curve()], limit).unwrap()
    }

    #[test]
    fn the_band_is_about_the_tail_alone_and_holds_the_curve() {
        let svg = drawn(None);
        let band = svg.split("class=\"b i s0\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        // 91 and 1 are left from the second and third bucket on; 90,091 need no band.
        assert_eq!(band.matches('M').count(), 1);
        assert_eq!(band.matches('V').count(), 3, "{band}");
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn percentiles_stand_at_their_shares() {
        let svg = drawn(None);
        for name in [">p90<", ">p99<", ">p99.9<", ">p99.99<"] {
            assert!(svg.contains(name), "{name}");
        }
        assert!(!svg.contains(">p99.99999<"), "below one sample nothing is known");
        let rates = exceedance("e", "t", "gap", Tail::PerSecond, &[curve()], None).unwrap();
        assert!(!rates.contains(">p90<"));
    }

    #[test]
    fn a_limit_is_drawn_where_it_is_near() {
        let at = |at_ns| drawn(Some(Limit { at_ns, label: "deadline" }));
        assert!(at(20_000.0).contains("class=\"lim\"") && at(20_000.0).contains(">deadline<"));
        assert!(!at(2e9).contains("class=\"lim\""));
    }
}
