//! What ran when, a lane a CPU or task: spans on one clock, coloured by what they are. A Gantt
//! chart.
//!
//! A span too short to be seen is drawn half a pixel wide: a sequence is read by its order as much
//! as by its lengths.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, px};
use super::rows::{AXIS, HAND, Room, cut};
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
pub fn lanes(id: &str, title: &str, spans: &[LaneSpan], room: Room) -> Option<String> {
    let start = spans.iter().map(|span| span.from_ns).reduce(f64::min)?;
    let end = spans.iter().map(|span| span.from_ns + span.ns).reduce(f64::max)?;
    let gantt = Gantt {
        spans,
        start,
        longest: (end - start).max(1.0) * 1.01,
        lanes: once(spans.iter().map(|span| span.lane.as_str())),
        labels: once(spans.iter().map(|span| span.label.as_str())),
    };
    Some(match room {
        Room::Desk => gantt.desk(id, title),
        Room::Hand => gantt.hand(id, title),
    })
}

/// What is drawn.
struct Gantt<'s> {
    spans: &'s [LaneSpan],
    start: f64,
    longest: f64,
    lanes: Vec<&'s str>,
    labels: Vec<&'s str>,
}

impl Gantt<'_> {
    /// The names of the lanes beside them, those of the spans above them while there are few.
    fn desk(&self, id: &str, title: &str) -> String {
        let Self { spans, lanes, labels, .. } = self;
        let longest = lanes.iter().map(|lane| lane.chars().count()).max().unwrap_or(0) as f64;
        let keys = if labels.len() > 1 { 16.0 * labels.len() as f64 } else { 0.0 };
        let size = [FULL, 62.0 + keys + LANE * lanes.len() as f64];
        let left = (longest * 7.0 + 18.0).clamp(60.0, 280.0);
        let mut chart = Chart::new(id, title, &description(spans, self.start), size, left);
        if labels.len() > 1 {
            let entries: Vec<(String, String)> =
                labels.iter().enumerate().map(|(hue, label)| (hue_class(hue), (*label).to_owned())).collect();
            chart.area[2] = 8.0;
            chart.key_of(&entries);
        }
        chart.area[2] = 14.0 + keys;
        let x = self.axis(&mut chart);
        for (row, lane) in lanes.iter().enumerate() {
            let middle = chart.area[2] + LANE * (row as f64 + 0.5);
            chart.text(chart.area[0] - 8.0, middle + 4.0, "t e", lane);
            let top = middle - BAR / 2.0 + 4.0;
            self.bars(&mut chart, &x, lane, top);
            if spans.len() <= WRITTEN {
                self.write(&mut chart, &x, lane, top - 3.0);
            }
        }
        chart.finish()
    }

    /// The names of the lanes above them, those of the spans in a key below.
    fn hand(&self, id: &str, title: &str) -> String {
        const LINE: f64 = 18.0;
        const GAP: f64 = 8.0;
        const LETTERS: usize = 52;
        let Self { spans, lanes, labels, .. } = self;
        let keys = if labels.len() > 1 { LINE * labels.len() as f64 } else { 0.0 };
        let rows = (LINE + BAR + GAP) * lanes.len() as f64;
        let size = [HAND, rows + AXIS + keys];
        // Half of the axis' first label stands left of it.
        let mut chart = Chart::new(id, title, &description(spans, self.start), size, 18.0);
        (chart.area[2], chart.area[3]) = (0.0, rows);
        let x = self.axis(&mut chart);
        for (row, lane) in lanes.iter().enumerate() {
            let top = (LINE + BAR + GAP) * row as f64 + LINE;
            chart.text(chart.area[0], top - 5.0, "n halo", &cut(lane, LETTERS));
            self.bars(&mut chart, &x, lane, top);
        }
        for (hue, label) in labels.iter().enumerate().filter(|_| labels.len() > 1) {
            let y = rows + AXIS + LINE * (hue as f64 + 0.5);
            let (left, top) = (chart.area[0], y - 6.0);
            chart.raw(&bar(hue, [left, top], [14.0, 12.0]));
            chart.text(left + 22.0, y + 4.0, "t", &cut(label, LETTERS));
        }
        chart.finish()
    }

    fn axis(&self, chart: &mut Chart) -> Axis {
        let x = Axis::linear(Unit::Ns, 0.0, self.longest, chart.across());
        chart.horizontal(&x, "time since the first");
        x
    }

    fn of<'g>(&'g self, lane: &'g str) -> impl Iterator<Item = &'g LaneSpan> {
        self.spans.iter().filter(move |span| span.lane == lane)
    }

    fn bars(&self, chart: &mut Chart, x: &Axis, lane: &str, top: f64) {
        for span in self.of(lane) {
            let hue = self.labels.iter().position(|label| *label == span.label).unwrap_or(0);
            let from = span.from_ns - self.start;
            let (left, right) = (x.px(from), x.px(from + span.ns));
            chart.raw(&bar(hue, [left, top], [(right - left).max(0.8), BAR]));
        }
    }

    /// Labels that do not touch; of two that would, that of the longer span stays.
    fn write(&self, chart: &mut Chart, x: &Axis, lane: &str, y: f64) {
        let mut spans: Vec<_> = self.of(lane).filter(|span| !span.label.is_empty()).collect();
        spans.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        let mut written: Vec<[f64; 2]> = Vec::new();
        for span in spans {
            let left = x.px(span.from_ns - self.start);
            let right = left + CHARACTER * span.label.chars().count() as f64 + 6.0;
            if written.iter().all(|other| right <= other[0] || left >= other[1]) {
                chart.text(left, y, "t x", &span.label);
                written.push([left, right]);
            }
        }
    }
}

fn bar(hue: usize, [left, top]: [f64; 2], [width, height]: [f64; 2]) -> String {
    format!(
        "<rect class=\"bar {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
        hue_class(hue),
        px(left),
        px(top),
        px(width),
        px(height)
    )
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
        let svg = lanes("l", "t", &spans, Room::Desk).unwrap();
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
        assert_eq!(lanes("l", "t", &[], Room::Desk), None);
        // In a hand the names of lanes stand above them, and what the colours are below.
        let hand = lanes("l", "t", &spans, Room::Hand).unwrap();
        assert!(hand.contains("viewBox=\"0 0 400 ") && hand.contains(">CPU 3<") && hand.contains(">worker<"));
        assert_eq!(hand.matches("<rect class=\"bar k").count(), 3 + 3);
    }

    #[test]
    fn of_labels_that_would_touch_that_of_the_longer_span_is_written() {
        let spans = [span("a", "brief", 0.0, 1e3), span("a", "long", 1e3, 1e6), span("b", "other", 0.0, 1e6)];
        let svg = lanes("l", "t", &spans, Room::Desk).unwrap();
        // Each stands in the key as well.
        let written = |label: &str| svg.matches(&format!(">{label}<")).count();
        assert_eq!(["brief", "long", "other"].map(written), [1, 2, 2], "{svg}");
    }
}
