//! Cells → the exposure table: repetitions pooled, coefficients with their conditions, and whether the study counts at all.
//!
//! A study carries controls: a positive one that must be seen on the measured CPU and a negative one that must not. Where they fail,
//! the observer is blind or the machine disturbs itself, and no other row means anything. Several classes are asked at once, so
//! that their probabilities are adjusted (Holm, [`crate::rates::holm`]).

use super::coefficient::{Coefficient, coefficient};
use super::facts::{CellFacts, Count, SourceCount, Stretch};
use crate::rates::{Rate, holm, p_value};
use model::EventClass;
use model::stressor::StressorState;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a class must fall below, all classes of a cell considered, to count as seen.
const SEEN_P: f64 = 0.05;
/// What idle before and idle after must fall below to count as different. A study asks this of every cell.
const APART_P: f64 = 0.01;
/// What a class of the negative control must fall below to void a study: a background is never quite even, and chance must not.
const CONTROL_P: f64 = 0.001;
/// Sources given for a row.
const SOURCES: usize = 3;

/// What is expected of a control.
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
    /// Whether the study as a whole says nothing.
    pub void: bool,
    /// Why, or why not, in words.
    pub verdict: Vec<String>,
    /// The controls.
    pub controls: Vec<Control>,
    /// One a stressor, in the order of the cells.
    pub rows: Vec<Row>,
}

/// What became of a control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// What was expected.
    #[serde(flatten)]
    pub expected: Expectation,
    /// Whether it was so; absent where nobody can tell: the stressor could not be run here, is void, or did too little.
    pub held: Option<bool>,
    /// In words.
    pub told: String,
}

/// Whether a stressor has coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowState {
    /// It has.
    Ok,
    /// It was run, and what was counted says nothing.
    Void,
    /// This kernel or machine lacks what it needs.
    Absent,
}

/// One stressor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name, and what was asked of it besides its own defaults.
    pub stressor: String,
    /// Whether there are coefficients.
    pub state: RowState,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Cells that it is made of.
    pub cells: u64,
    /// Operations that succeeded.
    pub operations: u64,
    /// Operations that failed, by errno name; what they did to the measured CPUs is in the counts too.
    pub failed: BTreeMap<String, u64>,
    /// Time of the operations, s.
    pub disturbed_s: f64,
    /// Time of the idle controls, s.
    pub idle_s: f64,
    /// Of all classes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<Coefficient>,
    /// By class that this kernel records, in the order of reports.
    pub classes: Vec<ClassCoefficient>,
    /// Events per operation of each cell by itself, to see whether they repeat.
    pub each: Vec<f64>,
    /// Who caused most events, the background's included.
    pub sources: Vec<SourceCount>,
    /// Where idle before and after do not agree; then the background is not known.
    pub idle_apart: Vec<String>,
    /// What was set otherwise afterwards: later cells measured another machine.
    pub contaminated: Vec<String>,
    /// Of some cells only: why they were left out.
    pub left_out: Vec<String>,
    /// What the measurement could not do.
    pub limits: Vec<String>,
}

/// The coefficient of one class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassCoefficient {
    /// The class.
    pub class: EventClass,
    /// Its coefficient.
    #[serde(flatten)]
    pub coefficient: Coefficient,
}

/// Draws the conclusions of a study.
pub fn conclude(cells: &[CellFacts], expected: &[Expectation]) -> Exposure {
    let mut rows: Vec<Row> = Vec::new();
    for cell in cells {
        if rows.iter().all(|row| row.stressor != cell.name) {
            let ours: Vec<_> = cells.iter().filter(|one| one.name == cell.name).collect();
            rows.push(row(&cell.name, &ours));
        }
    }
    let controls: Vec<Control> = expected.iter().map(|expected| control(expected, &rows)).collect();
    let (void, verdict) = judge(&controls);
    Exposure { void, verdict, controls, rows }
}

fn row(stressor: &str, cells: &[&CellFacts]) -> Row {
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
    Row {
        stressor: stressor.to_owned(),
        state,
        reason: why.first().filter(|_| state != RowState::Ok).cloned(),
        cells: whole.len() as u64,
        operations: whole.iter().map(|cell| cell.record.ops_ok).sum(),
        failed,
        disturbed_s: seconds(&|cell| cell.disturbed.length_ns),
        idle_s: seconds(&|cell| cell.idle_before.length_ns + cell.idle_after.length_ns),
        all,
        classes,
        each: whole.iter().filter_map(|cell| coefficients(&[cell]).0).map(|one| one.per_operation).collect(),
        sources: sources(&whole),
        idle_apart: together(whole.iter().flat_map(|cell| idle_apart(cell))),
        contaminated: together(cells.iter().flat_map(|cell| cell.changed.clone())),
        left_out: if state == RowState::Ok { why } else { Vec::new() },
        limits: together(cells.iter().flat_map(|cell| cell.limits.clone())),
    }
}

/// Each text once.
fn together(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The coefficients of cells taken together: of all classes, and of each that every cell's kernel records.
fn coefficients(cells: &[&CellFacts]) -> (Option<Coefficient>, Vec<ClassCoefficient>) {
    let Some(first) = cells.first() else { return (None, Vec::new()) };
    let operations: u64 = cells.iter().map(|cell| cell.record.ops_ok).sum();
    let cpus = first.measured.len() as u64;
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

fn of_class(stretch: &Stretch, class: EventClass) -> Count {
    stretch.classes.get(&class).cloned().unwrap_or_default()
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

/// The classes whose rates before and after differ by more than chance, in words.
fn idle_apart(cell: &CellFacts) -> Vec<String> {
    let (before, after) = (&cell.idle_before, &cell.idle_after);
    let cpus = cell.measured.len() as f64;
    let rate = |stretch: &Stretch, class: EventClass| {
        let count = of_class(stretch, class);
        Rate {
            count: count.count,
            seconds: stretch.length_ns as f64 / 1e9 * cpus,
            dispersion: count.dispersion,
        }
    };
    let classes: Vec<EventClass> =
        cell.observable.iter().copied().filter(|class| *class != EventClass::SelfCaused).collect();
    let pairs: Vec<_> = classes.iter().map(|&class| (rate(before, class), rate(after, class))).collect();
    let adjusted = holm(&pairs.iter().map(|(before, after)| p_value(before, after)).collect::<Vec<_>>());
    let apart = classes.iter().zip(pairs).zip(adjusted).filter(|(_, p)| *p < APART_P);
    let told = apart.map(|((class, (before, after)), _)| {
        format!("{class}: {:.1} a second before, {:.1} after", before.per_s(), after.per_s())
    });
    told.collect()
}

/// Whether a control is as expected.
fn control(expected: &Expectation, rows: &[Row]) -> Control {
    let name = &expected.stressor;
    let row = rows.iter().find(|row| row.stressor == *name);
    let (held, told) = match row.map(|row| (row, row.all)) {
        None => (None, format!("{name} was not run")),
        Some((Row { state: RowState::Absent, reason, .. }, _)) => (
            None,
            format!("{name} cannot be run here: {}", reason.as_deref().unwrap_or("no reason is known")),
        ),
        Some((row, None)) => {
            (None, format!("{name} is void: {}", row.reason.as_deref().unwrap_or("no reason is known")))
        }
        Some((row, Some(all))) => (held(expected.seen, row, &all), seen_in_words(row, &all)),
    };
    Control { expected: expected.clone(), held, told }
}

/// Whether what was counted is as expected; none where there were too few operations to tell.
fn held(seen: bool, row: &Row, all: &Coefficient) -> Option<bool> {
    if seen {
        // One event per operation, which is less than any positive control causes, could have been there.
        return (all.seen || all.high < 1.0).then_some(all.seen);
    }
    let adjusted = holm(&row.classes.iter().map(|one| one.coefficient.p).collect::<Vec<_>>());
    let more = |(one, p): (&ClassCoefficient, f64)| p < CONTROL_P && one.coefficient.per_operation > 0.0;
    Some(!row.classes.iter().zip(adjusted).any(more))
}

fn seen_in_words(row: &Row, all: &Coefficient) -> String {
    let classes = row.classes.iter().filter(|one| one.coefficient.seen);
    let seen: Vec<String> =
        classes.map(|one| format!("{} {:.3}", one.class, one.coefficient.per_operation)).collect();
    let name = &row.stressor;
    if all.seen {
        return format!(
            "{name} was seen: {} events per operation, of {} operations",
            seen.join(", "),
            row.operations
        );
    }
    format!(
        "{name} was not seen: {} events in {} operations, where the idle background gives {:.1}",
        all.events, row.operations, all.background
    )
}

/// Whether the controls void the study, and what that means.
fn judge(controls: &[Control]) -> (bool, Vec<String>) {
    let mut verdict = Vec::new();
    for (seen, kind, meaning) in [
        (true, "positive", "what is not seen here is not known to be absent"),
        (false, "negative", "what is seen here need not come from the stressor"),
    ] {
        let ours: Vec<&Control> = controls.iter().filter(|control| control.expected.seen == seen).collect();
        let failed: Vec<&str> = ours
            .iter()
            .filter(|control| control.held == Some(false))
            .map(|control| control.told.as_str())
            .collect();
        if !failed.is_empty() {
            verdict.push(format!(
                "the study is void, because its {kind} control failed ({}): {meaning}",
                failed.join("; ")
            ));
        } else if ours.iter().all(|control| control.held.is_none()) {
            let told: Vec<&str> = ours.iter().map(|control| control.told.as_str()).collect();
            let told = if told.is_empty() { String::new() } else { format!(" ({})", told.join("; ")) };
            verdict.push(format!(
                "the study is void, because it has no {kind} control that tells anything{told}: {meaning}"
            ));
        }
    }
    if verdict.is_empty() {
        let told: Vec<&str> =
            controls.iter().filter(|one| one.held.is_some()).map(|one| one.told.as_str()).collect();
        return (false, vec![format!("the controls are as expected: {}", told.join("; "))]);
    }
    (true, verdict)
}

#[cfg(test)]
mod tests;
