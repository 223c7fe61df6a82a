//! One late wake-up as it passed: a lane for each CPU that took part, what ran there, and the marks
//! of its way.
//!
//! After the timelines of interference on a core in the RTSS 2024 paper on isolation (Fig. 5), for
//! one sample: the timer expires, perhaps on another CPU; the wake-up is requested; an IPI goes to
//! the task's CPU; the scheduler switches; the task returns. Most of a large latency is often one
//! step, with all other marks in its last hundredth, so the end is drawn once more, enlarged.

use super::axis::{Axis, Unit};
use super::frame::{Chart, FULL, px};
use super::micro;
use crate::format;

/// Height of a lane, and of the axis under each panel.
const LANE: f64 = 46.0;
const AXIS: f64 = 46.0;
const TOP: f64 = 26.0;
/// The end is enlarged where what is behind the longest time without a mark is no more than this
/// part.
const CROWDED: f64 = 0.12;
/// Numbers of marks are no nearer to each other than this.
const APART: f64 = 16.0;

/// A mark of the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// ns after the release.
    pub at_ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// What it says, for the description.
    pub label: String,
}

/// A stretch of time on a lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Start, ns after the release.
    pub from_ns: u64,
    /// Length, ns.
    pub ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// Which style.
    pub style: usize,
    /// What ran there, where that was something else than the step itself.
    pub ran: Option<String>,
}

/// Draws the sample of `cpu` that was `value_ns` late; marks are numbered in their order. `None`
/// where there is nothing to show.
pub fn wake(
    id: &str,
    title: &str,
    cpu: u32,
    value_ns: u64,
    pieces: &[Piece],
    marks: &[Mark],
) -> Option<String> {
    if value_ns == 0 || marks.is_empty() {
        return None;
    }
    let mut lanes: Vec<u32> =
        pieces.iter().map(|piece| piece.cpu).chain(marks.iter().map(|mark| mark.cpu)).collect();
    lanes.push(cpu);
    lanes.sort_by_key(|lane| (*lane == cpu, *lane));
    lanes.dedup();
    let panels = panels(value_ns, marks);
    let panel_height = TOP + LANE * lanes.len() as f64 + AXIS;
    let mut chart = Chart::new(
        id,
        title,
        &description(cpu, value_ns, marks),
        [FULL, panel_height * panels.len() as f64],
        64.0,
    );
    for (index, range) in panels.into_iter().enumerate() {
        let top = panel_height * index as f64;
        chart.area = [64.0, FULL - 24.0, top + TOP, top + panel_height - AXIS];
        panel(&mut chart, range, &lanes, pieces, marks);
    }
    Some(chart.finish())
}

/// The whole, and where marks crowd at its end, that once more: what lies behind the longest time
/// without a mark.
fn panels(value_ns: u64, marks: &[Mark]) -> Vec<[f64; 2]> {
    let whole = [0.0, value_ns as f64];
    let before = |at: usize| at.checked_sub(1).map_or(0, |before| marks[before].at_ns);
    let gap = |at: usize| marks[at].at_ns.saturating_sub(before(at));
    let behind = (0..marks.len()).max_by_key(|at| gap(*at)).unwrap_or(0);
    let first = marks[behind].at_ns.min(value_ns) as f64;
    let rest = value_ns as f64 - first;
    if rest <= 0.0 || rest > CROWDED * value_ns as f64 {
        return vec![whole];
    }
    vec![whole, [(first - rest * 0.08).max(0.0), value_ns as f64]]
}

fn panel(chart: &mut Chart, [low, high]: [f64; 2], lanes: &[u32], pieces: &[Piece], marks: &[Mark]) {
    let x = Axis::linear(Unit::Ns, low, high, chart.across());
    let name = if low > 0.0 {
        "time since the intended release, the end enlarged"
    } else {
        "time since the intended release"
    };
    chart.horizontal(&x, name);
    let [left, right, top, _] = chart.area;
    let middle = |cpu: u32| {
        let lane = lanes.iter().position(|lane| *lane == cpu).unwrap_or(0);
        top + LANE * (lane as f64 + 0.5)
    };
    for lane in lanes {
        let y = middle(*lane);
        chart.raw(&format!("<path class=\"m\" d=\"M{} {}H{}\"/>", px(left), px(y), px(right)));
        chart.text(left - 8.0, y + 4.0, "t e", &format!("CPU {lane}"));
    }
    for piece in pieces {
        let end = (piece.from_ns + piece.ns) as f64;
        if end > low {
            draw_piece(chart, piece, x.px(piece.from_ns as f64), x.px(end), middle(piece.cpu));
        }
    }
    for pair in marks.windows(2).filter(|pair| pair[0].cpu != pair[1].cpu && pair[1].at_ns as f64 >= low) {
        let [from, to] = [&pair[0], &pair[1]].map(|mark| (px(x.px(mark.at_ns as f64)), px(middle(mark.cpu))));
        chart.raw(&format!(
            "<path class=\"cross\" fill=\"none\" d=\"M{} {}L{} {}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }
    draw_marks(chart, &x, low, marks, &middle);
}

/// The step itself is a thin bar; what else ran stands out of it, with its name where there is
/// room.
fn draw_piece(chart: &mut Chart, piece: &Piece, left: f64, right: f64, y: f64) {
    let half = if piece.ran.is_some() { 11.0 } else { 5.0 };
    let width = (right - left).max(0.6);
    chart.raw(&format!(
        "<rect class=\"p{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
        piece.style,
        px(left),
        px(y - half),
        px(width),
        px(half * 2.0)
    ));
    if let Some(ran) = &piece.ran
        && width > ran.chars().count() as f64 * 6.6 + 8.0
    {
        chart.text(f64::midpoint(left, right), y - half - 3.0, "t c", ran);
    }
}

/// A line and a number for each mark; numbers that would touch move apart.
fn draw_marks(chart: &mut Chart, x: &Axis, low: f64, marks: &[Mark], middle: &dyn Fn(u32) -> f64) {
    let shown: Vec<(usize, &Mark)> =
        marks.iter().enumerate().filter(|(_, mark)| mark.at_ns as f64 >= low).collect();
    let at = |mark: &Mark| x.px(mark.at_ns as f64);
    let numbers = apart(&shown.iter().map(|(_, mark)| at(mark)).collect::<Vec<_>>(), chart.area[1] + 16.0);
    for ((index, mark), number_at) in shown.into_iter().zip(numbers) {
        let (at, y) = (px(at(mark)), middle(mark.cpu));
        let number_y = chart.area[2] - 8.0;
        chart.raw(&format!("<path class=\"a\" d=\"M{at} {}V{}\"/>", px(y - 15.0), px(y + 15.0)));
        chart.raw(&format!(
            "<path class=\"m\" d=\"M{} {}L{at} {}\"/>",
            px(number_at),
            px(number_y + 3.0),
            px(y - 15.0)
        ));
        chart.text(number_at, number_y, "l c", &(index + 1).to_string());
    }
}

/// Places, ascending, at least [`APART`] from each other where the room up to `right` allows it.
fn apart(places: &[f64], right: f64) -> Vec<f64> {
    let mut moved = places.to_vec();
    for at in 1..moved.len() {
        moved[at] = moved[at].max(moved[at - 1] + APART);
    }
    let mut room = right;
    for place in moved.iter_mut().rev() {
        *place = place.min(room);
        room = *place - APART;
    }
    moved
}

fn description(cpu: u32, value_ns: u64, marks: &[Mark]) -> String {
    let mark = |(index, mark): (usize, &Mark)| {
        format!("{}: {} on CPU {} after {}", index + 1, mark.label, mark.cpu, format::ns(mark.at_ns as i64))
    };
    let marks: Vec<String> = marks.iter().enumerate().map(mark).collect();
    format!("A wake-up on CPU {cpu}, {} late. {}.", micro(&format::ns(value_ns as i64)), marks.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(at_ns: u64, cpu: u32) -> Mark {
        Mark { at_ns, cpu, label: "it happened".into() }
    }

    fn piece(from_ns: u64, ns: u64, cpu: u32, ran: Option<&str>) -> Piece {
        Piece { from_ns, ns, cpu, style: 0, ran: ran.map(Into::into) }
    }

    fn drawn(value_ns: u64, pieces: &[Piece], marks: &[Mark]) -> String {
        wake("w", "t", 2, value_ns, pieces, marks).unwrap()
    }

    #[test]
    fn each_cpu_that_took_part_has_a_lane_and_the_measured_one_is_last() {
        let svg =
            drawn(1_000, &[piece(0, 400, 7, None), piece(400, 600, 2, None)], &[mark(400, 7), mark(700, 2)]);
        let lanes: Vec<_> = svg.split(">CPU ").skip(1).filter_map(|rest| rest.split('<').next()).collect();
        assert_eq!(lanes, ["7", "2"]);
        assert!(
            svg.contains("1: it happened on CPU 7 after 400 ns; 2: it happened on CPU 2 after 700 ns"),
            "{svg}"
        );
        assert_eq!(svg.matches("class=\"cross\"").count(), 1, "one arrow between the lanes");
    }

    #[test]
    fn marks_that_crowd_at_the_end_are_drawn_once_more() {
        let spread = drawn(1_000, &[], &[mark(300, 2), mark(600, 2), mark(1_000, 2)]);
        let crowded = drawn(1_000_000, &[], &[mark(990_000, 2), mark(995_000, 2), mark(1_000_000, 2)]);
        assert_eq!([&spread, &crowded].map(|svg| svg.matches("since the intended release").count()), [1, 2]);
        // Every mark in the whole, and again in the part.
        assert_eq!(crowded.matches("class=\"l c\"").count(), 6);
    }

    #[test]
    fn the_end_behind_the_longest_wait_is_enlarged() {
        let marks = [mark(100, 7), mark(110, 7), mark(9_000, 2), mark(9_500, 2), mark(10_000, 2)];
        assert_eq!(panels(10_000, &marks), [[0.0, 10_000.0], [8_920.0, 10_000.0]]);
    }

    #[test]
    fn numbers_do_not_touch_and_stay_inside() {
        let placed = apart(&[10.0, 12.0, 98.0, 99.0, 100.0], 100.0);
        assert!(placed.windows(2).all(|pair| pair[1] - pair[0] >= APART), "{placed:?}");
        assert_eq!((placed[0], placed[4]), (10.0, 100.0));
    }

    #[test]
    fn what_ran_is_named_where_there_is_room() {
        let svg = drawn(
            1_000,
            &[piece(0, 900, 2, Some("eth0")), piece(900, 5, 2, Some("NET_RX"))],
            &[mark(1_000, 2)],
        );
        assert!(svg.contains(">eth0<") && !svg.contains(">NET_RX<"), "{svg}");
    }

    #[test]
    fn without_a_way_there_is_no_chart() {
        assert_eq!(wake("w", "t", 2, 0, &[], &[mark(0, 2)]), None);
        assert_eq!(wake("w", "t", 2, 10, &[], &[]), None);
    }
}
