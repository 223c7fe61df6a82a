//! The page of a matrix: which operation costs how many events on which kernel; folded below a
//! heat-map of stressor by kernel for each way of isolating, what changed, and in what the kernels
//! differ.

use super::exposure::{HUES, STEPS, per_operation as per_operation_plot};
use super::front::{Front, PageNext};
use super::{environment, render};
use crate::Error;
use crate::exposure::{at_most, per_operation, range, value};
use crate::matrix::{Field, KINDS, Matrix, by_class, change, field, idle, mark, warning};
use crate::opening::exposure::{self as opening, Seen};
use crate::svg::IntervalRow;
use analysis::exposure::Column;
use minijinja::{Value, context};

/// The whole page.
pub fn matrix_page(matrix: &Matrix) -> Result<String, Error> {
    let environment = environment()?;
    let front = render(&environment, "front", context! { x => front(matrix).values() })?;
    let stressors = matrix.stressors();
    let maps = matrix.profiles.iter().map(|(profile, title)| {
        let columns: Vec<&Column> = matrix.of_profile(profile).collect();
        let rows = stressors.iter().map(|stressor| {
            let cells = columns.iter().map(|column| cell_context(column, stressor)).collect::<Vec<_>>();
            context! { name => *stressor, cells => cells }
        });
        let notes = columns.iter().map(|column| {
            let idle = column.absent.is_none().then(|| idle(column));
            context! { kernel => column.kernel.clone(), why => warning(column), idle => idle }
        });
        context! {
            profile => profile,
            title => title,
            kernels => columns.iter().map(|column| column.kernel.clone()).collect::<Vec<_>>(),
            rows => rows.collect::<Vec<_>>(),
            notes => notes.collect::<Vec<_>>(),
        }
    });
    let changes = KINDS.iter().filter_map(|(direction, title)| {
        let ours = matrix.changes.iter().filter(|one| one.direction == *direction);
        let lines: Vec<String> = ours.map(change).collect();
        (!lines.is_empty()).then(|| context! { title => *title, lines => lines })
    });
    let options = matrix.options.iter().map(|one| {
        let of = |name: &String| one.values.get(name).cloned().unwrap_or_else(|| "?".to_owned());
        let values = matrix.kernels.iter().map(|kernel| of(&kernel.name)).collect::<Vec<_>>();
        context! { option => one.option.clone(), why => one.why.clone(), values => values }
    });
    let remarks = stressors.iter().filter_map(|stressor| {
        let texts = matrix.remarks(stressor);
        (!texts.is_empty()).then(|| context! { name => *stressor, texts => texts })
    });
    let values = context! {
        front => Value::from_safe_string(front),
        conditions => matrix.conditions.clone(),
        kernels => super::value(&matrix.kernels),
        maps => maps.collect::<Vec<_>>(),
        changes => changes.collect::<Vec<_>>(),
        options => options.collect::<Vec<_>>(),
        remarks => remarks.collect::<Vec<_>>(),
        steps => STEPS.map(crate::exposure::per_operation),
    };
    render(&environment, "matrix", values)
}

/// Columns whose lack the opening names.
const TOLD: usize = 3;
/// Operations of the plot of the opening, and its rows.
const OPERATIONS: usize = 4;
const DRAWN: usize = 14;

fn front(matrix: &Matrix) -> Front {
    let lacking: Vec<String> = matrix
        .columns
        .iter()
        .filter_map(|column| Some(format!("{} {}: {}", column.kernel, column.profile, warning(column)?)))
        .collect();
    let more = lacking.len().saturating_sub(TOLD);
    let more = (more > 0).then(|| format!("{more} more columns below"));
    let standing = opening::standing(matrix).next().is_some();
    Front {
        word: if standing { "compared" } else { "void" }.to_owned(),
        tone: if standing { "plain" } else { "bad" },
        opening: opening::matrix_opening(matrix),
        lines: Vec::new(),
        warnings: lacking.into_iter().take(TOLD).chain(more).collect(),
        plot: plot(matrix),
        next: dearest(matrix).first().and_then(|name| next(matrix, name)),
    }
}

/// Operations that cost most on any kernel.
fn dearest(matrix: &Matrix) -> Vec<&str> {
    let most = |name: &str| -> Option<f64> {
        let rows = opening::standing(matrix).filter_map(|column| column.row(name)?.all);
        rows.filter(|all| all.seen).map(|all| all.per_operation).reduce(f64::max)
    };
    let stressors = matrix.stressors();
    let mut costs: Vec<(f64, &str)> =
        stressors.iter().filter_map(|name| Some((most(name)?, *name))).collect();
    costs.sort_by(|a, b| b.0.total_cmp(&a.0));
    costs.into_iter().map(|(_, name)| name).collect()
}

fn next(matrix: &Matrix, name: &str) -> Option<PageNext> {
    let rows = opening::standing(matrix).filter_map(|column| column.row(name));
    let seen = rows.filter_map(|row| Some(Seen { row, all: row.all.filter(|all| all.seen)? }));
    let class = seen.max_by(|a, b| a.all.per_operation.total_cmp(&b.all.per_operation))?.class()?;
    Some(PageNext {
        command: format!("stillcore explain {}", class.name()),
        why: format!("what {} events are and what removes them; {name} causes most", class.name()),
    })
}

/// The dearest operations, kernel by kernel; a hue is a kernel.
fn plot(matrix: &Matrix) -> Value {
    let mut rows = Vec::new();
    for name in dearest(matrix).into_iter().take(OPERATIONS) {
        for column in opening::standing(matrix) {
            let Some(all) = column.row(name).and_then(|row| row.all) else { continue };
            let kernel = matrix.kernels.iter().position(|kernel| kernel.name == column.kernel);
            let several = matrix.profiles.len() > 1;
            let profile = if several { format!(" {}", column.profile) } else { String::new() };
            rows.push(IntervalRow {
                label: format!("{name}: {}{profile}", column.kernel),
                point: all.seen.then_some(all.per_operation),
                interval: Some([all.low, all.high]),
                class: format!("k{}", kernel.unwrap_or_default() % HUES),
                note: if all.seen {
                    format!("{} ({})", value(&all), range(&all))
                } else {
                    format!("not seen, \u{2264} {}", at_most(all.high))
                },
            });
        }
    }
    let more = rows.len().saturating_sub(DRAWN);
    rows.truncate(DRAWN);
    let more = if more > 0 { format!(" {more} more below.") } else { String::new() };
    let caption = format!(
        "Events per operation of the dearest operations, all classes together, with 95 % intervals; a hue is a kernel.{more}"
    );
    per_operation_plot(&rows, caption)
}

fn cell_context(column: &Column, stressor: &str) -> Value {
    let classes = column.row(stressor).map(by_class).unwrap_or_default();
    match field(column, stressor) {
        Field::Seen(value) => {
            let step = STEPS.iter().filter(|step| value >= **step).count();
            let text = per_operation(value) + mark(column, stressor);
            context! { seen => true, step => step, text => text, classes => classes, void => column.void }
        }
        Field::Unseen(high) => {
            let text = format!("\u{2264}\u{a0}{}{}", at_most(high), mark(column, stressor));
            context! { seen => false, text => text, classes => "not seen", void => column.void }
        }
        Field::Empty(word) => context! { word => if word == "-" { "–" } else { word } },
    }
}
