//! Values above nought with their intervals on one logarithmic axis: events per operation, or how
//! many times what was published was measured.

use super::axis::{Axis, Unit};
use super::frame::px;
use super::rows::{AXIS, Room, RowText, Rows};

/// Decades of the axis, at most: what lies below the largest by more is drawn at its left end.
const DECADES: f64 = 9.0;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalRow {
    /// What it is of.
    pub label: String,
    /// The value; `None` where only its bound is known.
    pub point: Option<f64>,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// Its colour: `good`, `bad`, `warn`, `dim`, or one of the hues `k0` to `k8`.
    pub class: String,
    /// Printed beside or below.
    pub note: String,
}

/// What the axis is of, and what is marked on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalAxis<'a> {
    /// Its name.
    pub name: &'a str,
    /// A line across all rows, such as where measured and published agree.
    pub mark: Option<f64>,
}

/// Draws the rows in the order given; `None` where none has a value above nought.
pub fn intervals(
    id: &str,
    title: &str,
    asked: IntervalAxis<'_>,
    rows: &[IntervalRow],
    room: Room,
) -> Option<String> {
    let values = || {
        let of = |row: &IntervalRow| [row.point, row.interval.map(|i| i[0]), row.interval.map(|i| i[1])];
        let drawn = rows.iter().flat_map(of).chain([asked.mark]).flatten();
        drawn.filter(|value| *value > 0.0 && value.is_finite())
    };
    rows.iter().find(|row| row.point.is_some_and(|point| point > 0.0))?;
    let high = values().reduce(f64::max)?;
    let low = values().reduce(f64::min)?.max(high / 10f64.powf(DECADES));
    let text = |row: &'_ IntervalRow| -> String { format!("{}: {}", row.label, row.note) };
    let about = format!("{}. {}.", asked.name, rows.iter().map(text).collect::<Vec<_>>().join("; "));
    // Hues are of lines and dots; words beside them are as dark as others.
    let tone = |class: &str| if class.starts_with('k') { "" } else { class }.to_owned();
    let tones: Vec<String> = rows.iter().map(|row| tone(&row.class)).collect();
    let text = |(row, class)| -> RowText<'_> {
        let (row, class): (&IntervalRow, &String) = (row, class);
        RowText { name: &row.label, words: &row.note, class }
    };
    let texts: Vec<RowText<'_>> = rows.iter().zip(&tones).map(text).collect();
    let mut drawn = Rows::new(id, title, &about, &texts, AXIS, room);
    let x = Axis::log_tight(Unit::Count, low, high, drawn.chart.across());
    drawn.chart.horizontal(&x, asked.name);
    if let Some(mark) = asked.mark {
        let [_, _, top, bottom] = drawn.chart.area;
        let path = format!("M{} {}V{}", px(x.px(mark)), px(top), px(bottom));
        drawn.chart.under(&format!("<path class=\"a\" d=\"{path}\"/>"));
    }
    for (at, row) in rows.iter().enumerate() {
        if let Some(interval) = row.interval {
            drawn.interval(at, &row.class, interval.map(|end| x.px(end)));
        }
        if let Some(point) = row.point.filter(|point| *point > 0.0) {
            drawn.point(at, &row.class, x.px(point));
        }
    }
    Some(drawn.chart.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(point: Option<f64>, interval: Option<[f64; 2]>) -> IntervalRow {
        IntervalRow { label: "mmap <x>".into(), point, interval, class: "k3".into(), note: "3.1".into() }
    }

    #[test]
    fn every_value_has_its_point_and_interval_and_nought_breaks_nothing() {
        let axis = IntervalAxis { name: "events per operation", mark: Some(1.0) };
        let rows = [row(Some(3.0), Some([2.0, 4.0])), row(None, Some([0.0, 0.01])), row(Some(0.0), None)];
        for room in [Room::Desk, Room::Hand] {
            let svg = intervals("i", "t", axis, &rows, room).unwrap();
            assert_eq!((svg.matches("<circle").count(), svg.matches("class=\"iv k3\"").count()), (1, 2));
            assert!(!svg.contains("NaN") && svg.contains("mmap &lt;x&gt;"), "{svg}");
        }
        assert_eq!(intervals("i", "t", axis, &rows[1..], Room::Desk), None);
    }
}
