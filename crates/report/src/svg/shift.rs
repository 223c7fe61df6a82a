//! The shift function: by how much two groups differ at each level of their distributions, with the
//! interval of each.
//!
//! Doksum, "Empirical probability plots and statistical inference for nonlinear models in the
//! two-sample case", Annals of Statistics 2 (1974). Levels stand side by side as they are given,
//! since the tail is what is looked at; above zero the other group is later.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, px};
use super::micro;
use crate::format;
use std::fmt::Write;

/// One level.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Its name: `p99.9`.
    pub label: String,
    /// The difference, ns.
    pub difference_ns: f64,
    /// Its 95 % interval.
    pub interval_ns: Option<[f64; 2]>,
}

/// Draws the levels in the order given; `None` without any.
pub fn shift(id: &str, title: &str, levels: &[Level]) -> Option<String> {
    let values = || {
        levels.iter().flat_map(|one| {
            let [low, high] = one.interval_ns.unwrap_or([one.difference_ns; 2]);
            [one.difference_ns, low, high]
        })
    };
    let (low, high) = (values().reduce(f64::min)?.min(0.0), values().reduce(f64::max)?.max(0.0));
    let room = ((high - low) * 0.08).max(1.0);
    let mut chart = Chart::new(id, title, &description(levels), [FULL, 300.0], 70.0);
    let y = Axis::linear(Unit::Ns, low - room, high + room, chart.upwards());
    let [left, right, top, bottom] = chart.area;
    for tick in y.ticks() {
        chart.raw(&format!("<path class=\"g\" d=\"M{} {}H{}\"/>", px(left), px(tick.px), px(right)));
        chart.text(left - 6.0, tick.px + 4.0, "t e", &tick.label.unwrap_or_default());
    }
    chart.raw(&format!("<path class=\"a\" d=\"M{} {}H{}\"/>", px(left), px(y.px(0.0)), px(right)));
    let width = (right - left) / levels.len() as f64;
    let at = |index: usize| left + width * (index as f64 + 0.5);
    let (mut line, mut bars) = (String::new(), String::new());
    for (index, one) in levels.iter().enumerate() {
        let x = at(index);
        let _ =
            write!(line, "{}{} {}", if index == 0 { 'M' } else { 'L' }, px(x), px(y.px(one.difference_ns)));
        if let Some([low, high]) = one.interval_ns {
            let _ = write!(bars, "M{} {}V{}", px(x), px(y.px(low)), px(y.px(high)));
        }
        chart.text(x, bottom + 16.0, "t c", &one.label);
    }
    if !bars.is_empty() {
        chart.raw(&format!("<path class=\"iv wide\" d=\"{bars}\"/>"));
    }
    chart.raw(&format!("<path class=\"s s0\" d=\"{line}\"/>"));
    for (index, one) in levels.iter().enumerate() {
        chart.dot(0, at(index), y.px(one.difference_ns));
    }
    chart.text(f64::midpoint(left, right), bottom + 35.0, "n c", "level of the distribution");
    chart.raw(&format!(
        "<text class=\"n y\" transform=\"translate(13 {}) rotate(-90)\" text-anchor=\"middle\">other less base</text>",
        px(f64::midpoint(top, bottom))
    ));
    Some(chart.finish())
}

fn description(levels: &[Level]) -> String {
    let one = |one: &Level| format!("{}: {}", one.label, micro(&format::ns_f(one.difference_ns)));
    format!("Difference at each level. {}.", levels.iter().map(one).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_a_dot_and_zero_is_always_there() {
        let level = |label: &str, difference_ns, interval_ns| Level {
            label: label.into(),
            difference_ns,
            interval_ns,
        };
        let levels = [level("p50", 200.0, Some([100.0, 300.0])), level("p99", 9_000.0, None)];
        let svg = shift("s", "t", &levels).unwrap();
        assert_eq!(svg.matches("<circle").count(), 2);
        assert_eq!(svg.matches("class=\"a\"").count(), 1);
        assert!(svg.contains("p50: 200 ns; p99: 9.000 µs") && !svg.contains("NaN"), "{svg}");
        assert_eq!(shift("s", "t", &[]), None);
    }
}
