//! Differences with their intervals, a forest plot. An interval clear of zero differs, one inside
//! its margin does not matter, and one that covers both is undecided.
//!
//! The axis is linear about zero and logarithmic far from it (the inverse hyperbolic sine), since a
//! median differs by hundreds of nanoseconds where a maximum differs by milliseconds. To the left
//! is better: lower is better in every statistic here.

use super::escape;
use super::frame::{Chart, FULL, apart, px};
use super::micro;
use crate::format;

/// Height of a row.
const ROW: f64 = 24.0;
const LEFT: f64 = 250.0;
/// Room for the words at the end of a row.
const RIGHT: f64 = 300.0;

/// One difference.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestRow {
    /// What differs.
    pub label: String,
    /// The difference.
    pub point: Option<f64>,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// What difference matters.
    pub margin: Option<f64>,
    /// `bad`, `good`, `dim` or `warn`.
    pub class: &'static str,
    /// Printed at the end of the row.
    pub note: String,
}

/// Draws rows of one unit (`ns`, `share`, `per s`); `None` where no row has a point.
pub fn forest(id: &str, title: &str, unit: &str, rows: &[ForestRow]) -> Option<String> {
    let values = || {
        let of = |row: &ForestRow| [row.point, row.interval.map(|i| i[0]), row.interval.map(|i| i[1])];
        rows.iter().flat_map(of).flatten().filter(|value| value.is_finite())
    };
    let most = values().map(f64::abs).reduce(f64::max)?;
    let scale = Scale::of(unit, most);
    let height = 62.0 + ROW * rows.len() as f64;
    let mut chart = Chart::new(id, title, &description(unit, rows), [FULL, height], LEFT);
    chart.area[1] = FULL - RIGHT;
    let [left, right, top, bottom] = chart.area;
    let at = |value: f64| scale.px(value, left, right);
    let ticks = scale.ticks();
    for (value, _) in &ticks {
        let x = px(at(*value));
        chart.raw(&format!("<path class=\"g\" d=\"M{x} {}V{}\"/>", px(top), px(bottom)));
    }
    for (x, label) in apart(ticks.into_iter().map(|(value, label)| (at(value), label)).collect()) {
        chart.text(x, bottom + 16.0, "t c", &label);
    }
    chart.raw(&format!("<path class=\"a\" d=\"M{} {}V{}\"/>", px(at(0.0)), px(top), px(bottom)));
    chart.text(left, bottom + 35.0, "n", "\u{2190} better");
    chart.text(right, bottom + 35.0, "n e", "worse \u{2192}");
    for (index, row) in rows.iter().enumerate() {
        draw(&mut chart, row, top + ROW * (index as f64 + 0.5), &at);
    }
    Some(chart.finish())
}

fn draw(chart: &mut Chart, row: &ForestRow, y: f64, at: &dyn Fn(f64) -> f64) {
    chart.text(LEFT - 10.0, y + 4.0, "t e", &row.label);
    if let Some(margin) = row.margin {
        let (from, to) = (at(-margin), at(margin));
        chart.raw(&format!(
            "<rect class=\"eq\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            px(from),
            px(y - 9.0),
            px(to - from),
            px(18.0)
        ));
    }
    if let Some([low, high]) = row.interval {
        let (low, high) = (px(at(low)), px(at(high)));
        let (up, down) = (px(y - 4.0), px(y + 4.0));
        let path = format!("M{low} {}H{high}M{low} {up}V{down}M{high} {up}V{down}", px(y));
        chart.raw(&format!("<path class=\"iv {}\" d=\"{path}\"/>", row.class));
    }
    if let Some(point) = row.point {
        let (cx, cy) = (px(at(point)), px(y));
        chart.raw(&format!("<circle class=\"pt {}\" cx=\"{cx}\" cy=\"{cy}\" r=\"4\"/>", row.class));
    }
    let right = chart.area[1];
    chart.raw(&format!(
        "<text class=\"t {}\" x=\"{}\" y=\"{}\">{}</text>",
        row.class,
        px(right + 14.0),
        px(y + 4.0),
        escape(&row.note)
    ));
}

/// From `-most` to `most`, linear within about `linear` of zero.
struct Scale {
    linear: f64,
    most: f64,
    unit: String,
}

impl Scale {
    fn of(unit: &str, most: f64) -> Self {
        let linear = match unit {
            "ns" => 1_000.0,
            "share" => 1e-5,
            _ => 1.0,
        };
        Self { linear, most: (most * 1.15).max(linear * 2.0), unit: unit.to_owned() }
    }

    fn px(&self, value: f64, left: f64, right: f64) -> f64 {
        let part = (value / self.linear).asinh() / (self.most / self.linear).asinh();
        f64::midpoint(left, right) + part.clamp(-1.0, 1.0) * (right - left) / 2.0
    }

    /// Zero and decades, as many as keep apart.
    fn ticks(&self) -> Vec<(f64, String)> {
        let decades = (self.most / self.linear).log10().floor().max(0.0) as i32;
        let every = (decades / 4 + 1).max(1);
        let mut ticks = vec![(0.0, "0".to_owned())];
        for decade in (0..=decades).filter(|decade| (decades - decade) % every == 0) {
            let value = self.linear * 10f64.powi(decade);
            ticks.push((value, format!("+{}", self.label(value))));
            ticks.push((-value, format!("\u{2212}{}", self.label(value))));
        }
        ticks
    }

    fn label(&self, value: f64) -> String {
        match self.unit.as_str() {
            "ns" => micro(&format::ns_round(value)),
            "share" => format::share(value),
            _ => format!("{}/s", format::short(value)),
        }
    }
}

fn description(unit: &str, rows: &[ForestRow]) -> String {
    let row = |row: &ForestRow| format!("{}: {}", row.label, row.note);
    format!(
        "Differences in {unit} with 95 % intervals. {}.",
        rows.iter().map(row).collect::<Vec<_>>().join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(point: f64, interval: [f64; 2]) -> ForestRow {
        ForestRow {
            label: "p99".into(),
            point: Some(point),
            interval: Some(interval),
            margin: Some(1_000.0),
            class: "bad",
            note: "worse".into(),
        }
    }

    #[test]
    fn zero_is_in_the_middle_and_order_is_kept() {
        let scale = Scale::of("ns", 5e6);
        assert!((scale.px(0.0, 100.0, 300.0) - 200.0).abs() < 1e-9);
        let places: Vec<f64> =
            [-6e6, -1e3, -1.0, 0.0, 500.0, 1e4, 5e6].iter().map(|v| scale.px(*v, 100.0, 300.0)).collect();
        assert!(places.is_sorted() && places[0] >= 100.0 && places[6] <= 300.0, "{places:?}");
        assert!(scale.ticks().iter().all(|(value, _)| value.abs() <= scale.most));
    }

    #[test]
    fn every_row_has_point_interval_and_margin() {
        let svg = forest("f", "t", "ns", &[row(2e3, [1e3, 3e3]), row(-5.0, [-9.0, 4.0])]).unwrap();
        for (class, count) in [("class=\"pt bad\"", 2), ("class=\"iv bad\"", 2), ("class=\"eq\"", 2)] {
            assert_eq!(svg.matches(class).count(), count, "{class}");
        }
        assert!(!svg.contains("NaN"));
        assert_eq!(forest("f", "t", "ns", &[]), None);
        let none = ForestRow { point: None, interval: None, ..row(0.0, [0.0, 0.0]) };
        assert_eq!(forest("f", "t", "ns", &[none]), None);
    }
}
