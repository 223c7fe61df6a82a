//! What ran when, a lane a CPU or task: spans on one clock, coloured by what they are. A Gantt
//! chart.
//!
//! A span too short to be seen is drawn half a pixel wide: a sequence is read by its order as much
//! as by its lengths.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, px};
use super::{hue_class, micro};
use crate::format;

/// Height of a lane.
const LANE: f64 = 34.0;
/// Height of a bar.
const BAR: f64 = 18.0;
/// Labels written above the bars as long as there are no more.
const WRITTEN: usize = 14;
/// A label is written where the bars before it leave this much, px for each character.
const CHARACTER: f64 = 6.2;
/// Spans listed in the description.
const LISTED: usize = 40;

/// Something that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneSpan {
    /// In which lane.
    pub lane: String,
    /// What.
    pub label: String,
    /// When it began, ns on any clock.
    pub from_ns: f64,
    /// How long it took, ns; 0 for a moment.
    pub ns: f64,
}

/// Draws the spans, lanes in the order in which they are met; `None` without spans.
pub fn lanes(id: &str, title: &str, spans: &[LaneSpan]) -> Option<String> {
    let start = spans.iter().map(|span| span.from_ns).reduce(f64::min)?;
    let end = spans.iter().map(|span| span.from_ns + span.ns).reduce(f64::max)?;
    let lanes = once(spans.iter().map(|span| span.lane.as_str()));
    let labels = once(spans.iter().map(|span| span.label.as_str()));
    let longest = lanes.iter().map(|lane| lane.chars().count()).max().unwrap_or(0) as f64;
    let keys = if labels.len() > 1 { 16.0 * labels.len() as f64 } else { 0.0 };
    let size = [FULL, 62.0 + keys + LANE * lanes.len() as f64];
    let mut chart =
        Chart::new(id, title, &description(spans, start), size, (longest * 7.0 + 18.0).clamp(60.0, 280.0));
    if labels.len() > 1 {
        let entries: Vec<(String, String)> =
            labels.iter().enumerate().map(|(hue, label)| (hue_class(hue), (*label).to_owned())).collect();
        chart.area[2] = 8.0;
        chart.key_of(&entries);
    }
    chart.area[2] = 14.0 + keys;
    let x = Axis::linear(Unit::Ns, 0.0, (end - start).max(1.0) * 1.01, chart.across());
    chart.horizontal(&x, "time since the first");
    let few = spans.len() <= WRITTEN;
    for (row, lane) in lanes.iter().enumerate() {
        let middle = chart.area[2] + LANE * (row as f64 + 0.5);
        chart.text(chart.area[0] - 8.0, middle + 4.0, "t e", lane);
        let mut free = 0.0;
        for span in spans.iter().filter(|span| span.lane == **lane) {
            let hue = labels.iter().position(|label| *label == span.label).unwrap_or(0);
            let (left, right) = (x.px(span.from_ns - start), x.px(span.from_ns + span.ns - start));
            chart.raw(&format!(
                "<rect class=\"bar {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{BAR}\"/>",
                hue_class(hue),
                px(left),
                px(middle - BAR / 2.0 + 4.0),
                px((right - left).max(0.8)),
            ));
            if few && left >= free && !span.label.is_empty() {
                chart.text(left, middle - BAR / 2.0 + 1.0, "t x", &span.label);
                free = left + CHARACTER * span.label.chars().count() as f64 + 6.0;
            }
        }
    }
    Some(chart.finish())
}

/// Each once, in the order in which they are met.
fn once<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut kept = Vec::new();
    texts.for_each(|text| {
        if !kept.contains(&text) {
            kept.push(text);
        }
    });
    kept
}

fn description(spans: &[LaneSpan], start: f64) -> String {
    let one = |span: &LaneSpan| {
        let [from, ns] = [span.from_ns - start, span.ns].map(|ns| micro(&format::ns_f(ns)));
        format!("{}: {} at {from} for {ns}", span.lane, span.label)
    };
    let list: Vec<String> = spans.iter().take(LISTED).map(one).collect();
    let more = spans.len().saturating_sub(LISTED);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    format!("What ran when. {}{more}.", list.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(lane: &str, label: &str, from_ns: f64, ns: f64) -> LaneSpan {
        LaneSpan { lane: lane.into(), label: label.into(), from_ns, ns }
    }

    #[test]
    fn lanes_and_spans_keep_their_order_and_a_moment_is_seen() {
        let spans = [
            span("CPU 1", "queue <work>", 1e6, 2e3),
            span("CPU 3", "IPI", 1.002e6, 0.0),
            span("CPU 3", "worker", 1.003e6, 5e3),
        ];
        let svg = lanes("l", "t", &spans).unwrap();
        assert_eq!(svg.matches("<rect class=\"bar k").count(), 3);
        assert!(svg.contains("queue &lt;work&gt;") && !svg.contains("<work>"), "{svg}");
        let lefts: Vec<f64> = svg
            .split("<rect class=\"bar")
            .skip(1)
            .map(|bar| bar.split(" x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!(lefts.is_sorted() && lefts[0] < lefts[1], "{lefts:?}");
        assert!(svg.contains("width=\"0.8\""));
        assert!(svg.contains("CPU 3: worker at 3.000 µs for 5.000 µs"), "{svg}");
        assert_eq!(lanes("l", "t", &[]), None);
    }
}
