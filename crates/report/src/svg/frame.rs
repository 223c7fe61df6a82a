//! The frame of a chart: title for readers who do not see it, grid, ticks, axis names, and labels
//! that keep clear of each other.

use std::fmt::Write;

use super::axis::{Axis, Kind, Unit};
use super::escape;

/// Width of a chart that shares a row with another, in its own units; the page scales it by about
/// one.
pub(super) const HALF: f64 = 560.0;
/// Width of a chart that has a row of its own.
pub(super) const FULL: f64 = 1120.0;
/// Height of a line of text.
const LINE: f64 = 16.0;

/// A chart under construction.
pub(super) struct Chart {
    body: String,
    /// Left, right, top, bottom of the plot.
    pub(super) area: [f64; 4],
    id: String,
    title: String,
    description: String,
    size: [f64; 2],
    plot: String,
}

impl Chart {
    /// An empty chart; `id` must be unique in the page.
    pub(super) fn new(
        id: &str,
        title: &str,
        description: &str,
        [width, height]: [f64; 2],
        left: f64,
    ) -> Self {
        Self {
            body: String::new(),
            area: [left, width - 14.0, 14.0, height - 44.0],
            id: escape(id),
            title: escape(title),
            description: escape(description),
            size: [width, height],
            plot: String::new(),
        }
    }

    /// Pixels of the horizontal axis.
    pub(super) fn across(&self) -> [f64; 2] {
        [self.area[0], self.area[1]]
    }

    /// Pixels of the vertical axis, low values at the bottom.
    pub(super) fn upwards(&self) -> [f64; 2] {
        [self.area[3], self.area[2]]
    }

    /// Adds markup as it is.
    pub(super) fn raw(&mut self, markup: &str) {
        self.body.push_str(markup);
    }

    /// Adds markup below all that there is.
    pub(super) fn under(&mut self, markup: &str) {
        self.body.insert_str(0, markup);
    }

    /// Draws grid, ticks and names of both axes, and stores for scripts how to read pixels back.
    pub(super) fn axes(&mut self, x: &Axis, y: &Axis, x_name: &str, y_name: &str) {
        self.horizontal(x, x_name);
        self.upright(y, y_name);
        self.plot = format!(" data-x=\"{}\" data-y=\"{}\"", machine(x), machine(y));
    }

    /// Draws the upright axis alone.
    pub(super) fn upright(&mut self, y: &Axis, name: &str) {
        let [left, right, top, bottom] = self.area;
        let mut grid = String::new();
        for tick in y.ticks() {
            let class = if tick.label.is_some() { "g" } else { "m" };
            let _ =
                write!(grid, "<path class=\"{class}\" d=\"M{} {}H{}\"/>", px(left), px(tick.px), px(right));
            if let Some(label) = tick.label {
                self.text(left - 6.0, tick.px + 4.0, "t e", &label);
            }
        }
        self.body.insert_str(0, &grid);
        let _ = write!(
            self.body,
            "<text class=\"n y\" transform=\"translate(13 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            px(f64::midpoint(top, bottom)),
            escape(name)
        );
    }

    /// Draws the horizontal axis alone.
    pub(super) fn horizontal(&mut self, x: &Axis, name: &str) {
        let [left, right, top, bottom] = self.area;
        let mut grid = String::new();
        let mut labels = Vec::new();
        for tick in x.ticks() {
            let class = if tick.label.is_some() { "g" } else { "m" };
            let _ =
                write!(grid, "<path class=\"{class}\" d=\"M{} {}V{}\"/>", px(tick.px), px(top), px(bottom));
            labels.extend(tick.label.map(|label| (tick.px, label)));
        }
        for (at, label) in apart(labels) {
            self.text(at, bottom + 16.0, "t c", &label);
        }
        self.body.insert_str(0, &grid);
        let _ = write!(self.body, "<path class=\"a\" d=\"M{} {}H{}\"/>", px(left), px(bottom), px(right));
        self.text(f64::midpoint(left, right), bottom + 35.0, "n c", name);
    }

    /// A text at a point; classes: `t` tick, `n` name, `l` label, `c` centred, `e` ends at the
    /// point.
    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>",
            px(x),
            px(y),
            escape(text)
        );
    }

    /// A step line or any path of a series.
    pub(super) fn series(&mut self, style: usize, label: &str, path: &str) {
        self.series_of(&format!("s{style}"), label, path);
    }

    /// The same, its colour by the name of a class.
    pub(super) fn series_of(&mut self, class: &str, label: &str, path: &str) {
        let _ = write!(self.body, "<path class=\"s {class}\" data-l=\"{}\" d=\"{path}\"/>", escape(label));
    }

    /// A dot.
    pub(super) fn dot(&mut self, style: usize, x: f64, y: f64) {
        let _ =
            write!(self.body, "<circle class=\"d s{style}\" cx=\"{}\" cy=\"{}\" r=\"3.5\"/>", px(x), px(y));
    }

    /// A label beside a point, on the side that has room.
    pub(super) fn label(&mut self, style: usize, x: f64, y: f64, text: &str) {
        let middle = f64::midpoint(self.area[0], self.area[1]);
        let (at, class) = if x > middle { (x - 8.0, "l e") } else { (x + 8.0, "l") };
        self.text(at, y + 4.0, &format!("{class} s{style}"), text);
    }

    /// What each style stands for, at the upper right: free in every falling curve.
    pub(super) fn key(&mut self, entries: &[(usize, String)]) {
        let named: Vec<_> = entries.iter().map(|(style, text)| (format!("s{style}"), text.clone())).collect();
        self.key_of(&named);
    }

    /// The same, colours by the names of classes.
    pub(super) fn key_of(&mut self, entries: &[(String, String)]) {
        let [_, right, top, _] = self.area;
        for (row, (class, text)) in entries.iter().enumerate() {
            let y = top + LINE * (row as f64 + 0.8);
            self.text(right - 40.0, y + 4.0, &format!("l e {class}"), text);
            let _ = write!(
                self.body,
                "<path class=\"w {class}\" d=\"M{} {}H{}\"/>",
                px(right - 34.0),
                px(y),
                px(right - 6.0)
            );
        }
    }

    /// The finished element.
    pub(super) fn finish(self) -> String {
        let Self { id, title, description, size: [width, height], plot, body, .. } = self;
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"{plot}>\
             <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{description}</desc>{body}</svg>"
        )
    }
}

/// Labels of a horizontal axis that do not touch: of two that would, the one that is given first
/// stays.
pub(super) fn apart(labels: Vec<(f64, String)>) -> Vec<(f64, String)> {
    /// Widths of a letter and of the room between two labels.
    const LETTER: f64 = 7.0;
    const ROOM: f64 = 12.0;
    let half = |label: &str| label.chars().count() as f64 * LETTER / 2.0;
    let mut kept: Vec<(f64, String)> = Vec::new();
    for (at, label) in labels {
        let touches = |(other, text): &(f64, String)| (at - other).abs() < half(&label) + half(text) + ROOM;
        if !kept.iter().any(touches) {
            kept.push((at, label));
        }
    }
    kept
}

/// A step line under construction: moves, and horizontal and vertical strokes.
#[derive(Default)]
pub(super) struct Steps(String);

impl Steps {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn start(&mut self, x: f64, y: f64) {
        let _ = write!(self.0, "M{} {}", px(x), px(y));
    }

    pub(super) fn across(&mut self, x: f64) {
        let _ = write!(self.0, "H{}", px(x));
    }

    pub(super) fn upright(&mut self, y: f64) {
        let _ = write!(self.0, "V{}", px(y));
    }

    pub(super) fn path(self) -> String {
        self.0
    }
}

/// A coordinate with at most one decimal.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// `kind,unit,low,high,from,to` for the page's script.
fn machine(axis: &Axis) -> String {
    let kind = if axis.kind == Kind::Log { "log" } else { "lin" };
    let unit = match axis.unit {
        Unit::Ns => "ns",
        Unit::Seconds => "s",
        Unit::Count => "count",
        Unit::Share => "share",
        Unit::PerSecond => "per s",
    };
    format!("{kind},{unit},{},{},{},{}", axis.low, axis.high, px(axis.from_px), px(axis.to_px))
}
