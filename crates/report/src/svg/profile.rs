//! Samples folded at a period: median and observed maximum of each phase.

use super::axis::{Axis, Unit};
use super::frame::{Chart, HALF, Steps};
use crate::format;
use analysis::time::PhaseStatistics;

type Figure = fn(&PhaseStatistics) -> i64;

/// Draws phases, ascending from 0 to the period; `None` where nothing can be drawn.
pub fn profile(id: &str, title: &str, bins: &[PhaseStatistics], period_ns: f64) -> Option<String> {
    let high = bins.iter().map(|bin| bin.max_ns).max().filter(|high| *high > 0)?;
    let positive = bins.iter().flat_map(|bin| [bin.median_ns, bin.max_ns]).filter(|value| *value > 0);
    let low = positive.min()?;
    let worst = bins.iter().max_by_key(|bin| bin.max_ns)?;
    let text = format!(
        "Median and observed maximum by phase. Largest: {} at phase {}.",
        format::ns(worst.max_ns),
        format::ns(worst.phase_ns)
    );
    let mut chart = Chart::new(id, title, &text, [HALF, 260.0], 70.0);
    let x = Axis::linear(Unit::Ns, 0.0, period_ns, chart.across());
    let y = Axis::log_tight(Unit::Ns, low as f64, high as f64, chart.upwards());
    chart.axes(&x, &y, "phase", "value");
    let lines: [(usize, &str, Figure); 2] =
        [(1, "observed maximum", |bin| bin.max_ns), (0, "median", |bin| bin.median_ns)];
    for (style, label, figure) in lines {
        let mut steps = Steps::default();
        for (at, bin) in bins.iter().enumerate() {
            let (left, height) = (x.px(bin.phase_ns as f64), y.px(figure(bin) as f64));
            if steps.is_empty() {
                steps.start(left, height);
            } else {
                steps.upright(height);
            }
            steps.across(bins.get(at + 1).map_or(x.px(period_ns), |next| x.px(next.phase_ns as f64)));
        }
        chart.series(style, label, &steps.path());
    }
    chart.key(&[(1, "observed maximum".to_owned()), (0, "median".to_owned())]);
    Some(chart.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_are_drawn_and_nothing_is_not_a_chart() {
        let bin = |(phase_ns, median_ns, max_ns)| PhaseStatistics { phase_ns, median_ns, max_ns };
        let bins = [(0, 5_000, 6_000), (1_000_000, 5_000, 150_000), (2_000_000, -3, 6_000)].map(bin);
        let svg = profile("p", "t", &bins, 3e6).unwrap();
        assert!(svg.contains("data-l=\"median\"") && svg.contains("data-l=\"observed maximum\""));
        assert!(svg.contains("150.0 us at phase 1.000 ms") && !svg.contains("NaN"), "{svg}");
        assert_eq!(profile("p", "t", &[], 3e6), None);
        assert_eq!(profile("p", "t", &[bin((0, 0, 0))], 3e6), None);
    }
}
