//! Values over the levels of a factor, as lines or bars: each with what its repetitions span, and
//! published numbers as crosses beside.
//!
//! Places are evenly apart, since levels are names as often as numbers. The caller asks for a
//! logarithmic axis where values lie decades apart; values not above 0 then stand on the axis.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, px};
use super::{hue_class, micro};
use crate::format;
use std::fmt::Write;

/// Half the length of the bar at the end of an interval, px.
const CAP: f64 = 4.0;
/// The part of a place's width that bars take.
const FILLED: f64 = 0.72;
/// Curves are set apart by this much, px, so that their intervals do not lie on each other.
const APART: f64 = 7.0;
/// Height of a line of the key.
const LINE: f64 = 16.0;

/// What the numbers upwards are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Times, ns.
    Ns,
    /// Shares of one.
    Share,
    /// Anything else.
    Count,
}

/// How values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Joined by lines.
    Lines,
    /// A bar each.
    Bars,
}

/// One curve, or bars of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Over {
    /// What it is.
    pub label: String,
    /// What was measured.
    pub points: Vec<OverPoint>,
    /// Published: place, value.
    pub published: Vec<(usize, f64)>,
}

/// The repetitions at one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverPoint {
    /// Place along the axis.
    pub at: usize,
    /// Their median.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

/// Parameters of a chart of values over levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverAsked<'a> {
    /// Names of both axes.
    pub axes: [&'a str; 2],
    /// The levels.
    pub ticks: &'a [String],
    /// What the numbers are.
    pub measure: Measure,
    /// Lines or bars.
    pub style: Style,
    /// A logarithmic axis.
    pub log: bool,
}

/// Draws the curves; `None` where there is nothing to show.
pub fn over(id: &str, title: &str, asked: &OverAsked<'_>, curves: &[Over]) -> Option<String> {
    let published = || curves.iter().flat_map(|curve| &curve.published).map(|(_, value)| *value);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let measured = || points().flat_map(|point| [point.median, point.low, point.high]);
    measured().next()?;
    let all = || measured().chain(published()).filter(|value| value.is_finite());
    let positive = all().filter(|value| *value > 0.0).reduce(f64::min);
    let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let mut chart = Chart::new(id, title, &description(asked, curves), [FULL, 380.0], 84.0);
    let many = curves.len() > 1 || published().next().is_some();
    if many {
        chart.area[2] += LINE * (curves.len() as f64 + f64::from(u8::from(published().next().is_some())));
    }
    let unit = match asked.measure {
        Measure::Ns => Unit::Ns,
        Measure::Share => Unit::Share,
        Measure::Count => Unit::Count,
    };
    let room = ((high - low.min(0.0)) * 0.06).max(f64::MIN_POSITIVE);
    let linear =
        || Axis::linear(unit, if low < 0.0 { low - room } else { 0.0 }, high + room, chart.upwards());
    let decades = |positive| Axis::decades(unit, positive, high, chart.upwards());
    let y = positive.filter(|_| asked.log).map_or_else(linear, decades);
    let [left, right, ..] = chart.area;
    let width = (right - left) / asked.ticks.len().max(1) as f64;
    let middle = |at: usize| left + width * (at as f64 + 0.5);
    chart.upright(&y, asked.axes[1]);
    let bottom = chart.area[3];
    chart.raw(&format!("<path class=\"a\" d=\"M{} {}H{}\"/>", px(left), px(bottom), px(right)));
    for (at, tick) in asked.ticks.iter().enumerate() {
        chart.text(middle(at), bottom + 16.0, "t c", tick);
    }
    chart.text(f64::midpoint(left, right), bottom + 35.0, "n c", asked.axes[0]);
    let floor = y.px(0.0);
    for (hue, curve) in curves.iter().enumerate() {
        let bar = width * FILLED / curves.len() as f64;
        let shift = match asked.style {
            Style::Bars => bar * (hue as f64 - (curves.len() as f64 - 1.0) / 2.0),
            Style::Lines => APART * (hue as f64 - (curves.len() as f64 - 1.0) / 2.0),
        };
        draw(&mut chart, curve, hue, asked.style, &y, floor, bar, &|at| middle(at) + shift);
    }
    if many {
        key(&mut chart, curves);
    }
    Some(chart.finish())
}

#[expect(clippy::too_many_arguments, reason = "what was laid out once for all curves")]
fn draw(
    chart: &mut Chart,
    curve: &Over,
    hue: usize,
    style: Style,
    y: &Axis,
    floor: f64,
    bar: f64,
    middle: &dyn Fn(usize) -> f64,
) {
    let class = hue_class(hue);
    let (mut line, mut whiskers) = (String::new(), String::new());
    let mut before = None;
    for OverPoint { at, median, low, high } in &curve.points {
        let (x, top) = (middle(*at), y.px(*median));
        match style {
            Style::Lines => {
                // Where a level between was not measured the line has a gap.
                let joined = before == Some(at.wrapping_sub(1));
                before = Some(*at);
                let _ = write!(line, "{}{} {}", if joined { 'L' } else { 'M' }, px(x), px(top));
                chart.raw(&format!(
                    "<circle class=\"pt {class}\" cx=\"{}\" cy=\"{}\" r=\"3.2\"/>",
                    px(x),
                    px(top)
                ));
            }
            Style::Bars => chart.raw(&format!(
                "<rect class=\"bar {class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                px(x - bar / 2.0),
                px(top.min(floor)),
                px((bar - 1.0).max(1.0)),
                px((floor - top).abs())
            )),
        }
        if high > low {
            let (from, to) = (y.px(*low), y.px(*high));
            let _ = write!(whiskers, "M{} {}V{}", px(x), px(from), px(to));
            let _ = write!(whiskers, "M{} {}h{}", px(x - CAP), px(from), px(2.0 * CAP));
            let _ = write!(whiskers, "M{} {}h{}", px(x - CAP), px(to), px(2.0 * CAP));
        }
    }
    if !line.is_empty() {
        chart.series_of(&class, &curve.label, &line);
    }
    let mut crosses = String::new();
    for (at, value) in &curve.published {
        let _ = write!(crosses, "M{} {}l9 9m0 -9l-9 9", px(middle(*at) - 4.5), px(y.px(*value) - 4.5));
    }
    // Whiskers lie on bars of their own colour: they take that of text there.
    let upon = if style == Style::Bars { "iv" } else { class.as_str() };
    for (class, path) in [(upon, whiskers), ("said", crosses)] {
        if !path.is_empty() {
            chart.raw(&format!("<path class=\"v {class}\" d=\"{path}\"/>"));
        }
    }
}

fn key(chart: &mut Chart, curves: &[Over]) {
    let top = chart.area[2];
    chart.area[2] = 8.0;
    let mut entries: Vec<(String, String)> =
        curves.iter().enumerate().map(|(hue, curve)| (hue_class(hue), curve.label.clone())).collect();
    if curves.iter().any(|curve| !curve.published.is_empty()) {
        entries.push(("said".to_owned(), "\u{d7} published, another machine".to_owned()));
    }
    chart.key_of(&entries);
    chart.area[2] = top;
}

fn description(asked: &OverAsked<'_>, curves: &[Over]) -> String {
    let tick = |at: usize| asked.ticks.get(at).map_or("", String::as_str);
    let number = |value: f64| match asked.measure {
        Measure::Ns => micro(&format::ns_f(value)),
        Measure::Share => format::share(value),
        Measure::Count => format::short(value),
    };
    let one = |curve: &Over| {
        let measured = curve.points.iter().map(|&OverPoint { at, median, low, high }| {
            format!("{} {} ({} to {})", tick(at), number(median), number(low), number(high))
        });
        let published =
            curve.published.iter().map(|(at, value)| format!("{} published {}", tick(*at), number(*value)));
        format!("{}: {}", curve.label, measured.chain(published).collect::<Vec<_>>().join(", "))
    };
    let curves: Vec<String> = curves.iter().map(one).collect();
    format!("{} over {}. {}.", asked.axes[1], asked.axes[0], curves.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(label: &str, scale: f64) -> Over {
        let scaled = |number: usize| scale * number as f64;
        let point = |at| OverPoint { at, median: scaled(at + 2), low: scaled(at + 1), high: scaled(at + 4) };
        Over { label: label.into(), points: (0..3).map(point).collect(), published: vec![(1, 40.0 * scale)] }
    }

    fn asked(ticks: &[String], style: Style, log: bool) -> OverAsked<'_> {
        OverAsked { axes: ["period", "observed maximum"], ticks, measure: Measure::Ns, style, log }
    }

    fn ticks() -> Vec<String> {
        ["50us", "70us", "<90us>"].map(str::to_owned).to_vec()
    }

    #[test]
    fn every_point_has_its_mark_and_whisker_and_every_published_number_its_cross() {
        let (ticks, curves) = (ticks(), [curve("6.1", 1e3), curve("6.1-rt", 5e2)]);
        let bars = over("o", "t", &asked(&ticks, Style::Bars, false), &curves).unwrap();
        assert_eq!(bars.matches("class=\"bar k").count(), 6);
        assert_eq!(bars.matches("l9 9m0 -9l-9 9").count(), 2);
        let lines = over("o", "t", &asked(&ticks, Style::Lines, true), &curves).unwrap();
        assert_eq!(lines.matches("class=\"pt k").count(), 6);
        let path = lines.split("data-l=\"6.1\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(path.matches(['M', 'L']).count(), 3);
        for svg in [bars, lines] {
            assert!(!svg.contains("NaN") && svg.contains("&lt;90us&gt;") && !svg.contains("<90us>"), "{svg}");
            assert!(svg.contains("70us 3.000 µs (2.000 µs to 5.000 µs)"), "{svg}");
            assert!(
                svg.contains("70us published 40.000 µs") || svg.contains("70us published 40.00 µs"),
                "{svg}"
            );
        }
    }

    #[test]
    fn higher_values_stand_higher_and_bars_stand_on_the_axis() {
        let ticks = ticks();
        for log in [false, true] {
            let one = Over { published: Vec::new(), ..curve("x", 1e3) };
            let svg = over("o", "t", &asked(&ticks, Style::Bars, log), &[one]).unwrap();
            let of = |name: &str| -> Vec<f64> {
                let bars = svg.split("<rect class=\"bar").skip(1);
                bars.map(|bar| {
                    bar.split(&format!(" {name}=\""))
                        .nth(1)
                        .unwrap()
                        .split('"')
                        .next()
                        .unwrap()
                        .parse()
                        .unwrap()
                })
                .collect()
            };
            let (tops, heights) = (of("y"), of("height"));
            assert!(tops.windows(2).all(|pair| pair[0] > pair[1]), "{tops:?}");
            assert!(
                tops.iter().zip(&heights).all(|(top, height)| (top + height - 336.0).abs() < 0.3),
                "{tops:?} {heights:?}"
            );
        }
    }

    #[test]
    fn nothing_is_no_chart_and_noughts_are_one() {
        let ticks = ticks();
        assert_eq!(over("o", "t", &asked(&ticks, Style::Bars, true), &[]), None);
        let empty = Over { label: "x".into(), points: Vec::new(), published: vec![(0, 4.0)] };
        assert_eq!(over("o", "t", &asked(&ticks, Style::Bars, true), &[empty]), None);
        let noughts = Over {
            label: "x".into(),
            points: vec![OverPoint { at: 0, median: 0.0, low: 0.0, high: 0.0 }],
            published: Vec::new(),
        };
        for log in [false, true] {
            let svg =
                over("o", "t", &asked(&ticks, Style::Bars, log), std::slice::from_ref(&noughts)).unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
