//! Disturbed against both idle controls: what differs first, then what does not.

use analysis::compare::{Comparison, Verdict};
use minijinja::{Value, context};

use super::filters::typographic;
use crate::Document;
use crate::precision::{Precision, Quantity};
use crate::svg::{ForestRow, Room, forest};

/// Rows shown; the rest is counted.
const ROWS: usize = 48;
/// Rows of a chart.
const DRAWN: usize = 16;
/// Sentences; those of the others are in analysis.json.
const SENTENCES: usize = 24;

pub(super) fn figures(document: &Document) -> Value {
    let mut all: Vec<&Comparison> = document.analysis.comparisons.iter().collect();
    all.sort_by_key(|comparison| order(comparison.verdict));
    let left_out = all.len().saturating_sub(ROWS);
    all.truncate(ROWS);
    let charts = charts(&all);
    context! { charts => charts, sentences => SENTENCES, rows => all.into_iter().map(row).collect::<Vec<_>>(), left_out => left_out }
}

/// One forest plot per unit: each statistic against the nearer control, which decides.
fn charts(comparisons: &[&Comparison]) -> Vec<Value> {
    let of = |unit: &&str| {
        let ours = comparisons.iter().filter(|one| one.unit == *unit && nearer(one).is_some());
        let rows: Vec<ForestRow> = ours.take(DRAWN).map(|one| forest_row(one)).collect();
        let id = format!("cf-{}", unit.replace(' ', "-"));
        forest(&id, "Disturbed less the nearer idle control", unit, &rows, Room::Desk)
            .map(Value::from_safe_string)
    };
    ["ns", "share", "per s"].iter().filter_map(of).collect()
}

/// The difference to the nearer control, and its interval.
fn nearer(one: &Comparison) -> Option<(f64, Option<[f64; 2]>)> {
    let disturbed = one.disturbed?;
    let before = one.idle_before.map(|idle| (disturbed - idle, one.versus_before));
    let after = one.idle_after.map(|idle| (disturbed - idle, one.versus_after));
    before.into_iter().chain(after).min_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))
}

fn forest_row(one: &Comparison) -> ForestRow {
    let (point, interval) = nearer(one).unzip();
    let (word, class) = word(one.verdict);
    ForestRow {
        label: format!("CPU {}: {}", one.cpu, one.figure.replace(" per second", "")),
        point,
        interval: interval.flatten(),
        // What the controls differ by themselves is what this run cannot resolve.
        margin: one.idle_before.zip(one.idle_after).map(|(before, after)| (before - after).abs()),
        class,
        note: word.to_owned(),
    }
}

fn word(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Worse => ("worse", "bad"),
        Verdict::Better => ("better", "good"),
        Verdict::CannotTell => ("cannot tell", "dim"),
        Verdict::Withheld => ("withheld", "warn"),
    }
}

fn order(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Worse => 0,
        Verdict::Better => 1,
        Verdict::Withheld => 2,
        Verdict::CannotTell => 3,
    }
}

fn row(comparison: &Comparison) -> Value {
    let quantity = Quantity::of(&comparison.unit);
    let precision = Precision::of(comparison.versus_before.or(comparison.versus_after));
    let figure = |value: Option<f64>| value.map(|value| typographic(&precision.text(value, quantity)));
    let interval = |interval: Option<[f64; 2]>| {
        interval.map(|interval| {
            let precision = Precision::of(Some(interval));
            precision.range(interval, |precision, end| typographic(&precision.signed(end, quantity)))
        })
    };
    let (word, class) = word(comparison.verdict);
    context! {
        figure => comparison.figure.as_str(), cpu => comparison.cpu, sentence => comparison.sentence.as_str(),
        idle_before => figure(comparison.idle_before), disturbed => figure(comparison.disturbed),
        idle_after => figure(comparison.idle_after),
        versus_before => interval(comparison.versus_before), versus_after => interval(comparison.versus_after),
        verdict => word, class => class,
    }
}
