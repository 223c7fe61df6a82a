//! Interference over time on one CPU: a row a class, as high as events came in each slot.
//!
//! After Fig. 5 of the RTSS 2024 paper on isolation ("interference captured on an idle isolated
//! core"), with counts in slots instead of one mark an event, so that ten minutes read as well as
//! one second. Each row has its own scale, printed at its end; phases as bands.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, px};
use super::timeline::{Band, draw_band};
use crate::format;
use std::fmt::Write;

/// Height of a row, and of what a slot can rise to in it.
const ROW: f64 = 26.0;
const RISE: f64 = 19.0;
/// Slots that a window is reduced to.
const COLUMNS: usize = 48;

/// Counts of one class.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassRow<'a> {
    /// Name of the class.
    pub label: String,
    /// The windows in which it came.
    pub windows: Vec<ClassWindow<'a>>,
}

/// Counts of one class in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassWindow<'a> {
    /// Which style.
    pub style: usize,
    /// Start of the first slot.
    pub t0_ns: i64,
    /// Length of a slot.
    pub slot_ns: u64,
    /// Events of each slot.
    pub counts: &'a [u32],
}

/// Draws the rows over the bands; `None` where nothing came.
pub fn classes(id: &str, title: &str, bands: &[Band], rows: &[ClassRow<'_>]) -> Option<String> {
    let rows: Vec<(&ClassRow<'_>, f64)> =
        rows.iter().map(|row| (row, most_per_s(row))).filter(|(_, most)| *most > 0.0).collect();
    let start = bands.iter().map(|band| band.span_ns[0]).min()?;
    let end = bands.iter().map(|band| band.span_ns[1]).max()?;
    if rows.is_empty() {
        return None;
    }
    let height = 86.0 + ROW * rows.len() as f64;
    let mut chart = Chart::new(id, title, &description(&rows), [FULL, height], 106.0);
    chart.area[1] = FULL - 84.0;
    chart.area[2] = 34.0;
    let x = Axis::linear(Unit::Seconds, 0.0, (end - start) as f64 / 1e9, chart.across());
    chart.horizontal(&x, "time since the first phase began");
    for band in bands {
        draw_band(&mut chart, band, band.span_ns.map(|t_ns| x.px((t_ns - start) as f64 / 1e9)));
    }
    chart.text(FULL - 78.0, 26.0, "t", "most");
    for (index, (row, most)) in rows.iter().enumerate() {
        let floor = chart.area[2] + ROW * (index as f64 + 1.0) - 3.0;
        chart.text(chart.area[0] - 8.0, floor - 4.0, "t e", &row.label);
        chart.text(FULL - 78.0, floor - 4.0, "t", &format::rate(*most));
        let line =
            format!("<path class=\"m\" d=\"M{} {}H{}\"/>", px(chart.area[0]), px(floor), px(chart.area[1]));
        chart.raw(&line);
        for ClassWindow { style, t0_ns, slot_ns, counts } in &row.windows {
            let at = |slot: usize| x.px(((t0_ns - start) as f64 + (slot as u64 * slot_ns) as f64) / 1e9);
            let path = area(counts, *slot_ns, *most, floor, &at);
            if !path.is_empty() {
                chart.raw(&format!("<path class=\"f s{style} z\" d=\"{path}\"/>"));
            }
        }
    }
    Some(chart.finish())
}

/// Slots joined until there are no more than [`COLUMNS`], as rates.
fn joined(counts: &[u32], slot_ns: u64) -> (usize, Vec<f64>) {
    let together = counts.len().div_ceil(COLUMNS).max(1);
    let rate = |part: &[u32]| {
        let sum: f64 = part.iter().map(|count| f64::from(*count)).sum();
        sum / (part.len() as f64 * slot_ns.max(1) as f64 / 1e9)
    };
    (together, counts.chunks(together).map(rate).collect())
}

fn most_per_s(row: &ClassRow<'_>) -> f64 {
    let all = row.windows.iter().flat_map(|window| joined(window.counts, window.slot_ns).1);
    all.fold(0.0, f64::max)
}

/// The outline, in whole units upwards; slots of the same height are one stroke, and what is empty
/// is not drawn.
fn area(counts: &[u32], slot_ns: u64, most: f64, floor: f64, at: &dyn Fn(usize) -> f64) -> String {
    let (together, rates) = joined(counts, slot_ns);
    let height = |rate: f64| if rate > 0.0 { (rate / most * RISE).round().max(1.0) } else { 0.0 };
    let heights: Vec<f64> = rates.into_iter().map(height).collect();
    let mut path = String::new();
    let mut from = 0;
    // Strokes are relative, to be short; places are rounded before they are subtracted, so that no
    // error adds up.
    let round = |value: f64| (value * 10.0).round() / 10.0;
    let mut height = 0.0;
    for run in heights.chunk_by(|a, b| a.total_cmp(b).is_eq()) {
        let (left, right) = (at(from * together), at(((from + run.len()) * together).min(counts.len())));
        if run[0] > 0.0 {
            if height <= 0.0 {
                let _ = write!(path, "M{} {}", px(left), px(floor));
            }
            let _ = write!(path, "v{}h{}", px(height - run[0]), px(round(right) - round(left)));
        } else if height > 0.0 {
            let _ = write!(path, "v{}z", px(height));
        }
        height = run[0];
        from += run.len();
    }
    if height > 0.0 {
        let _ = write!(path, "v{}z", px(height));
    }
    path
}

fn description(rows: &[(&ClassRow<'_>, f64)]) -> String {
    let row = |(row, most): &(&ClassRow<'_>, f64)| {
        let all: u64 =
            row.windows.iter().flat_map(|window| window.counts).map(|count| u64::from(*count)).sum();
        format!("{}: {}, at most {}", row.label, format::plural(all, "event"), format::rate(*most))
    };
    format!("Events by class over time. {}.", rows.iter().map(row).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band() -> Band {
        Band { label: "disturbed".into(), style: 1, span_ns: [0, 4_000_000_000] }
    }

    fn row(counts: &[u32]) -> ClassRow<'_> {
        ClassRow {
            label: "tlb".into(),
            windows: vec![ClassWindow { style: 1, t0_ns: 0, slot_ns: 1_000_000_000, counts }],
        }
    }

    #[test]
    fn a_row_rises_where_events_came_and_rests_where_not() {
        let path = area(&[0, 2, 2, 0, 1], 1_000_000_000, 2.0, 100.0, &|slot| slot as f64 * 10.0);
        assert_eq!(path, "M10 100v-19h20v19zM40 100v-10h10v10z");
    }

    #[test]
    fn what_came_once_is_seen_beside_what_came_often() {
        let path = area(&[1, 10_000], 1_000_000_000, 10_000.0, 100.0, &|slot| slot as f64);
        assert!(path.starts_with("M0 100v-1h1"), "{path}");
    }

    #[test]
    fn rows_without_an_event_are_left_out() {
        let svg = classes("c", "t", &[band()], &[row(&[0, 3, 0, 0]), row(&[0, 0])]).unwrap();
        assert!(svg.contains("tlb: 3 events, at most 3.000/s") && svg.matches(" z\"").count() == 1, "{svg}");
        assert_eq!(classes("c", "t", &[band()], &[row(&[0])]), None);
    }
}
