//! A matrix of exposure studies, kernels by ways of isolating: text, JSON, Markdown and one HTML
//! page.
//!
//! `analysis::exposure::changes` finds what changed from kernel to kernel. The reader decides what
//! of it is configuration; the options that differ are listed beside it.

mod markdown;
#[cfg(test)]
mod tests;
mod text;

use crate::exposure::{at_most, figure, operations, per_operation};
use analysis::exposure::{Change, Coefficient, Column, Direction, Row, RowState};
use model::kernel_options::OptionDifference;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use markdown::escaped;
pub use markdown::matrix_markdown;
pub use text::matrix_text;

/// Schema of `matrix.json`, and of the verb's object.
pub const MATRIX_SCHEMA: &str = "stillcore.lab-matrix/1";

/// A kernel of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixKernel {
    /// Its name, such as `6.1-rt`.
    pub name: String,
    /// `uname -r`.
    pub release: String,
    /// Package and version, of one fetched by name.
    pub package: Option<String>,
    /// Architecture.
    pub arch: String,
}

/// The matrix with its conditions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    /// Its directory as the user would type it.
    pub dir: String,
    /// What it was measured under: names and values in words.
    pub conditions: Vec<(String, String)>,
    /// The ways of isolating that it has, and what they are.
    pub profiles: Vec<(String, String)>,
    /// The kernels, oldest first.
    pub kernels: Vec<MatrixKernel>,
    /// In which options they differ; empty where the options are not known.
    pub options: Vec<OptionDifference>,
    /// One a kernel and profile, by profile, then as the kernels.
    pub columns: Vec<Column>,
    /// What changed from a kernel to the next of its flavour.
    pub changes: Vec<Change>,
}

impl Matrix {
    /// One object. Of a row only classes with events are written: what else the kernel records has
    /// 3/operations as its bound.
    pub fn json(&self) -> Value {
        let conditions: serde_json::Map<String, Value> =
            self.conditions.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let profiles: serde_json::Map<String, Value> =
            self.profiles.iter().map(|(name, title)| (name.clone(), json!(title))).collect();
        let columns: Vec<Column> = self.columns.iter().cloned().map(without_silence).collect();
        json!({
            "schema": MATRIX_SCHEMA,
            "conditions": conditions,
            "profiles": profiles,
            "kernels": self.kernels,
            "options": self.options,
            "columns": columns,
            "changes": self.changes,
        })
    }

    /// Every stressor, in the order of the catalogue as the studies have it.
    pub(crate) fn stressors(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in self.columns.iter().flat_map(|column| &column.rows) {
            if !names.contains(&row.stressor.as_str()) {
                names.push(&row.stressor);
            }
        }
        names.sort_unstable();
        names
    }

    /// The columns of a profile.
    pub(crate) fn of_profile<'a>(&'a self, profile: &'a str) -> impl Iterator<Item = &'a Column> {
        self.columns.iter().filter(move |column| column.profile == profile)
    }

    /// What is said of a stressor beside its table: each thing once, with the columns it is said
    /// of.
    pub(crate) fn remarks(&self, stressor: &str) -> Vec<String> {
        let mut remarks: Vec<(String, Vec<String>)> = Vec::new();
        for column in &self.columns {
            let Some(row) = column.rows.iter().find(|row| row.stressor == stressor) else { continue };
            let reason = row.reason.as_ref().map(|reason| format!("{}: {reason}", state(row.state)));
            let others = row.contaminated.iter().map(|what| format!("contaminated: {what}"));
            let weak = row.is_weak().then(|| {
                format!("weak, less than half of what was asked for: {} operations", operations(row))
            });
            for remark in reason.into_iter().chain(weak).chain(others) {
                let place = format!("{} {}", column.kernel, column.profile);
                match remarks.iter_mut().find(|(text, _)| *text == remark) {
                    Some((_, places)) => places.push(place),
                    None => remarks.push((remark, vec![place])),
                }
            }
        }
        remarks.into_iter().map(|(text, places)| format!("{} ({})", text, places.join(", "))).collect()
    }
}

/// What a reader has to know of a column before its values.
pub(crate) fn warning(column: &Column) -> Option<String> {
    if let Some(why) = &column.absent {
        return Some(format!("absent: {why}"));
    }
    if column.void {
        return Some(format!("void: {}", column.verdict.join("; ")));
    }
    let names: Vec<&str> = column.unsteady.iter().map(|class| class.name()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "left out, because the negative control changed it, so that the machine does it by itself: {}",
            names.join(", ")
        )
    })
}

fn without_silence(mut column: Column) -> Column {
    for row in &mut column.rows {
        row.classes.retain(|one| one.coefficient.events > 0);
    }
    column
}

fn state(state: RowState) -> &'static str {
    match state {
        RowState::Ok => "ok",
        RowState::Void => "void",
        RowState::Absent => "absent",
    }
}

/// What stands in a field of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Field {
    /// Events per operation: the sum of the classes that were seen.
    Seen(f64),
    /// No class was; the upper bound of all together.
    Unseen(f64),
    /// There is no value, and why in a word.
    Empty(&'static str),
}

/// What marks a value whose operations were less than half of those asked for.
pub(crate) fn mark(column: &Column, stressor: &str) -> &'static str {
    let is_weak = column.rows.iter().any(|row| row.stressor == stressor && row.is_weak());
    if is_weak { "*" } else { "" }
}

pub(crate) fn field(column: &Column, stressor: &str) -> Field {
    match column.rows.iter().find(|row| row.stressor == stressor) {
        Some(row) => of_row(row),
        None => Field::Empty(if column.absent.is_some() { "absent" } else { "-" }),
    }
}

fn of_row(row: &Row) -> Field {
    let Some(all) = row.all.filter(|_| row.state == RowState::Ok) else {
        return Field::Empty(state(row.state));
    };
    let seen: Vec<f64> = row
        .classes
        .iter()
        .filter(|one| one.coefficient.seen)
        .map(|one| one.coefficient.per_operation)
        .collect();
    if seen.is_empty() {
        // A background that happened to be lower meanwhile makes no smaller bound than nothing
        // counted would.
        Field::Unseen(all.high.max(3.0 / row.operations.max(1) as f64))
    } else {
        Field::Seen(seen.iter().sum())
    }
}

impl Field {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Seen(value) => per_operation(value),
            Self::Unseen(high) => format!("<={}", at_most(high)),
            Self::Empty(word) => word.to_owned(),
        }
    }
}

/// Each class that was seen, with its value; else the bound of all.
pub(crate) fn by_class(row: &Row) -> String {
    let seen = row.classes.iter().filter(|one| one.coefficient.seen);
    match of_row(row) {
        Field::Seen(_) => seen
            .map(|one| format!("{} {}", one.class, figure(&one.coefficient)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.text(),
    }
}

/// What happens on a measured CPU while nothing is done, events a second.
pub(crate) fn idle(column: &Column) -> String {
    let rates: Vec<String> =
        column.idle_per_s.iter().map(|(class, rate)| format!("{class} {}", per_operation(*rate))).collect();
    if rates.is_empty() { "nothing".to_owned() } else { rates.join(", ") }
}

/// A change in a line.
pub(crate) fn change(one: &Change) -> String {
    let value = |of: &Coefficient| {
        if of.seen {
            format!("{} ({})", crate::exposure::value(of), crate::exposure::range(of))
        } else {
            format!("<={}", at_most(of.high))
        }
    };
    format!(
        "{} {}: {} {}, {} {} ({})",
        one.stressor,
        one.class,
        one.from,
        value(&one.before),
        one.to,
        value(&one.after),
        one.profile
    )
}

/// The changes of one kind, in words.
pub(crate) const KINDS: [(Direction, &str); 4] = [
    (Direction::Gone, "seen before, not seen now"),
    (Direction::New, "not seen before, seen now"),
    (Direction::Less, "less than before"),
    (Direction::More, "more than before"),
];
