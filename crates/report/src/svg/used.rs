//! How much of its deadline each task uses: a bar or two a row on one axis, and the deadline as a
//! line.

use super::axis::{Axis, Unit};
use super::frame::px;
use super::rows::{AXIS, Room, RowText, Rows};

/// Bars reach no farther than this many deadlines.
const FARTHEST: f64 = 1.5;
/// Height of one of two bars.
const BAR: f64 = 7.0;

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub struct UsedRow {
    /// Its name.
    pub label: String,
    /// What the bars are, in words.
    pub words: String,
    /// Colour of the words: `bad` or empty.
    pub class: &'static str,
    /// At most two: colour (`k0`, `k1`), and the share of the deadline.
    pub bars: Vec<(&'static str, f64)>,
}

/// Draws the rows; `None` without any.
pub fn used(id: &str, title: &str, rows: &[UsedRow], room: Room) -> Option<String> {
    let most = rows.iter().flat_map(|row| &row.bars).map(|(_, share)| *share).reduce(f64::max)?;
    let about: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.label, row.words)).collect();
    let texts: Vec<RowText<'_>> =
        rows.iter().map(|row| RowText { name: &row.label, words: &row.words, class: row.class }).collect();
    let mut drawn = Rows::new(id, title, &format!("{}.", about.join("; ")), &texts, AXIS, room);
    let x = Axis::linear(Unit::Share, 0.0, most.clamp(1.04, FARTHEST), drawn.chart.across());
    drawn.chart.horizontal(&x, "share of the deadline");
    let [_, _, top, bottom] = drawn.chart.area;
    for (at, row) in rows.iter().enumerate() {
        let above = drawn.middle(at) - BAR * row.bars.len() as f64 / 2.0;
        for (place, (class, share)) in row.bars.iter().enumerate() {
            let (from, to) = (x.px(0.0), x.px(*share));
            drawn.chart.raw(&format!(
                "<rect class=\"bar {class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                px(from),
                px(above + BAR * place as f64),
                px((to - from).max(0.8)),
                px(BAR - 1.0)
            ));
        }
    }
    let limit = px(x.px(1.0));
    drawn.chart.under(&format!("<path class=\"lim\" d=\"M{limit} {}V{}\"/>", px(top), px(bottom)));
    Some(drawn.chart.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_end_at_their_share_and_beyond_the_axis_at_its_end() {
        let row = |share| UsedRow {
            label: "a <b>".into(),
            words: "bound".into(),
            class: "",
            bars: vec![("k0", 0.25), ("k1", share)],
        };
        let svg = used("u", "t", &[row(0.5), row(40.0)], Room::Desk).unwrap();
        assert_eq!(svg.matches("<rect class=\"bar").count(), 4);
        assert!(svg.contains("a &lt;b&gt;") && svg.contains(">100 %<") && svg.contains("class=\"lim\""));
        assert_eq!(used("u", "t", &[], Room::Hand), None);
    }
}
