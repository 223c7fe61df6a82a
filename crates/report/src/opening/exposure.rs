//! The openings of exposure studies: which operations cost interference and which costs most, on
//! one machine and from kernel to kernel.

use analysis::exposure::{Change, Coefficient, Column, Direction, Row, RowState};
use model::EventClass;

use super::{Card, Opening};
use crate::exposure::{ExposureStudy, at_most, operations, range, value};
use crate::format;
use crate::matrix::Matrix;

/// An operation whose events were seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) row: &'a Row,
    pub(crate) all: Coefficient,
}

impl Seen<'_> {
    /// The class with most of its events.
    pub(crate) fn class(self) -> Option<EventClass> {
        let seen = self.row.classes.iter().filter(|one| one.coefficient.seen);
        let most = seen.max_by(|a, b| a.coefficient.per_operation.total_cmp(&b.coefficient.per_operation))?;
        Some(most.class)
    }
}

/// The operations that were seen, dearest first, and those that were not, weakest bound first.
pub(crate) fn seen(rows: &[Row]) -> (Vec<Seen<'_>>, Vec<Seen<'_>>) {
    let measured = rows.iter().filter(|row| row.state == RowState::Ok);
    let with = measured.filter_map(|row| Some(Seen { row, all: row.all? }));
    let (mut seen, mut unseen): (Vec<Seen<'_>>, Vec<Seen<'_>>) = with.partition(|one| one.all.seen);
    seen.sort_by(|a, b| b.all.per_operation.total_cmp(&a.all.per_operation));
    unseen.sort_by(|a, b| b.all.high.total_cmp(&a.all.high));
    (seen, unseen)
}

pub(crate) fn opening(study: &ExposureStudy) -> Opening {
    let exposure = &study.exposure;
    let (seen, unseen) = seen(&exposure.rows);
    let measured = format::plural((seen.len() + unseen.len()) as u64, "operation");
    let sentence = match seen.first() {
        _ if exposure.void => {
            "The controls are not as expected, so these counts say nothing of the operations.".to_owned()
        }
        Some(dearest) => {
            let class = dearest.class();
            let class = class.map_or_else(String::new, |class| format!(", most of them {}", class.name()));
            format!(
                "{} of {measured} cause interference; the dearest is {}: {} events per operation{class}.",
                seen.len(),
                dearest.row.stressor,
                value(&dearest.all)
            )
        }
        None if unseen.is_empty() => "No operation was measured.".to_owned(),
        None => format!("None of {measured} caused interference that was seen."),
    };
    let mut cards = Vec::new();
    if let Some(one) = seen.first() {
        cards.push(Card::of_one(
            "Most events per operation",
            value(&one.all),
            format!(
                "{}; 95 %: {}; n = {} operations",
                one.row.stressor,
                range(&one.all),
                operations(one.row)
            ),
        ));
    }
    if !(seen.is_empty() && unseen.is_empty()) {
        cards.push(Card::of_one(
            "Operations that interfere",
            format::count(seen.len() as u64),
            format!("of {}; {} caused none that was seen", seen.len() + unseen.len(), unseen.len()),
        ));
    }
    if let Some(one) = unseen.first() {
        cards.push(Card::of_one(
            "Bound of those that were not seen",
            format!("\u{2264} {}", at_most(one.all.high)),
            format!(
                "events per operation; {} has the weakest, of {} operations",
                one.row.stressor,
                operations(one.row)
            ),
        ));
    }
    Opening { sentence, cause: None, cards }
}

/// Operations of which no count says anything, in a line.
pub(crate) fn without(rows: &[Row]) -> Option<String> {
    let names = |state: RowState| -> Vec<&str> {
        rows.iter().filter(|row| row.state == state).map(|row| row.stressor.as_str()).collect()
    };
    let part = |names: Vec<&str>, word: &str| {
        (!names.is_empty()).then(|| format!("{} {word} ({})", names.len(), names.join(", ")))
    };
    let parts = [part(names(RowState::Void), "void"), part(names(RowState::Absent), "absent here")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Without a value: {}.", parts.join("; ")))
}

/// Columns whose counts say something.
pub(crate) fn standing(matrix: &Matrix) -> impl Iterator<Item = &Column> {
    matrix.columns.iter().filter(|column| column.absent.is_none() && !column.void)
}

pub(crate) fn matrix_opening(matrix: &Matrix) -> Opening {
    let stressors = matrix.stressors();
    let interferes = |name: &&&str| {
        let rows = standing(matrix).filter_map(|column| column.row(name));
        rows.into_iter().any(|row| row.all.is_some_and(|all| all.seen))
    };
    let interfering = stressors.iter().filter(interferes).count();
    let of = |directions: [Direction; 2]| -> Vec<&Change> {
        matrix.changes.iter().filter(|one| directions.contains(&one.direction)).collect()
    };
    let (rose, fell) = (of([Direction::More, Direction::New]), of([Direction::Less, Direction::Gone]));
    let kernels = format::plural(matrix.kernels.len() as u64, "kernel");
    let sentence = if standing(matrix).next().is_none() {
        "No column of the table has counts that say something.".to_owned()
    } else {
        format!(
            "Of {} on {kernels}, {interfering} cause interference on at least one; from a kernel to the next {} \
             coefficients rose and {} fell.",
            format::plural(stressors.len() as u64, "operation"),
            rose.len(),
            fell.len()
        )
    };
    let largest = |changes: &[&Change]| {
        let by = |one: &&&Change| (one.after.per_operation - one.before.per_operation).abs();
        let most = changes.iter().max_by(|a, b| by(a).total_cmp(&by(b)))?;
        Some(format!("; most: {} {}, {} to {}", most.stressor, most.class.name(), most.from, most.to))
    };
    let card = |what: &str, changes: &[&Change], note: &str| {
        let note = format!("{note}{}", largest(changes).unwrap_or_default());
        Card::of_one(what, format::count(changes.len() as u64), note)
    };
    let cards = vec![
        Card::of_one(
            "Operations that interfere",
            format::count(interfering as u64),
            format!("of {}, on at least one kernel", stressors.len()),
        ),
        card("Coefficients that rose", &rose, "or are new"),
        card("Coefficients that fell", &fell, "or are gone"),
    ];
    Opening { sentence, cause: None, cards }
}
