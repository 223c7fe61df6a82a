//! Distributions of unlike things under each other: for each a line from the least to the observed
//! maximum, a bar up to the 99th percentile where it is known, a dot at the median, and marks such
//! as a deadline. Logarithmic, since they lie decades apart.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, HALF, px};
use super::rows::{HAND, Room, cut};
use crate::format;

/// Height of a row.
const ROW: f64 = 26.0;
const LEFT: f64 = 116.0;
/// Width of a letter of a label.
const LETTER: f64 = 7.0;
/// Letters of a label that are shown.
const LETTERS: usize = 44;
/// Height of a label above its row, in a hand.
const ABOVE: f64 = 16.0;

/// One distribution, ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    /// What it is of.
    pub label: String,
    /// Least.
    pub min_ns: i64,
    /// Median.
    pub median_ns: i64,
    /// 99th percentile, where there are samples enough.
    pub p99_ns: Option<i64>,
    /// Observed maximum.
    pub max_ns: i64,
    /// What was calculated: a triangle.
    pub calculated_ns: Option<i64>,
    /// What it must not reach beyond: an upright line.
    pub deadline_ns: Option<i64>,
}

/// Draws the rows in the order given; `None` where nothing is above 0, which a logarithmic axis
/// needs.
pub fn spread(id: &str, title: &str, what: &str, rows: &[Spread], room: Room) -> Option<String> {
    let all = |row: &Spread| {
        let marks = [row.calculated_ns, row.deadline_ns, row.p99_ns];
        [row.min_ns, row.median_ns, row.max_ns]
            .into_iter()
            .chain(marks.into_iter().flatten())
            .collect::<Vec<_>>()
    };
    let values = || rows.iter().flat_map(all).filter(|value| *value > 0);
    let (low, high) = (values().min()? as f64, values().max()? as f64);
    let letters = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0).min(LETTERS);
    let beside = LEFT.max(LETTER * letters as f64 + 16.0);
    let (width, left, above) = match room {
        // Long names leave too little of half a page.
        Room::Desk => (if beside > LEFT { FULL } else { HALF }, beside, 0.0),
        Room::Hand => (HAND, 18.0, ABOVE),
    };
    let height = 62.0 + (ROW + above) * rows.len() as f64;
    let mut chart = Chart::new(id, title, &description(what, rows), [width, height], left);
    let x = Axis::log_tight(Unit::Ns, low, high, chart.across());
    chart.horizontal(&x, what);
    for (index, row) in rows.iter().enumerate() {
        let y = 16.0 + (ROW + above) * index as f64 + above + ROW / 2.0;
        let label = cut(&row.label, LETTERS);
        match room {
            Room::Desk => chart.text(left - 8.0, y + 4.0, "t e", &label),
            // Clear of a deadline's line.
            Room::Hand => chart.text(left, y - 14.0, "n halo", &label),
        }
        draw(&mut chart, row, &x, y);
    }
    Some(chart.finish())
}

fn draw(chart: &mut Chart, row: &Spread, x: &Axis, y: f64) {
    let at = |ns: i64| x.px(ns.max(0) as f64);
    let (min, max) = (px(at(row.min_ns)), px(at(row.max_ns)));
    chart.raw(&format!(
        "<path class=\"w s0\" d=\"M{min} {y}H{max}M{max} {}V{}\"/>",
        px(y - 5.0),
        px(y + 5.0),
        y = px(y)
    ));
    if let Some(p99) = row.p99_ns {
        let (left, right) = (at(row.min_ns), at(p99));
        let width = px((right - left).max(1.0));
        chart.raw(&format!(
            "<rect class=\"f q s0\" x=\"{min}\" y=\"{}\" width=\"{width}\" height=\"10\"/>",
            px(y - 5.0)
        ));
    }
    chart.dot(0, at(row.median_ns), y);
    if let Some(deadline) = row.deadline_ns {
        chart.raw(&format!(
            "<path class=\"a\" d=\"M{} {}V{}\"/>",
            px(at(deadline)),
            px(y - 11.0),
            px(y + 11.0)
        ));
    }
    if let Some(calculated) = row.calculated_ns {
        let at = at(calculated);
        let corners =
            format!("M{} {}H{}L{} {}Z", px(at - 5.0), px(y - 11.0), px(at + 5.0), px(at), px(y - 3.0));
        chart.raw(&format!("<path class=\"o s1\" d=\"{corners}\"/>"));
    }
}

fn description(what: &str, rows: &[Spread]) -> String {
    let row = |row: &Spread| {
        let [min, median, max] = [row.min_ns, row.median_ns, row.max_ns].map(format::ns);
        format!("{}: least {min}, median {median}, observed maximum {max}", row.label)
    };
    format!("{what}, logarithmic. {}.", rows.iter().map(row).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(min_ns: i64, max_ns: i64) -> Spread {
        let median_ns = i64::midpoint(min_ns, max_ns);
        let (p99_ns, calculated_ns, deadline_ns) = (None, None, None);
        Spread { label: "x".into(), min_ns, median_ns, p99_ns, max_ns, calculated_ns, deadline_ns }
    }

    #[test]
    fn values_at_or_below_zero_do_not_break_the_axis() {
        let svg = spread("s", "t", "time", &[row(-50, 4_000)], Room::Desk).unwrap();
        assert!(svg.starts_with("<svg") && !svg.contains("NaN") && svg.contains("least -50 ns"));
        assert_eq!(spread("s", "t", "time", &[row(-50, -10)], Room::Desk), None);
        assert_eq!(spread("s", "t", "time", &[], Room::Desk), None);
    }

    #[test]
    fn long_names_have_room_and_longer_ones_are_cut() {
        let named = |label: &str| Spread { label: label.into(), ..row(10, 4_000) };
        let width =
            |svg: &str| svg.split("viewBox=\"0 0 ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        let short = spread("s", "t", "time", &[named("tick")], Room::Desk).unwrap();
        let long =
            spread("s", "t", "time", &[named("a topic to a node"), named(&"\u{e9}".repeat(90))], Room::Desk)
                .unwrap();
        assert_eq!((width(&short).as_str(), width(&long).as_str()), ("560", "1120"));
        assert!(long.contains(&format!(">{}\u{2026}<", "\u{e9}".repeat(43))), "{long}");
        let hand = spread("s", "t", "time", &[named("a topic to a node")], Room::Hand).unwrap();
        assert!(width(&hand) == "400" && hand.contains(">a topic to a node<"), "{hand}");
    }
}
