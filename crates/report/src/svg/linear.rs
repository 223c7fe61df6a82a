//! The latency plot that cyclictest and OSADL made the community's picture: microseconds on a
//! linear axis, samples of each on a logarithmic one, a step line a CPU, the observed maximum of
//! each in the key.
//!
//! OSADL QA Farm, "Latency plots" (cyclictest -h 400): bins of one microsecond, empty ones fall to
//! the axis. What lies beyond the last bin is counted in the key, not drawn.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, Steps};
use super::{hue_class, micro};
use crate::format;

/// Where the axis may end, µs: the first that holds every bin.
const ENDS: [i64; 6] = [20, 50, 100, 200, 400, 1_000];

/// Width of the plot.
const PLOT: f64 = 1_000.0;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// What it is: `CPU 3`.
    pub label: String,
    /// `[µs, count]`, ascending; bins without a sample left out.
    pub bins: &'a [[i64; 2]],
    /// Samples, those beyond the last bin among them.
    pub n: u64,
    /// Observed maximum, ns.
    pub max_ns: i64,
}

/// Draws the lines, each in a hue of its own; `None` where no bin holds anything.
pub fn linear(id: &str, title: &str, what: &str, lines: &[Line<'_>]) -> Option<String> {
    let bins = || lines.iter().flat_map(|line| line.bins);
    let last = bins().map(|bin| bin[0] + 1).max()?;
    let most = bins().map(|bin| bin[1]).max()? as f64;
    let end = ENDS.into_iter().find(|end| *end >= last).unwrap_or(last);
    let mut chart = Chart::new(id, title, &description(what, lines), [FULL, 340.0], 58.0);
    // Every end divides it, so that bins begin at whole units and the path stays short.
    chart.area[1] = chart.area[0] + PLOT;
    let x = Axis::linear(Unit::Ns, 0.0, end as f64 * 1e3, chart.across());
    let mut y = Axis::decades(Unit::Count, 1.0, most, chart.upwards());
    // Half a decade below one sample, so that a single sample stands clear of the axis.
    y.low = 0.5;
    chart.axes(&x, &y, what, "samples per µs");
    for (hue, line) in lines.iter().enumerate() {
        chart.series_of(&hue_class(hue), &line.label, &steps(line.bins, &x, &y));
    }
    chart.key_of(
        &lines.iter().enumerate().map(|(hue, line)| (hue_class(hue), legend(line))).collect::<Vec<_>>(),
    );
    Some(chart.finish())
}

/// `CPU 3, max 6.198 ms, 5 beyond`.
fn legend(line: &Line<'_>) -> String {
    let beyond = line.n.saturating_sub(line.bins.iter().map(|bin| bin[1].max(0) as u64).sum());
    let beyond = if beyond == 0 { String::new() } else { format!(", {} beyond", format::count(beyond)) };
    format!("{}, max {}{beyond}", line.label, micro(&format::ns(line.max_ns)))
}

fn steps(bins: &[[i64; 2]], x: &Axis, y: &Axis) -> String {
    let floor = y.px(0.0);
    let mut steps = Steps::default();
    let mut end = None;
    let mut level = None;
    for [bin, count] in bins {
        if end != Some(*bin) {
            if end.is_some() {
                steps.upright(floor);
            }
            steps.start(x.px(*bin as f64 * 1e3), floor);
            level = None;
        }
        // A level that continues needs no corner.
        if level != Some(*count) {
            steps.upright(y.px(*count as f64).round());
            level = Some(*count);
        }
        steps.across(x.px((*bin + 1) as f64 * 1e3));
        end = Some(*bin + 1);
    }
    steps.upright(floor);
    steps.path()
}

fn description(what: &str, lines: &[Line<'_>]) -> String {
    let lines: Vec<String> = lines.iter().map(legend).collect();
    format!("Samples of each microsecond of {what}, counts logarithmic. {}.", lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bins: &[[i64; 2]]) -> Line<'_> {
        Line { label: "CPU 3".into(), bins, n: 12, max_ns: 4_000_000 }
    }

    #[test]
    fn an_empty_bin_falls_to_the_axis_and_what_is_beyond_is_counted() {
        let svg = linear("l", "t", "latency", &[line(&[[3, 5], [4, 5], [7, 1]])]).unwrap();
        let path = svg.split("data-l=\"CPU 3\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(path.matches('M').count(), 2, "two stretches: {path}");
        // Up, level for two bins, down; up and down.
        assert_eq!((path.matches('V').count(), path.matches('H').count()), (4, 3), "{path}");
        assert!(svg.contains("CPU 3, max 4.000 ms, 1 beyond"), "{svg}");
    }

    #[test]
    fn the_axis_ends_where_a_reader_of_such_plots_expects_it() {
        let of = |bin: i64| linear("l", "t", "latency", &[line(&[[bin, 1]])]).unwrap();
        for (bin, end) in [(3, 20_000), (20, 50_000), (399, 400_000), (999, 1_000_000)] {
            assert!(of(bin).contains(&format!("data-x=\"lin,ns,0,{end},")), "{bin}");
        }
        assert_eq!(linear("l", "t", "latency", &[line(&[])]), None);
    }
}
