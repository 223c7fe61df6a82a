//! Jobs of tasks over a stretch of time: when each was released, executed, waited and slept, and
//! the deadlines; one job is marked with its end, its bound and its deadline. Upright arrows point
//! up at releases and down at deadlines, as the field draws them.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, apart, px};
use super::micro;
use super::rows::{AXIS, HAND, Room, cut};
use crate::format;
use std::fmt::Write;

/// Height of a lane and of what executes in it; of a wait or a sleep.
const LANE: f64 = 34.0;
const BAR: f64 = 16.0;
const THIN: f64 = 6.0;
/// Height of the name above a lane, in a hand.
const NAME: f64 = 17.0;
/// Room for the names of the marks.
const HEAD: f64 = 22.0;
/// Letters of a lane's name.
const LETTERS: usize = 40;
/// Arrows with heads in a lane.
const HEADS: usize = 48;

/// Something that a task did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GanttBar {
    /// From then, ns since the time that the axis counts from.
    pub from_ns: f64,
    /// To then.
    pub to_ns: f64,
    /// Its colour, `p0` to `p8`.
    pub style: usize,
    /// Whether it executes.
    pub executes: bool,
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub struct GanttLane {
    /// Its name.
    pub name: String,
    /// What it did.
    pub bars: Vec<GanttBar>,
    /// When its jobs were released, ns.
    pub releases: Vec<f64>,
    /// When they were to be done.
    pub deadlines: Vec<f64>,
}

/// A line through all lanes, with its name above them.
#[derive(Debug, Clone, PartialEq)]
pub struct GanttMark {
    /// Where, ns.
    pub at_ns: f64,
    /// Its name; of two that would touch, the first in the list is written.
    pub name: String,
    /// Its colour: `bad`, `warn`, or empty.
    pub class: &'static str,
}

/// One job releases another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GanttLink {
    /// When, ns.
    pub at_ns: f64,
    /// The lanes of both.
    pub lanes: [usize; 2],
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Gantt {
    /// From where to where, ns.
    pub window_ns: [f64; 2],
    /// What the axis counts from, in words.
    pub since: String,
    /// The tasks, the most urgent first.
    pub lanes: Vec<GanttLane>,
    /// The job that is marked: its lane, from when to when.
    pub marked: Option<(usize, [f64; 2])>,
    /// Lines through all lanes.
    pub marks: Vec<GanttMark>,
    /// Arrows between lanes.
    pub links: Vec<GanttLink>,
}

/// Draws it; `None` where nothing was done.
pub fn gantt(id: &str, title: &str, of: &Gantt, room: Room) -> Option<String> {
    of.lanes.iter().find(|lane| !lane.bars.is_empty())?;
    let longest = of.lanes.iter().map(|lane| lane.name.chars().count()).max().unwrap_or(0).min(LETTERS);
    let above = if room == Room::Hand { NAME } else { 0.0 };
    let (width, left) = match room {
        Room::Desk => (FULL, (longest as f64 * 6.6 + 20.0).max(60.0)),
        Room::Hand => (HAND, 14.0),
    };
    let height = HEAD + (LANE + above) * of.lanes.len() as f64;
    let mut chart = Chart::new(id, title, &description(of), [width, height + AXIS], left);
    (chart.area[2], chart.area[3]) = (HEAD, height);
    let x = Axis::linear(Unit::Ns, of.window_ns[0], of.window_ns[1], chart.across());
    chart.horizontal(&x, &of.since);
    let middle = |lane: usize| HEAD + (LANE + above) * lane as f64 + above + LANE / 2.0 + 2.0;
    if let Some((lane, [from_ns, to_ns])) = of.marked {
        let (from, to) = (x.px(from_ns), x.px(to_ns));
        rect(&mut chart, "eq", [from, middle(lane) - BAR], [(to - from).max(1.0), 2.0 * BAR]);
    }
    for (at, lane) in of.lanes.iter().enumerate() {
        let y = middle(at);
        match room {
            Room::Desk => chart.text(left - 8.0, y + 4.0, "t e", &cut(&lane.name, LETTERS)),
            Room::Hand => chart.text(left, y - LANE / 2.0 - 2.0, "n halo", &cut(&lane.name, 52)),
        }
        draw_lane(&mut chart, &x, lane, y);
    }
    for link in &of.links {
        let [from, to] = link.lanes.map(middle);
        let down = if to > from { 1.0 } else { -1.0 };
        let (at, end) = (x.px(link.at_ns), to - down * BAR / 2.0);
        chart.raw(&format!(
            "<path class=\"iv k0\" d=\"M{at} {}V{end}M{} {}L{at} {end}L{} {}\"/>",
            px(from + down * BAR / 2.0),
            px(at - 3.5),
            px(end - down * 5.0),
            px(at + 3.5),
            px(end - down * 5.0),
            at = px(at),
            end = px(end),
        ));
    }
    draw_marks(&mut chart, &x, &of.marks);
    Some(chart.finish())
}

fn rect(chart: &mut Chart, class: &str, [left, top]: [f64; 2], [width, height]: [f64; 2]) {
    chart.raw(&format!(
        "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
        px(left),
        px(top),
        px(width),
        px(height)
    ));
}

fn draw_lane(chart: &mut Chart, x: &Axis, lane: &GanttLane, y: f64) {
    let [left, right, ..] = chart.area;
    let base = px(y + BAR / 2.0);
    chart.raw(&format!("<path class=\"g\" d=\"M{} {base}H{}\"/>", px(left), px(right)));
    for bar in &lane.bars {
        let (from, to) = (x.px(bar.from_ns), x.px(bar.to_ns));
        let height = if bar.executes { BAR } else { THIN };
        let class = format!("p{}", bar.style);
        rect(chart, &class, [from, y + BAR / 2.0 - height], [(to - from).max(0.7), height]);
    }
    arrows(chart, x, "iv", &lane.releases, [y + BAR / 2.0, y - BAR / 2.0 - 5.0]);
    arrows(chart, x, "iv bad", &lane.deadlines, [y - BAR / 2.0 - 5.0, y + BAR / 2.0]);
}

/// Arrows from one height to another, at each of these times inside the chart.
fn arrows(chart: &mut Chart, x: &Axis, class: &str, times: &[f64], [from, to]: [f64; 2]) {
    let back = if to < from { 4.0 } else { -4.0 };
    let mut path = String::new();
    for at in times.iter().filter(|at| (x.low..=x.high).contains(*at)) {
        let at = x.px(*at);
        let _ = write!(path, "M{} {}V{}", px(at), px(from), px(to));
        if times.len() <= HEADS {
            let (left, right, side) = (px(at - 3.0), px(at + 3.0), px(to + back));
            let _ = write!(path, "M{left} {side}L{} {}L{right} {side}", px(at), px(to));
        }
    }
    if !path.is_empty() {
        chart.raw(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
    }
}

fn draw_marks(chart: &mut Chart, x: &Axis, marks: &[GanttMark]) {
    let inside = |mark: &&GanttMark| (x.low..=x.high).contains(&mark.at_ns);
    let [left, right, top, bottom] = chart.area;
    let mut names = Vec::new();
    for mark in marks.iter().filter(inside) {
        let at = x.px(mark.at_ns);
        let path = format!("M{} {}V{}", px(at), px(top - 2.0), px(bottom));
        // Names of lanes are above it.
        chart.under(&format!("<path class=\"cross iv {}\" d=\"{path}\"/>", mark.class));
        // A name stays inside the chart.
        let half = mark.name.chars().count() as f64 * 3.5;
        names.push((at.clamp(left + half, (right - half).max(left + half)), mark.name.clone()));
    }
    for (at, name) in apart(names) {
        chart.text(at, top - 8.0, "t c", &name);
    }
}

fn description(of: &Gantt) -> String {
    let executed = |lane: &GanttLane| {
        let bars = lane.bars.iter().filter(|bar| bar.executes);
        let ns: f64 = bars.map(|bar| bar.to_ns - bar.from_ns).sum();
        let jobs = format::plural(lane.releases.len() as u64, "release");
        format!("{}: {jobs}, executes {}", lane.name, micro(&format::ns_f(ns)))
    };
    let lanes: Vec<String> = of.lanes.iter().map(executed).collect();
    let marks: Vec<&str> = of.marks.iter().map(|mark| mark.name.as_str()).collect();
    format!("What each task did when. {}. Marked: {}.", lanes.join("; "), marks.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(name: &str) -> Gantt {
        let bar = |from_ns, to_ns, executes| GanttBar { from_ns, to_ns, style: 0, executes };
        let lane = |name: &str, bars| GanttLane {
            name: name.into(),
            bars,
            releases: vec![0.0, 1e9],
            deadlines: vec![9e5],
        };
        Gantt {
            window_ns: [-1e5, 1e6],
            since: "time since the release".into(),
            lanes: vec![
                lane(name, vec![bar(0.0, 1e5, true)]),
                lane("b", vec![bar(0.0, 1e5, false), bar(1e5, 4e5, true)]),
            ],
            marked: Some((1, [0.0, 4e5])),
            marks: vec![
                GanttMark { at_ns: 4e5, name: "done after 400 µs".into(), class: "" },
                GanttMark { at_ns: 4.1e5, name: "bound 410 µs".into(), class: "warn" },
                GanttMark { at_ns: 5e9, name: "far away".into(), class: "bad" },
            ],
            links: vec![GanttLink { at_ns: 1e5, lanes: [0, 1] }],
        }
    }

    #[test]
    fn each_task_has_a_lane_and_what_lies_outside_is_not_drawn() {
        for room in [Room::Desk, Room::Hand] {
            let svg = gantt("g", "t", &chart("a <b>"), room).unwrap();
            assert!(svg.contains("a &lt;b&gt;") && !svg.contains("<b>") && !svg.contains("NaN"), "{svg}");
            assert_eq!(svg.matches("<rect class=\"p0\"").count(), 3);
            // The two names would touch; the mark that is far away has no line.
            assert!(svg.contains(">done after 400 µs<") && !svg.contains(">bound 410 µs<"), "{svg}");
            assert_eq!(svg.matches("class=\"cross iv").count(), 2);
            // One release of two, and one deadline, in each lane; and the arrow between them.
            assert_eq!(svg.matches("<path class=\"iv\"").count(), 2);
            assert_eq!(svg.matches("<path class=\"iv bad\"").count(), 2);
            assert_eq!(svg.matches("<path class=\"iv k0\"").count(), 1);
        }
    }

    #[test]
    fn without_anything_done_there_is_no_chart() {
        let empty = Gantt { lanes: Vec::new(), ..chart("a") };
        assert_eq!(gantt("g", "t", &empty, Room::Desk), None);
    }
}
