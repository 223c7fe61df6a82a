//! How often each class came, by phase: a dot a phase on a logarithmic axis.
//!
//! Dots, not bars: a logarithmic axis has no zero for a bar to stand on. Nothing seen is drawn as
//! an open triangle at the 95 % upper bound of the rate, pointing to where the rate may be.

use super::axis::{Axis, Unit};
use super::frame::{Chart, HALF, px};
use crate::format;

/// Height of one row.
const ROW: f64 = 24.0;

/// One class.
#[derive(Debug, Clone, PartialEq)]
pub struct RateRow {
    /// Name of the class.
    pub label: String,
    /// One entry a phase, in order: rate per second, and the upper bound where nothing was seen.
    /// `None`: not observable.
    pub rates: Vec<Option<(f64, Option<f64>)>>,
}

/// Draws the rows; `None` where no rate is known.
pub fn rates(id: &str, title: &str, phases: &[String], rows: &[RateRow]) -> Option<String> {
    let known = || rows.iter().flat_map(|row| &row.rates).flatten();
    let positive = || known().flat_map(|(rate, bound)| [Some(*rate), *bound]).flatten().filter(|v| *v > 0.0);
    let low = positive().fold(f64::INFINITY, f64::min);
    let high = positive().fold(0.0, f64::max);
    if high <= 0.0 {
        return None;
    }
    let height = 72.0 + ROW * rows.len() as f64;
    let mut chart = Chart::new(id, title, &description(phases, rows), [HALF, height], 106.0);
    chart.area[2] = 30.0;
    let x = Axis::decades(Unit::PerSecond, low, high, chart.across());
    chart.horizontal(&x, "events per CPU and second (triangle: none seen, below)");
    legend(&mut chart, phases);
    for (index, row) in rows.iter().enumerate() {
        let y = chart.area[2] + ROW * (index as f64 + 0.5);
        draw_row(&mut chart, row, &x, y);
    }
    Some(chart.finish())
}

fn legend(chart: &mut Chart, phases: &[String]) {
    let mut at = chart.area[0] + 6.0;
    for (style, phase) in phases.iter().enumerate() {
        chart.dot(style, at, 14.0);
        chart.text(at + 9.0, 18.0, &format!("l s{style}"), phase);
        at += 34.0 + phase.chars().count() as f64 * 6.6;
    }
}

fn draw_row(chart: &mut Chart, row: &RateRow, x: &Axis, y: f64) {
    let [left, right, ..] = chart.area;
    chart.raw(&format!("<path class=\"m\" d=\"M{} {}H{}\"/>", px(left), px(y), px(right)));
    chart.text(left - 8.0, y + 4.0, "t e", &row.label);
    let phases = row.rates.len() as f64;
    for (style, rate) in row.rates.iter().enumerate() {
        // A few units apart, so that equal rates do not hide each other.
        let y = y + (style as f64 - (phases - 1.0) / 2.0) * 5.0;
        match rate {
            Some((rate, _)) if *rate > 0.0 => chart.dot(style, x.px(*rate), y),
            Some((_, Some(bound))) => {
                let at = x.px(*bound);
                let (tip, up, down) = (px(at - 7.0), px(y - 3.0), px(y + 3.0));
                let corners = format!("M{} {up}V{down}L{tip} {}Z", px(at), px(y));
                chart.raw(&format!("<path class=\"o s{style}\" d=\"{corners}\"/>"));
            }
            _ => (),
        }
    }
}

fn description(phases: &[String], rows: &[RateRow]) -> String {
    let rate = |rate: &Option<(f64, Option<f64>)>| match rate {
        Some((_, Some(bound))) => format!("none seen (below {})", format::rate_up(*bound)),
        Some((rate, None)) => format::rate(*rate),
        None => "not observable".to_owned(),
    };
    let row = |row: &RateRow| {
        let rates: Vec<String> = row.rates.iter().map(rate).collect();
        format!("{}: {}", row.label, rates.join(", "))
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!("Events per CPU and second by class, for {}. {}.", phases.join(", "), rows.join("; "))
}
