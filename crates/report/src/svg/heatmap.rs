//! A heat-map of pairs of CPUs: who is near whom.
//!
//! Seven steps of one hue on a logarithmic scale, lighter to darker with the value (darker to
//! lighter on a dark page), so that it reads in print and to readers who cannot distinguish hues;
//! every cell says its numbers. The scale spans a factor of two at least: less is no structure.

use super::frame::{Chart, FULL, HALF, px};
use super::micro;
use crate::format;
use std::fmt::Write;

/// Steps of the scale.
const STEPS: usize = 7;
/// The least span of the scale, as a ratio.
const LEAST_SPAN: f64 = 2.0;
/// CPUs a side that leave room for three numbers a cell, in half the width of the page and in all
/// of it.
const ROOMY: [usize; 2] = [6, 12];
/// Left of the cells, and above them.
const LEFT: f64 = 62.0;
const TOP: f64 = 40.0;

/// One pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Row.
    pub from: u32,
    /// Column.
    pub to: u32,
    /// What the colour stands for, ns.
    pub median_ns: i64,
    /// Least, ns.
    pub min_ns: i64,
    /// Observed maximum, ns.
    pub max_ns: i64,
    /// Marked with `~`.
    pub vague: bool,
}

/// Draws the cells; `None` without any. The colours span the medians of `compared`, those of all
/// maps that are read side by side, and mean the same in each of them.
pub fn heatmap(id: &str, title: &str, cells: &[Cell], compared: &[Cell]) -> Option<String> {
    let first = cells.first()?;
    let scale = Scale::of(compared).or_else(|| Scale::of(std::slice::from_ref(first)))?;
    let cpus = |of: fn(&Cell) -> u32| {
        let mut all: Vec<u32> = cells.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (from, to) = (cpus(|cell| cell.from), cpus(|cell| cell.to));
    let width = if to.len() > ROOMY[0] { FULL } else { HALF };
    let roomy = to.len() <= ROOMY[1];
    let (cell_w, cell_h) = ((width - LEFT - 8.0) / to.len().max(3) as f64, if roomy { 58.0 } else { 26.0 });
    let bottom = TOP + cell_h * from.len() as f64;
    let mut chart = Chart::new(id, title, &description(cells), [width, bottom + 62.0], LEFT);
    let middle = LEFT + cell_w * to.len() as f64 / 2.0;
    chart.text(middle, 14.0, "n c", "woken CPU");
    chart.text(LEFT - 8.0, 14.0, "n e", "waking");
    for (column, cpu) in to.iter().enumerate() {
        chart.text(LEFT + cell_w * (column as f64 + 0.5), TOP - 8.0, "t c", &cpu.to_string());
    }
    for (row, cpu) in from.iter().enumerate() {
        let top = TOP + cell_h * row as f64;
        chart.text(LEFT - 8.0, top + cell_h / 2.0 + 4.0, "t e", &cpu.to_string());
        for (column, to) in to.iter().enumerate() {
            let left = LEFT + cell_w * column as f64;
            let place = [left, top, cell_w, cell_h];
            match cells.iter().find(|cell| cell.from == *cpu && cell.to == *to) {
                Some(cell) => draw(&mut chart, &scale, cell, place, roomy),
                None => chart.text(left + cell_w / 2.0, top + cell_h / 2.0 + 4.0, "t c", "\u{2013}"),
            }
        }
    }
    legend(&mut chart, &scale, bottom + 14.0);
    Some(chart.finish())
}

fn draw(chart: &mut Chart, scale: &Scale, cell: &Cell, [x, y, w, h]: [f64; 4], roomy: bool) {
    let mut markup = format!(
        "<g class=\"h h{}\"><path d=\"M{} {}h{}v{}h{}z\"/>",
        scale.step(cell.median_ns),
        px(x + 1.0),
        px(y + 1.0),
        px(w - 2.0),
        px(h - 2.0),
        px(2.0 - w)
    );
    let middle = px(x + w / 2.0);
    let mark = if cell.vague { "~" } else { "" };
    let mut line = |y: f64, class: &str, text: &str| {
        let _ =
            write!(markup, "<text class=\"{class}\" x=\"{middle}\" y=\"{}\">{}</text>", px(y), micro(text));
    };
    if roomy {
        line(y + 20.0, "c", &format!("{mark}{}", format::ns(cell.median_ns)));
        line(y + 35.0, "c x", &format!("min {}", format::ns(cell.min_ns)));
        line(y + 49.0, "c x", &format!("max {}", format::ns(cell.max_ns)));
    } else {
        line(y + 17.0, "c x", &format!("{mark}{}", micros(cell.median_ns)));
    }
    chart.raw(&(markup + "</g>"));
}

/// µs with three digits, for cells without room for a unit.
fn micros(ns: i64) -> String {
    let us = ns as f64 / 1000.0;
    let decimals = match us.abs() {
        us if us < 10.0 => 2,
        us if us < 100.0 => 1,
        _ => 0,
    };
    format!("{us:.decimals$}")
}

fn legend(chart: &mut Chart, scale: &Scale, top: f64) {
    const WIDTH: f64 = 62.0;
    for step in 0..STEPS {
        let x = LEFT + WIDTH * step as f64;
        let place = format!("M{} {}h{}v10h{}z", px(x), px(top), px(WIDTH - 2.0), px(2.0 - WIDTH));
        chart.raw(&format!("<g class=\"h h{step}\"><path d=\"{place}\"/></g>"));
    }
    for edge in 0..=STEPS {
        let label = micro(&format::ns_round(three_digits(scale.edge(edge))));
        chart.text(LEFT + WIDTH * edge as f64, top + 25.0, if edge == 0 { "t" } else { "t c" }, &label);
    }
    chart.text(LEFT, top + 42.0, "n", "median");
}

fn three_digits(value: f64) -> f64 {
    let step = 10f64.powf(value.max(1.0).log10().floor() - 1.0);
    (value / step).round() * step
}

/// From the least median to the largest, in steps of equal ratio.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(cells: &[Cell]) -> Option<Self> {
        let low = cells.iter().map(|cell| cell.median_ns).min()?.max(1) as f64;
        let high = cells.iter().map(|cell| cell.median_ns).max()?.max(1) as f64;
        Some(Self { low, high: high.max(low * LEAST_SPAN) })
    }

    fn step(&self, value_ns: i64) -> usize {
        let part = (value_ns.max(1) as f64 / self.low).ln() / (self.high / self.low).ln();
        ((part * STEPS as f64) as usize).min(STEPS - 1)
    }

    fn edge(&self, edge: usize) -> f64 {
        self.low * (self.high / self.low).powf(edge as f64 / STEPS as f64)
    }
}

fn description(cells: &[Cell]) -> String {
    let by = |of: fn(&Cell) -> i64| cells.iter().max_by_key(move |cell| of(cell));
    let pair = |cell: &Cell| format!("from {} to {}, {}", cell.from, cell.to, format::ns(cell.median_ns));
    let (slowest, fastest) = (by(|cell| cell.median_ns).map(pair), by(|cell| -cell.median_ns).map(pair));
    format!(
        "Median of the wake-ups of {} pairs of CPUs. Fastest: {}. Slowest: {}.",
        cells.len(),
        fastest.unwrap_or_default(),
        slowest.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell(from: u32, to: u32, median_ns: i64) -> Cell {
        Cell { from, to, median_ns, min_ns: median_ns / 2, max_ns: median_ns * 3, vague: false }
    }

    #[test]
    fn every_pair_has_its_numbers_and_missing_ones_a_dash() {
        let svg = {
            let cells = [cell(0, 1, 2_000), cell(1, 0, 8_000)];
            heatmap("m", "futex", &cells, &cells).unwrap()
        };
        for number in ["2.000 µs", "min 1.000 µs", "max 6.000 µs", "8.000 µs"] {
            assert!(svg.contains(number), "{number}: {svg}");
        }
        assert_eq!(svg.matches("\u{2013}").count(), 2, "the diagonal");
        assert_eq!(heatmap("m", "futex", &[], &[]), None);
    }

    #[test]
    fn what_hardly_differs_has_nearly_one_colour() {
        let scale = Scale::of(&[cell(0, 1, 1_000), cell(1, 0, 1_050)]).unwrap();
        assert_eq!((scale.step(1_000), scale.step(1_050)), (0, 0));
        assert_eq!(scale.step(2_000), STEPS - 1);
    }

    #[test]
    fn maps_that_are_compared_share_their_colours() {
        let (near, far) = ([cell(0, 1, 1_000)], [cell(0, 1, 64_000)]);
        let both = [near[0].clone(), far[0].clone()];
        let colour = |cells: &[Cell]| {
            let svg = heatmap("m", "t", cells, &both).unwrap();
            svg.split("class=\"h h").nth(1).unwrap().chars().next().unwrap()
        };
        assert_eq!([colour(&near), colour(&far)], ['0', '6']);
    }

    #[test]
    fn a_large_machine_stays_small() {
        let cells: Vec<Cell> = (0..24)
            .flat_map(|from| (0..24).map(move |to| cell(from, to, 1_000 + i64::from(from * to))))
            .collect();
        let svg = heatmap("m", "futex", &cells, &cells).unwrap();
        assert!(svg.len() < 90_000, "{} bytes", svg.len());
    }

    proptest! {
        #[test]
        fn colours_rise_with_the_value(values in prop::collection::vec(1i64..1_000_000_000, 1..40)) {
            let cells: Vec<Cell> = values.iter().map(|value| cell(0, 1, *value)).collect();
            let scale = Scale::of(&cells).unwrap();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let steps: Vec<usize> = sorted.iter().map(|value| scale.step(*value)).collect();
            prop_assert!(steps.windows(2).all(|two| two[0] <= two[1]) && steps.iter().all(|step| *step < STEPS));
            for (value, step) in sorted.iter().zip(&steps) {
                prop_assert!(*value as f64 >= scale.edge(*step) * 0.999_999);
            }
        }
    }
}
