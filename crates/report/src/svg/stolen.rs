//! What each class costs: time stolen per second, one bar a phase, from zero on a linear axis.

use super::axis::{Axis, Unit};
use super::frame::{Chart, HALF, px};
use super::micro;
use crate::format;

const BAR: f64 = 8.0;
const GAP: f64 = 8.0;

/// One class.
#[derive(Debug, Clone, PartialEq)]
pub struct StolenRow {
    /// Name of the class.
    pub label: String,
    /// ns stolen per CPU and second, one entry a phase, in order.
    pub ns_per_s: Vec<f64>,
}

/// Draws the rows in the order given; `None` where nothing was stolen.
pub fn stolen(id: &str, title: &str, phases: &[String], rows: &[StolenRow]) -> Option<String> {
    let most = rows.iter().flat_map(|row| &row.ns_per_s).copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let row_height = BAR * phases.len() as f64 + GAP;
    let height = 58.0 + row_height * rows.len() as f64;
    let mut chart = Chart::new(id, title, &description(phases, rows), [HALF, height], 106.0);
    let x = Axis::linear(Unit::Ns, 0.0, most * 1.2, chart.across());
    chart.horizontal(&x, "time stolen per CPU and second");
    for (index, row) in rows.iter().enumerate() {
        draw_row(&mut chart, row, &x, 14.0 + row_height * index as f64 + GAP / 2.0);
    }
    Some(chart.finish())
}

fn draw_row(chart: &mut Chart, row: &StolenRow, x: &Axis, top: f64) {
    let left = chart.area[0];
    let middle = top + BAR * row.ns_per_s.len() as f64 / 2.0;
    chart.text(left - 8.0, middle + 4.0, "t e", &row.label);
    for (style, ns) in row.ns_per_s.iter().enumerate().filter(|(_, ns)| **ns > 0.0) {
        let y = top + BAR * style as f64;
        chart.raw(&format!(
            "<rect class=\"f s{style}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            px(left),
            px(y),
            px((x.px(*ns) - left).max(1.0)),
            px(BAR - 1.0)
        ));
    }
    let most = row.ns_per_s.iter().copied().fold(0.0, f64::max);
    chart.text(x.px(most) + 5.0, middle + 4.0, "t", &micro(&format::ns_f(most)));
}

fn description(phases: &[String], rows: &[StolenRow]) -> String {
    let row = |row: &StolenRow| {
        let times: Vec<String> = row.ns_per_s.iter().map(|ns| format::ns_f(*ns)).collect();
        format!("{}: {}", row.label, times.join(", "))
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!("Time stolen per CPU and second by class, for {}. {}.", phases.join(", "), rows.join("; "))
}
