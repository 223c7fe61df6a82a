//! Differences with their intervals, a forest plot. An interval clear of zero differs, one inside
//! its margin does not matter, and one that covers both is undecided.
//!
//! The axis is linear about zero and logarithmic far from it (the inverse hyperbolic sine), since a
//! median differs by hundreds of nanoseconds where a maximum differs by milliseconds. To the left
//! is better: lower is better in every statistic here.

use super::axis::count;
use super::frame::{apart, px};
use super::micro;
use super::rows::{AXIS, Room, RowText, Rows};
use crate::format;

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

/// Draws rows of one unit (`ns`, `share`, `per s`; `of base` for differences as shares of what they
/// are from); `None` where no row has a point.
pub fn forest(id: &str, title: &str, unit: &str, rows: &[ForestRow], room: Room) -> Option<String> {
    let values = || {
        let of = |row: &ForestRow| [row.point, row.interval.map(|i| i[0]), row.interval.map(|i| i[1])];
        rows.iter().flat_map(of).flatten().filter(|value| value.is_finite())
    };
    let most = values().map(f64::abs).reduce(f64::max)?;
    let scale = Scale::of(unit, most);
    let text = |row| -> RowText<'_> {
        let row: &ForestRow = row;
        RowText { name: &row.label, words: &row.note, class: row.class }
    };
    let texts: Vec<RowText<'_>> = rows.iter().map(text).collect();
    let mut drawn = Rows::new(id, title, &description(unit, rows), &texts, AXIS, room);
    let [left, right, top, bottom] = drawn.chart.area;
    let at = |value: f64| scale.px(value, left, right);
    let ticks = scale.ticks();
    let grid = |value: f64| format!("M{} {}V{}", px(at(value)), px(top), px(bottom));
    for (value, _) in &ticks {
        drawn.chart.under(&format!("<path class=\"g\" d=\"{}\"/>", grid(*value)));
    }
    let labels = apart(ticks.into_iter().map(|(value, label)| (at(value), label)).collect());
    // A number that would reach beyond both the axis and the room beside it says nothing.
    let inside = |(x, label): &(f64, String)| {
        let half = label.chars().count() as f64 * 3.5;
        room == Room::Desk || (x - half >= left - 12.0 && x + half <= right + 14.0)
    };
    for (x, label) in labels.iter().filter(|one| inside(one)) {
        drawn.chart.text(*x, bottom + 16.0, "t c", label);
    }
    drawn.chart.under(&format!("<path class=\"a\" d=\"{}\"/>", grid(0.0)));
    drawn.chart.text(left, bottom + 37.0, "n", "\u{2190} better");
    drawn.chart.text(right, bottom + 37.0, "n e", "worse \u{2192}");
    for (index, row) in rows.iter().enumerate() {
        draw(&mut drawn, index, row, &at);
    }
    Some(drawn.chart.finish())
}

fn draw(drawn: &mut Rows, index: usize, row: &ForestRow, at: &dyn Fn(f64) -> f64) {
    if let Some(margin) = row.margin {
        let (from, to) = (at(-margin), at(margin));
        drawn.chart.under(&format!(
            "<rect class=\"eq\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            px(from),
            px(drawn.middle(index) - 9.0),
            px(to - from),
            px(18.0)
        ));
    }
    if let Some(interval) = row.interval {
        drawn.interval(index, row.class, interval.map(at));
    }
    if let Some(point) = row.point {
        drawn.point(index, row.class, at(point));
    }
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
            "of base" => 0.05,
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
        let of = |digit: f64| {
            let decades = (0..=decades).filter(move |decade| (decades - decade) % every == 0);
            decades.map(move |decade| digit * self.linear * 10f64.powi(decade))
        };
        // Of few decades what lies between them has room, too.
        let between: Vec<f64> = if decades < 2 { of(2.0).chain(of(5.0)).collect() } else { Vec::new() };
        for value in of(1.0).chain(between).filter(|value| *value <= self.most) {
            ticks.push((value, format!("+{}", self.label(value))));
            ticks.push((-value, format!("\u{2212}{}", self.label(value))));
        }
        ticks
    }

    fn label(&self, value: f64) -> String {
        match self.unit.as_str() {
            "ns" => micro(&format::ns_round(value)),
            "share" if value < 1e-6 => format::share(value),
            "share" | "of base" => format!("{} %", format::short(value * 100.0)),
            _ => format!("{}/s", count(value)),
        }
    }
}

fn description(unit: &str, rows: &[ForestRow]) -> String {
    let row = |row: &ForestRow| format!("{}: {}", row.label, row.note);
    let unit = if unit == "of base" { "shares of the base" } else { unit };
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
    fn shares_of_the_base_read_as_percent_and_a_hand_has_the_same_marks() {
        let rows = [row(0.23, [0.2, 0.26])];
        let of = |room| forest("f", "t", "of base", &rows, room).unwrap();
        let (desk, hand) = (of(Room::Desk), of(Room::Hand));
        assert!(desk.contains(">+5 %<") && desk.contains("0 0 1120 ") && hand.contains("0 0 400 "), "{desk}");
        assert_eq!(desk.matches("<circle").count(), hand.matches("<circle").count());
    }

    #[test]
    fn every_row_has_point_interval_and_margin() {
        let svg =
            forest("f", "t", "ns", &[row(2e3, [1e3, 3e3]), row(-5.0, [-9.0, 4.0])], Room::Desk).unwrap();
        for (class, count) in [("class=\"pt bad\"", 2), ("class=\"iv bad\"", 2), ("class=\"eq\"", 2)] {
            assert_eq!(svg.matches(class).count(), count, "{class}");
        }
        assert!(!svg.contains("NaN"));
        assert_eq!(forest("f", "t", "ns", &[], Room::Desk), None);
        let none = ForestRow { point: None, interval: None, ..row(0.0, [0.0, 0.0]) };
        assert_eq!(forest("f", "t", "ns", &[none], Room::Desk), None);
    }
}
