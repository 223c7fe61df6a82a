//! Values over time, one mark a slot from its least to its most: a single value is a dot. A trend,
//! a step and what comes back with a period show here and in no histogram.

use super::axis::{Axis, Unit};
use super::frame::{Chart, HALF, px};
use crate::format;
use stats::slots::Slot;
use std::fmt::Write;

/// One series.
#[derive(Debug, Clone, PartialEq)]
pub struct Course<'a> {
    /// What it is.
    pub label: &'a str,
    /// Which style.
    pub style: usize,
    /// Ascending.
    pub slots: &'a [Slot],
}

/// How values lie on the upright axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upright {
    /// Times above 0, decades apart.
    Log,
    /// Anything.
    Linear,
}

/// Draws the series; `None` where nothing can be drawn.
pub fn course(id: &str, title: &str, what: &str, upright: Upright, courses: &[Course<'_>]) -> Option<String> {
    course_marked(id, title, what, upright, courses, &[])
}

/// The same with a line across the plot at each of some moments, ns.
pub fn course_marked(
    id: &str,
    title: &str,
    what: &str,
    upright: Upright,
    courses: &[Course<'_>],
    marks: &[i64],
) -> Option<String> {
    let drawn = |slot: &&Slot| upright == Upright::Linear || slot.most > 0;
    let slots = || courses.iter().flat_map(|one| one.slots).filter(drawn);
    let start = slots().map(|slot| slot.t_ns).min()?;
    let end = slots().map(|slot| slot.t_ns).max()?;
    let low = match upright {
        Upright::Linear => slots().map(|slot| slot.least).min()?,
        Upright::Log => slots().map(|slot| if slot.least > 0 { slot.least } else { slot.most }).min()?,
    };
    let high = slots().map(|slot| slot.most).max()?;
    let mut chart = Chart::new(id, title, &description(what, courses), [HALF, 260.0], 70.0);
    if courses.len() > 1 {
        chart.area[2] = 28.0;
        key(&mut chart, courses);
    }
    let seconds = |t_ns: i64| t_ns.saturating_sub(start) as f64 / 1e9;
    let x = Axis::linear(Unit::Seconds, 0.0, seconds(end), chart.across());
    let (low, high) = (low as f64, high as f64);
    let y = match upright {
        Upright::Log => Axis::log_tight(Unit::Ns, low, high, chart.upwards()),
        Upright::Linear => {
            let room = ((high - low) * 0.06).max(1.0);
            Axis::linear(Unit::Ns, low - room, high + room, chart.upwards())
        }
    };
    chart.axes(&x, &y, "time since the first", what);
    for t_ns in marks.iter().filter(|t_ns| (start..=end).contains(*t_ns)) {
        let ([_, _, top, bottom], at) = (chart.area, px(x.px(seconds(*t_ns))));
        chart.raw(&format!("<path class=\"a\" d=\"M{at} {}V{}\"/>", px(top), px(bottom)));
    }
    for one in courses {
        let mut path = String::new();
        for slot in one.slots.iter().filter(drawn) {
            let (at, top, bottom) =
                (x.px(seconds(slot.t_ns)), y.px(slot.most as f64), y.px(slot.least as f64));
            let _ = write!(path, "M{} {}", px(at), px(top));
            // A stroke of no length is drawn as a dot by its round ends.
            let _ = if bottom - top < 0.5 { write!(path, "h0") } else { write!(path, "V{}", px(bottom)) };
        }
        chart.raw(&format!("<path class=\"v s{}\" d=\"{path}\"/>", one.style));
    }
    Some(chart.finish())
}

/// What each style stands for, in a row above the plot: the series leave no corner free.
fn key(chart: &mut Chart, courses: &[Course<'_>]) {
    let mut at = chart.area[0] + 6.0;
    for one in courses {
        chart.dot(one.style, at, 12.0);
        chart.text(at + 9.0, 16.0, &format!("l s{}", one.style), one.label);
        at += 34.0 + one.label.chars().count() as f64 * 6.6;
    }
}

fn description(what: &str, courses: &[Course<'_>]) -> String {
    let part = |one: &Course<'_>| {
        let least = one.slots.iter().map(|slot| slot.least).min().unwrap_or(0);
        let most = one.slots.iter().map(|slot| slot.most).max().unwrap_or(0);
        format!("{}: from {} to {}", one.label, format::ns(least), format::ns(most))
    };
    format!("{what} over time. {}.", courses.iter().map(part).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_dates_are_below_the_grid_and_a_logarithm_leaves_them_out() {
        let slots = [Slot::single(0, -40), Slot { t_ns: 1_000_000_000, least: 10, most: 900 }];
        let one = [Course { label: "off", style: 0, slots: &slots }];
        let linear = course("c", "t", "off the grid", Upright::Linear, &one).unwrap();
        assert_eq!(
            linear.matches('M').count()
                - linear.matches("class=\"g\"").count()
                - linear.matches("class=\"m\"").count()
                - linear.matches("class=\"a\"").count(),
            2
        );
        assert!(linear.contains("from -40 ns to 900 ns"));
        let marked = |marks: &[i64]| course_marked("c", "t", "off", Upright::Linear, &one, marks).unwrap();
        let lines = |svg: &str| svg.matches("class=\"a\"").count();
        assert_eq!(lines(&marked(&[500_000_000, 9_000_000_000])), lines(&linear) + 1);
        let log = course("c", "t", "off the grid", Upright::Log, &one).unwrap();
        assert!(!log.contains("h0\"/>") && !log.contains("NaN"));
        assert_eq!(
            course("c", "t", "x", Upright::Log, &[Course { slots: &slots[..1], ..one[0].clone() }]),
            None
        );
    }
}
