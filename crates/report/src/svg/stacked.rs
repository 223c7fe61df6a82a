//! Counts of kinds, one bar a row and all bars on one scale: statements of each paper that were
//! reproduced, refuted, or are open.

use super::frame::px;
use super::rows::{Room, RowText, Rows};

/// One bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackedRow {
    /// What it is of.
    pub label: String,
    /// Parts in their order: the class that fills each, and its count.
    pub parts: Vec<(&'static str, u64)>,
    /// Printed beside or below.
    pub note: String,
}

/// Room below the last bar: there is no axis.
const FOOT: f64 = 4.0;
/// Height of a bar.
const BAR: f64 = 13.0;

/// Draws the rows in the order given; `None` where all counts are nought.
pub fn stacked(id: &str, title: &str, rows: &[StackedRow], room: Room) -> Option<String> {
    let all = |row: &StackedRow| row.parts.iter().map(|(_, count)| count).sum::<u64>();
    let most = rows.iter().map(all).max().filter(|most| *most > 0)?;
    let text = |row: &StackedRow| format!("{}: {}", row.label, row.note);
    let about = format!("{}.", rows.iter().map(text).collect::<Vec<_>>().join("; "));
    let text = |row| -> RowText<'_> {
        let row: &StackedRow = row;
        RowText { name: &row.label, words: &row.note, class: "" }
    };
    let texts: Vec<RowText<'_>> = rows.iter().map(text).collect();
    let mut drawn = Rows::new(id, title, &about, &texts, FOOT, room);
    let [left, right, _, _] = drawn.chart.area;
    let width = |count: u64| count as f64 / most as f64 * (right - left);
    for (at, row) in rows.iter().enumerate() {
        let y = drawn.middle(at);
        let mut x = left;
        for (class, count) in row.parts.iter().filter(|(_, count)| *count > 0) {
            let width = width(*count);
            drawn.chart.raw(&format!(
                "<rect class=\"st {class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{BAR}\"/>",
                px(x),
                px(y - BAR / 2.0),
                px((width - 1.0).max(0.5))
            ));
            x += width;
        }
    }
    Some(drawn.chart.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_a_scale_and_end_inside() {
        let row = |parts: [u64; 2]| StackedRow {
            label: "a paper".into(),
            parts: vec![("good", parts[0]), ("dim", parts[1])],
            note: "1 of 4".into(),
        };
        let svg = stacked("s", "t", &[row([1, 3]), row([2, 0])], Room::Desk).unwrap();
        let widths: Vec<f64> = svg
            .split(" width=\"")
            .skip(1)
            .map(|part| part.split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!(widths.len() == 3 && widths[2] > widths[0] && widths[1] > widths[2], "{widths:?}");
        assert_eq!(stacked("s", "t", &[row([0, 0])], Room::Desk), None);
    }
}
