//! The page of a matrix: a heat-map of stressor by kernel for each way of isolating, what changed,
//! and in what the kernels differ.

use super::exposure::STEPS;
use super::{environment, render};
use crate::Error;
use crate::exposure::{at_most, per_operation};
use crate::matrix::{Field, KINDS, Matrix, by_class, change, field, idle, mark, warning};
use analysis::exposure::Column;
use minijinja::{Value, context};

/// The whole page.
pub fn matrix_page(matrix: &Matrix) -> Result<String, Error> {
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
        conditions => matrix.conditions.clone(),
        kernels => super::value(&matrix.kernels),
        maps => maps.collect::<Vec<_>>(),
        changes => changes.collect::<Vec<_>>(),
        options => options.collect::<Vec<_>>(),
        remarks => remarks.collect::<Vec<_>>(),
        steps => STEPS.map(crate::exposure::per_operation),
    };
    render(&environment()?, "matrix", values)
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
