//! Disturbed against both idle controls: what was told apart first, then what was not.

use analysis::shape::{Comparison, Verdict};
use minijinja::{Value, context};

use crate::{Document, format};

/// Rows shown; the rest is counted.
const ROWS: usize = 80;

pub(super) fn figures(document: &Document) -> Value {
    let mut all: Vec<&Comparison> = document.analysis.comparisons.iter().collect();
    all.sort_by_key(|comparison| order(comparison.verdict));
    let left_out = all.len().saturating_sub(ROWS);
    all.truncate(ROWS);
    context! { rows => all.into_iter().map(row).collect::<Vec<_>>(), left_out => left_out }
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
    let figure = |value: Option<f64>| value.map(|value| with_unit(value, &comparison.unit));
    let interval = |interval: Option<[f64; 2]>| {
        interval.map(|[low, high]| {
            format!("{} to {}", with_unit(low, &comparison.unit), with_unit(high, &comparison.unit))
        })
    };
    let (word, class) = match comparison.verdict {
        Verdict::Worse => ("worse", "bad"),
        Verdict::Better => ("better", "good"),
        Verdict::CannotTell => ("cannot tell", "dim"),
        Verdict::Withheld => ("withheld", "warn"),
    };
    context! {
        figure => comparison.figure.as_str(), cpu => comparison.cpu, sentence => comparison.sentence.as_str(),
        idle_before => figure(comparison.idle_before), disturbed => figure(comparison.disturbed),
        idle_after => figure(comparison.idle_after),
        versus_before => interval(comparison.versus_before), versus_after => interval(comparison.versus_after),
        verdict => word, class => class,
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    let text = match unit {
        "ns" => format::ns_f(value),
        "share" => format::share(value),
        "per s" => format::rate(value),
        other => format!("{value:.3} {other}"),
    };
    super::filters::typographic(&text)
}
