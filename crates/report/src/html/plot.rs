//! What the opening shows beside its numbers: a chart with its caption, or a list of bars.

use minijinja::{Value, context};

use super::chart;
use crate::svg::Room;

/// What took time: a line of the list beside the plot.
pub(super) struct Top {
    /// What it is.
    pub(super) name: String,
    /// How much, in words.
    pub(super) value: String,
    /// How often, and how that is known.
    pub(super) note: String,
    /// Length of its bar, in any unit, the same for all.
    pub(super) length: f64,
    /// How the bar is filled, by the name of a class.
    pub(super) fill: String,
}

/// A list of bars, longest first, as a plot; undefined where all are empty.
pub(super) fn list(title: &str, caption: String, rows: &[Top]) -> Value {
    let most = rows.iter().map(|row| row.length).fold(0.0, f64::max);
    if most <= 0.0 {
        return Value::UNDEFINED;
    }
    let row = |row: &Top| {
        context! {
            name => row.name.as_str(), value => row.value.as_str(), note => row.note.as_str(),
            fill => row.fill.as_str(), percent => format!("{:.1}", (row.length / most * 100.0).max(0.3)),
        }
    };
    context! { title => title, rows => rows.iter().map(row).collect::<Vec<_>>(), caption => caption }
}

/// A plot with its caption; undefined without a plot.
pub(super) fn plot(svg: Option<String>, caption: String) -> Value {
    match svg {
        Some(svg) => context! { wide => is_wide(&svg), svg => chart(Some(svg)), caption => caption },
        None => Value::UNDEFINED,
    }
}

/// A plot drawn twice, for desks and for hands, with its caption; undefined where there is none.
pub(super) fn rooms(draw: impl Fn(Room) -> Option<String>, caption: String) -> Value {
    match (draw(Room::Desk), draw(Room::Hand)) {
        (Some(desk), Some(hand)) => context! {
            wide => is_wide(&desk),
            desk => Value::from_safe_string(desk), hand => Value::from_safe_string(hand), caption => caption,
        },
        _ => Value::UNDEFINED,
    }
}

/// Whether a chart was drawn for a row of its own.
fn is_wide(svg: &str) -> bool {
    svg.contains("viewBox=\"0 0 1120 ")
}
