//! Where latencies went: a bar a window, as long as its mean latency, cut at the steps of the
//! wake-up; or a bar a sample, cut by source.
//!
//! The steps in the order in which they pass; last, what else ran meanwhile on the CPU that a step
//! waits for. Means, not sums, so that windows of different length compare.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, px};
use super::micro;
use crate::format;

const BAR: f64 = 20.0;
const GAP: f64 = 12.0;

/// A part of a bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// What it is.
    pub label: String,
    /// Which style.
    pub style: usize,
    /// Mean time, ns.
    pub ns: f64,
}

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRow {
    /// Which window.
    pub label: String,
    /// From left to right.
    pub segments: Vec<Segment>,
}

/// Draws the bars; `None` where there is no time to show.
pub fn steps(id: &str, title: &str, what: &str, rows: &[StepRow]) -> Option<String> {
    let length = |row: &StepRow| row.segments.iter().map(|segment| segment.ns).sum::<f64>();
    let most = rows.iter().map(length).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let height = 62.0 + (BAR + GAP) * rows.len() as f64;
    let mut chart = Chart::new(id, title, &description(title, rows), [FULL, height], 170.0);
    // Room for the number at the end of the longest bar.
    let x = Axis::linear(Unit::Ns, 0.0, most * 1.1, chart.across());
    chart.horizontal(&x, what);
    for (index, row) in rows.iter().enumerate() {
        let top = chart.area[2] + GAP / 2.0 + (BAR + GAP) * index as f64;
        chart.text(chart.area[0] - 8.0, top + BAR / 2.0 + 4.0, "t e", &row.label);
        let mut from = 0.0;
        for segment in row.segments.iter().filter(|segment| segment.ns > 0.0) {
            let (left, right) = (x.px(from), x.px(from + segment.ns));
            chart.raw(&format!(
                "<rect class=\"p{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{BAR}\"/>",
                segment.style,
                px(left),
                px(top),
                px((right - left).max(0.3)),
            ));
            from += segment.ns;
        }
        chart.text(x.px(from) + 6.0, top + BAR / 2.0 + 4.0, "t", &micro(&format::ns_f(from)));
    }
    Some(chart.finish())
}

fn description(title: &str, rows: &[StepRow]) -> String {
    let segment = |segment: &Segment| format!("{} {}", segment.label, format::ns_f(segment.ns));
    let row = |row: &StepRow| {
        let segments = row.segments.iter().filter(|segment| segment.ns > 0.0).map(segment);
        format!("{}: {}", row.label, segments.collect::<Vec<_>>().join(", "))
    };
    format!("{title}. {}.", rows.iter().map(row).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, parts: &[f64]) -> StepRow {
        let segment = |(style, ns): (usize, &f64)| Segment { label: format!("step {style}"), style, ns: *ns };
        StepRow { label: label.into(), segments: parts.iter().enumerate().map(segment).collect() }
    }

    fn widths(svg: &str) -> Vec<f64> {
        svg.split("width=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn a_bar_is_as_long_as_its_parts_together() {
        let svg =
            steps("s", "t", "x", &[row("idle", &[30.0, 10.0, 60.0]), row("disturbed", &[0.0, 200.0, 0.0])])
                .unwrap();
        let widths = widths(&svg);
        assert_eq!(widths.len(), 4, "an empty part has no rectangle");
        assert!((widths[..3].iter().sum::<f64>() * 2.0 - widths[3]).abs() < 0.5, "{widths:?}");
        assert!(
            svg.contains("idle: step 0 30 ns, step 1 10 ns, step 2 60 ns; disturbed: step 1 200 ns"),
            "{svg}"
        );
    }

    #[test]
    fn without_time_there_is_no_chart() {
        assert_eq!(steps("s", "t", "x", &[]), None);
        assert_eq!(steps("s", "t", "x", &[row("idle", &[0.0])]), None);
    }
}
