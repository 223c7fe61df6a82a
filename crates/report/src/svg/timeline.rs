//! Maxima over time: the largest value of each slot across all phases of the run, on one clock.
//!
//! A spike that comes every second, or only while something ran, shows here and in no histogram.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, Steps, px};
use super::micro;
use crate::format;
use analysis::distribution::Maximum;

/// Columns a window is reduced to; the maximum of each is kept.
const COLUMNS: usize = 120;

/// A phase of the run, drawn as a band.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Its name.
    pub label: String,
    /// Which style.
    pub style: usize,
    /// Start and end, ns.
    pub span_ns: [i64; 2],
}

/// One window of one probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// The probe, such as `wake-up`.
    pub label: String,
    /// Which style: index of the phase.
    pub style: usize,
    /// Ascending, slots of equal length.
    pub slots: Vec<Maximum>,
}

/// Draws the stretches over the bands; `None` where nothing can be drawn.
pub fn timeline(id: &str, title: &str, bands: &[Band], stretches: &[Stretch]) -> Option<String> {
    let slots = || stretches.iter().flat_map(|s| &s.slots).filter(|slot| slot.max_ns > 0);
    let low = slots().map(|slot| slot.max_ns).min()? as f64;
    let worst = *slots().max_by_key(|slot| slot.max_ns)?;
    let start = bands.iter().map(|b| b.span_ns[0]).chain(slots().map(|slot| slot.t_ns)).min()?;
    let end = bands.iter().map(|b| b.span_ns[1]).chain(slots().map(|slot| slot.t_ns)).max()?;
    let seconds = |t_ns: i64| (t_ns - start) as f64 / 1e9;
    let text = format!(
        "Largest value of each slot over time, all phases. Largest of all: {} at {:.3} s.",
        format::ns(worst.max_ns),
        seconds(worst.t_ns)
    );
    let mut chart = Chart::new(id, title, &text, [FULL, 320.0], 62.0);
    chart.area[2] = 34.0;
    let x = Axis::linear(Unit::Seconds, 0.0, seconds(end), chart.across());
    // Above the largest value is the row of the probes' names.
    let [bottom, top] = chart.upwards();
    let y = Axis::log_tight(Unit::Ns, low, worst.max_ns as f64 * 1.6, [bottom, top + 18.0]);
    chart.axes(&x, &y, "time since the first phase began", "largest value in a slot");
    for band in bands {
        draw_band(&mut chart, band, band.span_ns.map(|t_ns| x.px(seconds(t_ns))));
    }
    for stretch in stretches {
        draw_stretch(&mut chart, stretch, &x, &y, &seconds);
    }
    let (at, height) = (x.px(seconds(worst.t_ns)), y.px(worst.max_ns as f64));
    let style = stretches.iter().find(|s| s.slots.contains(&worst)).map_or(0, |s| s.style);
    chart.dot(style, at, height);
    chart.label(style, at, height, &micro(&format::ns(worst.max_ns)));
    Some(chart.finish())
}

/// A phase, with its name above the plot.
pub(super) fn draw_band(chart: &mut Chart, band: &Band, [left, right]: [f64; 2]) {
    let [_, _, top, bottom] = chart.area;
    chart.raw(&format!(
        "<rect class=\"b s{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
        band.style,
        px(left),
        px(top - 20.0),
        px((right - left).max(0.0)),
        px(bottom - top + 20.0)
    ));
    chart.text(f64::midpoint(left, right), top - 6.0, &format!("l c s{}", band.style), &band.label);
}

fn draw_stretch(chart: &mut Chart, stretch: &Stretch, x: &Axis, y: &Axis, seconds: &dyn Fn(i64) -> f64) {
    let slots: Vec<Maximum> = stretch.slots.iter().copied().filter(|slot| slot.max_ns > 0).collect();
    let (Some(first), Some(last)) = (slots.first(), slots.last()) else { return };
    let mut steps = Steps::default();
    for slot in reduce(&slots) {
        let (at, height) = (x.px(seconds(slot.t_ns)), y.px(slot.max_ns as f64));
        if steps.is_empty() {
            steps.start(at, height);
        } else {
            steps.across(at);
            steps.upright(height);
        }
    }
    chart.series(stretch.style, &stretch.label, &steps.path());
    let middle = f64::midpoint(x.px(seconds(first.t_ns)), x.px(seconds(last.t_ns)));
    let [_, _, top, _] = chart.area;
    chart.text(middle, top + 12.0, "t c", &stretch.label);
}

/// At most [`COLUMNS`] slots: neighbours merged, the maximum kept.
fn reduce(slots: &[Maximum]) -> Vec<Maximum> {
    let together = slots.len().div_ceil(COLUMNS).max(1);
    let merge = |part: &[Maximum]| Maximum {
        t_ns: part[0].t_ns,
        max_ns: part.iter().map(|slot| slot.max_ns).max().unwrap_or(0),
        n: part.iter().map(|slot| slot.n).sum(),
    };
    slots.chunks(together).map(merge).collect()
}
