//! Samples folded at a period: median and observed maximum of each phase.

use super::axis::{Axis, Unit};
use super::frame::{Chart, HALF, Steps};
use crate::format;

/// Draws `[phase, median, maximum]`, ns, phases ascending from 0 to the period; `None` where nothing can be drawn.
pub fn profile(id: &str, title: &str, bins: &[[i64; 3]], period_ns: f64) -> Option<String> {
    let high = bins.iter().map(|bin| bin[2]).max().filter(|high| *high > 0)?;
    let positive = bins.iter().flat_map(|bin| [bin[1], bin[2]]).filter(|value| *value > 0);
    let low = positive.min()?;
    let worst = bins.iter().max_by_key(|bin| bin[2])?;
    let text = format!(
        "Median and observed maximum by phase. Largest: {} at phase {}.",
        format::ns(worst[2]),
        format::ns(worst[0])
    );
    let mut chart = Chart::new(id, title, &text, [HALF, 260.0], 70.0);
    let x = Axis::linear(Unit::Ns, 0.0, period_ns, chart.across());
    let y = Axis::log_tight(Unit::Ns, low as f64, high as f64, chart.upwards());
    chart.axes(&x, &y, "phase", "value");
    for (style, column, label) in [(1, 2, "observed maximum"), (0, 1, "median")] {
        let mut steps = Steps::default();
        for (at, bin) in bins.iter().enumerate() {
            let (left, height) = (x.px(bin[0] as f64), y.px(bin[column] as f64));
            if steps.is_empty() {
                steps.start(left, height);
            } else {
                steps.upright(height);
            }
            steps.across(bins.get(at + 1).map_or(x.px(period_ns), |next| x.px(next[0] as f64)));
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
        let bins = [[0, 5_000, 6_000], [1_000_000, 5_000, 150_000], [2_000_000, -3, 6_000]];
        let svg = profile("p", "t", &bins, 3e6).unwrap();
        assert!(svg.contains("data-l=\"median\"") && svg.contains("data-l=\"observed maximum\""));
        assert!(svg.contains("150.0 us at phase 1.000 ms") && !svg.contains("NaN"), "{svg}");
        assert_eq!(profile("p", "t", &[], 3e6), None);
        assert_eq!(profile("p", "t", &[[0, 0, 0]], 3e6), None);
    }
}
