//! Static SVG charts, made for this report: no scripts, no fonts, no colours of their own.
//!
//! A chart is a string that starts with `<svg`; colours come from the page's style sheet by class
//! (`s0`, `s1`, … a phase), so that light, dark and print need no second chart. Coordinates have at
//! most one decimal: same input, same bytes.

mod axis;
mod classes;
mod course;
mod exceedance;
mod extremes;
mod forest;
mod frame;
mod gantt;
mod heatmap;
mod histogram;
mod intervals;
mod lanes;
mod linear;
mod over;
mod points;
mod profile;
mod rates;
mod rows;
mod shift;
mod spread;
mod stacked;
mod standalone;
mod steps;
mod stolen;
mod timeline;
mod used;
mod wake;

pub use classes::{ClassRow, ClassWindow, classes};
pub use course::{Course, Upright, course, course_marked};
pub use exceedance::{Limit, Tail, exceedance};
pub use extremes::{qq, return_levels};
pub use forest::{ForestRow, forest};
pub use gantt::{Gantt, GanttBar, GanttLane, GanttLink, GanttMark, gantt};
pub use heatmap::{Cell, heatmap};
pub use histogram::histogram;
pub use intervals::{IntervalAxis, IntervalRow, intervals};
pub use lanes::{LaneSpan, lanes};
pub use linear::{Line, linear};
pub use over::{Measure, Over, OverAsked, OverPoint, Style, over};
pub use points::{SharePoint, Shares, shares};
pub use profile::profile;
pub use rates::{RateRow, rates};
pub use rows::Room;
pub use shift::{Level, shift};
pub use spread::{Spread, spread};
pub use stacked::{StackedRow, stacked};
pub use standalone::standalone;
pub use steps::{Segment, StepRow, steps};
pub use stolen::{StolenRow, stolen};
pub use timeline::{Band, Stretch, timeline};
pub use used::{UsedRow, used};
pub use wake::{Mark, Piece, wake};

use crate::format;
use analysis::distribution::Bucket;
use model::foreign::is_unseen;

/// One curve of a chart: the distribution of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What the label says, such as the phase.
    pub label: String,
    /// Which style: index of the phase.
    pub style: usize,
    /// Ascending; buckets at or below 0 cannot be drawn on a logarithmic axis.
    pub histogram: Vec<Bucket>,
    /// Observed maximum, ns.
    pub max_ns: i64,
    /// What counts are divided by for an exceedance curve: n, or the seconds measured.
    pub total: f64,
}

impl Curve {
    /// The buckets a logarithmic axis can show.
    fn drawn(&self) -> impl Iterator<Item = &Bucket> {
        self.histogram.iter().filter(|bucket| bucket.low_ns > 0 && bucket.count > 0)
    }
}

/// The entries of a key: each phase with its observed maximum.
fn maxima<'a>(curves: impl IntoIterator<Item = &'a Curve>) -> Vec<(usize, String)> {
    let entry = |c: &Curve| (c.style, format!("{}, max {}", c.label, micro(&format::ns(c.max_ns))));
    curves.into_iter().map(entry).collect()
}

/// One of eight hues, in turn.
fn hue_class(hue: usize) -> String {
    format!("k{}", hue % 8)
}

/// Micro by its sign.
pub(crate) fn micro(text: &str) -> String {
    text.replace(" us", " µs")
}

/// Text for the inside of an element or attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() || is_unseen(c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
