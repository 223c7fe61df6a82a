//! Cells → the exposure table: repetitions pooled, coefficients with their conditions, and whether
//! the study counts at all.
//!
//! A study carries controls: a positive one that must be seen on the measured CPU and a negative
//! one that must not. A class that the negative one changed is the machine's own activity and is
//! left out of every row (`unsteady`). If the positive one is not seen in the remaining classes,
//! the observer is blind. If no control gives a result, no row is valid. Several classes are tested
//! at once, so that their probabilities are adjusted (Holm, [`stats::rates::holm`]).

use super::coefficient::{Coefficient, coefficient};
use super::facts::{CellFacts, Count, SourceCount, Stretch};
use super::unsteady::{changed, steady};
use super::{ground, idle};
pub(super) use crate::exposure::row::{ClassCoefficient, Row, RowState, of_class};
use model::EventClass;
use model::stressor::StressorState;
use serde::{Deserialize, Serialize};
use stats::rates::holm;
use std::collections::{BTreeMap, BTreeSet};

/// A class counts as seen below this probability, adjusted for all classes of a cell.
const SEEN_P: f64 = 0.05;
/// The meaning of a positive control that is not seen, and of a negative one that is.
const NOT_SEEN: &str = "what is not seen here is not known to be absent";
const NOT_ITS_OWN: &str = "what is seen there need not come from the stressor";
/// Sources given for a row.
const SOURCES: usize = 3;

/// The expectation of a control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// The stressor.
    pub stressor: String,
    /// Whether it must be seen; else it must not be.
    pub seen: bool,
}

/// The exposure of the measured CPUs to a set of stressors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exposure {
    /// Whether the study as a whole is void.
    pub void: bool,
    /// Why, or why not, in words.
    pub verdict: Vec<String>,
    /// Classes whose rate a negative control changed, up or down: their events come from the
    /// machine's own doing.
    pub unsteady: Vec<EventClass>,
    /// The controls.
    pub controls: Vec<Control>,
    /// Events per second on each measured CPU during all idle controls, of the classes that
    /// occurred.
    pub idle_per_s: BTreeMap<EventClass, f64>,
    /// One a stressor, in the order of the cells, without the unsteady classes.
    pub rows: Vec<Row>,
}

/// The result of a control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// What was expected.
    #[serde(flatten)]
    pub expected: Expectation,
    /// Whether it was so; absent if unknown: the stressor could not be run here, is void, or did
    /// too little.
    pub held: Option<bool>,
    /// In words.
    #[serde(rename = "told")]
    pub sentence: String,
}

/// Draws the conclusions of a study.
pub fn conclude(cells: &[CellFacts], expected: &[Expectation]) -> Exposure {
    let cells = &ground::judge(cells);
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        if !names.contains(&cell.name.as_str()) {
            names.push(&cell.name);
        }
    }
    let of = |name: &str| cells.iter().filter(|cell| cell.name == name).collect::<Vec<_>>();
    let rows = |without: &[EventClass]| -> Vec<Row> {
        names.iter().map(|name| row(name, &of(name), without)).collect()
    };
    let whole = rows(&[]);
    let (positive, negative): (Vec<_>, Vec<_>) = expected.iter().partition(|control| control.seen);
    let mut controls: Vec<Control> = negative.iter().map(|expected| control(expected, &whole)).collect();
    let ours = whole.iter().filter(|row| negative.iter().any(|control| control.stressor == row.stressor));
    let unsteady: BTreeSet<EventClass> = ours.flat_map(changed).map(|one| one.class).collect();
    let unsteady: Vec<EventClass> = unsteady.into_iter().collect();
    // A cell whose guest gave no account does not know what it was to measure.
    let cpus = cells.iter().map(measured).find(|cpus| *cpus > 0).unwrap_or(1);
    let idle_per_s = idle::per_s(&whole, cpus);
    let rows = if unsteady.is_empty() { whole } else { rows(&unsteady) };
    controls.splice(0..0, positive.iter().map(|expected| control(expected, &rows)));
    let (void, verdict) = judge(&controls, &unsteady);
    Exposure { void, verdict, unsteady, controls, idle_per_s, rows }
}

fn measured(cell: &CellFacts) -> u64 {
    cell.measured.len() as u64
}

/// The row of a stressor's cells, without some classes.
fn row(stressor: &str, cells: &[&CellFacts], without: &[EventClass]) -> Row {
    let (whole, left_out): (Vec<&CellFacts>, Vec<&CellFacts>) =
        cells.iter().partition(|cell| cell.void.is_none());
    let absent = cells.iter().all(|cell| cell.record.state == StressorState::Absent);
    let state = match (whole.is_empty(), absent) {
        (false, _) => RowState::Ok,
        (true, true) => RowState::Absent,
        (true, false) => RowState::Void,
    };
    let why = left_out.iter().filter_map(|cell| cell.void.clone()).collect::<Vec<_>>();
    let mut failed = BTreeMap::new();
    for (name, count) in cells.iter().flat_map(|cell| &cell.record.ops_failed) {
        *failed.entry(name.clone()).or_default() += count;
    }
    let seconds =
        |of: &dyn Fn(&CellFacts) -> u64| whole.iter().map(|cell| of(cell) as f64 / 1e9).sum::<f64>();
    let (all, classes) = coefficients(&whole);
    let row = Row {
        stressor: stressor.to_owned(),
        state,
        reason: why.first().filter(|_| state != RowState::Ok).cloned(),
        cells: whole.len() as u64,
        asked: whole.iter().try_fold(0u64, |sum, cell| Some(sum.saturating_add(cell.record.ops_asked?))),
        operations: whole.iter().map(|cell| cell.record.ops_ok).fold(0, u64::saturating_add),
        failed,
        disturbed_s: seconds(&|cell| cell.disturbed.length_ns),
        idle_s: seconds(&|cell| cell.idle_before.length_ns + cell.idle_after.length_ns),
        all,
        classes,
        each: whole.iter().filter_map(|cell| each(cell, without)).collect(),
        sources: sources(&whole),
        idle_apart: together(whole.iter().flat_map(|cell| idle::apart(cell))),
        contaminated: together(cells.iter().flat_map(|cell| cell.changed.clone())),
        left_out: if state == RowState::Ok { why } else { Vec::new() },
        limits: together(cells.iter().flat_map(|cell| cell.limits.clone())),
    };
    steady(row, without, whole.first().map_or(1, |cell| measured(cell)))
}

/// Events per operation of one cell, without those of some classes.
fn each(cell: &CellFacts, without: &[EventClass]) -> Option<f64> {
    let (all, classes) = coefficients(&[cell]);
    let left_out = classes.iter().filter(|one| without.contains(&one.class));
    Some(all?.per_operation - left_out.map(|one| one.coefficient.per_operation).sum::<f64>())
}

/// Each text once.
fn together(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The coefficients of cells taken together: of all classes, and of each that every cell's kernel
/// records.
fn coefficients(cells: &[&CellFacts]) -> (Option<Coefficient>, Vec<ClassCoefficient>) {
    let Some(first) = cells.first() else { return (None, Vec::new()) };
    let operations = cells.iter().map(|cell| cell.record.ops_ok).fold(0, u64::saturating_add);
    let cpus = measured(first);
    let disturbed: Vec<&Stretch> = cells.iter().map(|cell| &cell.disturbed).collect();
    let idle: Vec<&Stretch> = cells.iter().flat_map(|cell| [&cell.idle_before, &cell.idle_after]).collect();
    let of = |count: &dyn Fn(&Stretch) -> Count| {
        let ((with, with_s), (without, without_s)) = (pooled(&disturbed, count), pooled(&idle, count));
        coefficient(operations, cpus, (&with, with_s), (&without, without_s))
    };
    let observable =
        EventClass::ALL.iter().filter(|class| cells.iter().all(|cell| cell.observable.contains(class)));
    let mut classes: Vec<ClassCoefficient> = observable
        .map(|&class| ClassCoefficient { class, coefficient: of(&|stretch| of_class(stretch, class)) })
        .collect();
    let adjusted = holm(&classes.iter().map(|one| one.coefficient.p).collect::<Vec<_>>());
    for (one, p) in classes.iter_mut().zip(adjusted) {
        one.coefficient.seen = p < SEEN_P && one.coefficient.per_operation > 0.0;
    }
    let mut all = of(&|stretch| stretch.all.clone());
    all.seen = classes.iter().any(|one| one.coefficient.seen);
    (Some(all), classes)
}

/// Counts and lengths, in s, of stretches together; they bunch as the worst does.
fn pooled(stretches: &[&Stretch], of: &dyn Fn(&Stretch) -> Count) -> (Count, f64) {
    let mut sum = Count::default();
    for count in stretches.iter().map(|stretch| of(stretch)) {
        sum.count += count.count;
        sum.dispersion = sum.dispersion.max(count.dispersion);
        count.by_cpu.iter().for_each(|(cpu, count)| *sum.by_cpu.entry(*cpu).or_default() += count);
    }
    (sum, stretches.iter().map(|stretch| stretch.length_ns as f64 / 1e9).sum())
}

/// The sources of most events.
fn sources(cells: &[&CellFacts]) -> Vec<SourceCount> {
    let mut sums: Vec<SourceCount> = Vec::new();
    let key = |one: &SourceCount| (one.class, one.label.clone(), one.who.clone(), one.site.clone());
    for source in cells.iter().flat_map(|cell| &cell.sources) {
        match sums.iter_mut().find(|sum| key(sum) == key(source)) {
            Some(sum) => sum.count += source.count,
            None => sums.push(source.clone()),
        }
    }
    sums.sort_by_key(|one| std::cmp::Reverse(one.count));
    sums.truncate(SOURCES);
    sums
}

/// Whether a control is as expected.
fn control(expected: &Expectation, rows: &[Row]) -> Control {
    let name = &expected.stressor;
    let row = rows.iter().find(|row| row.stressor == *name);
    let (held, sentence) = match row.map(|row| (row, row.all)) {
        None => (None, format!("{name} was not run")),
        Some((Row { state: RowState::Absent, reason, .. }, _)) => (
            None,
            format!("{name} cannot be run here: {}", reason.as_deref().unwrap_or("no reason is known")),
        ),
        Some((row, None)) => {
            (None, format!("{name} is void: {}", row.reason.as_deref().unwrap_or("no reason is known")))
        }
        Some((row, Some(all))) if expected.seen => {
            // One event per operation, which is less than any positive control causes, could have
            // been there.
            ((all.seen || all.high < 1.0).then_some(all.seen), seen_in_words(row, &all))
        }
        Some((row, Some(all))) => {
            let changed = changed(row);
            (Some(changed.is_empty()), changed_in_words(row, &all, &changed))
        }
    };
    Control { expected: expected.clone(), held, sentence }
}

fn seen_in_words(row: &Row, all: &Coefficient) -> String {
    if !all.seen {
        return unseen_in_words(row, all);
    }
    let seen = figures(row.classes.iter().filter(|one| one.coefficient.seen));
    format!("{} was seen: {seen} events per operation, of {} operations", row.stressor, row.operations)
}

fn changed_in_words(row: &Row, all: &Coefficient, changed: &[ClassCoefficient]) -> String {
    if changed.is_empty() {
        return unseen_in_words(row, all);
    }
    format!(
        "{}: {} events per operation, the idle background subtracted, of {} operations",
        row.stressor,
        figures(changed.iter()),
        row.operations
    )
}

fn unseen_in_words(row: &Row, all: &Coefficient) -> String {
    format!(
        "{} was not seen: {} events in {} operations, where the idle background gives {:.1}",
        row.stressor, all.events, row.operations, all.background
    )
}

fn figures<'a>(classes: impl Iterator<Item = &'a ClassCoefficient>) -> String {
    let each = classes.map(|one| format!("{} {:.3}", one.class, one.coefficient.per_operation));
    each.collect::<Vec<_>>().join(", ")
}

/// Whether the controls void the study, and what that means.
fn judge(controls: &[Control], unsteady: &[EventClass]) -> (bool, Vec<String>) {
    let of = |seen: bool| controls.iter().filter(move |control| control.expected.seen == seen);
    let sentences = |those: &dyn Fn(&&Control) -> bool| {
        controls.iter().filter(those).map(|control| control.sentence.as_str()).collect::<Vec<_>>().join("; ")
    };
    let mut void = Vec::new();
    if of(true).any(|control| control.held == Some(false)) {
        let failed = sentences(&|control| control.expected.seen && control.held == Some(false));
        void.push(format!("the study is void, because its positive control failed ({failed}): {NOT_SEEN}"));
    }
    for (seen, kind, meaning) in [(true, "positive", NOT_SEEN), (false, "negative", NOT_ITS_OWN)] {
        if of(seen).all(|control| control.held.is_none()) {
            let why = sentences(&|control| control.expected.seen == seen);
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            void.push(format!("the study is void, because it has no usable {kind} control{why}: {meaning}"));
        }
    }
    let mut verdict = void.clone();
    if !unsteady.is_empty() {
        let names: Vec<&str> = unsteady.iter().map(|class| class.name()).collect();
        verdict.push(format!(
            "left out of every row: {}, which the negative control changed ({}): {NOT_ITS_OWN}",
            names.join(", "),
            sentences(&|control| control.held == Some(false) && !control.expected.seen)
        ));
    }
    if void.is_empty() {
        let else_where = if unsteady.is_empty() { "" } else { " in the other classes" };
        let held = sentences(&|control| control.held == Some(true));
        verdict.push(format!("the controls are as expected{else_where}: {held}"));
    }
    (!void.is_empty(), verdict)
}

#[cfg(test)]
mod tests;
