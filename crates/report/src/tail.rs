//! Estimates of tails in words: the verdict, its reasons, and what it cannot hold.

use analysis::tail::{Check, FARTHEST, Level, Tail};

use crate::format;
use crate::precision::{Precision, Quantity, times};

/// Which window it is of.
pub(crate) fn window(tail: &Tail) -> String {
    let thread = if tail.thread > 0 { format!(", thread {}", tail.thread) } else { String::new() };
    format!("{}, phase {}, CPU {}{thread}", tail.probe.name(), tail.phase, tail.cpu)
}

/// The verdict in a line.
pub(crate) fn verdict(tail: &Tail) -> String {
    match (tail.estimated, tail.levels.last()) {
        (true, Some(last)) => {
            let interval = last.interval_ns().map(format::ns_f);
            format!(
                "estimate: once in {} releases {} or more (95 %: {} to {})",
                power(last.releases),
                format::ns_f(last.pareto_ns.max(last.maxima_ns)),
                interval[0],
                interval[1]
            )
        }
        _ => format!("refused: {}", tail.reasons.join("; ")),
    }
}

/// What no fit can see, with the numbers at hand.
pub(crate) fn caveats(tail: &Tail) -> Vec<String> {
    let holds = if tail.estimated { "It holds while all goes on as it did. " } else { "" };
    vec![
        format!(
            "{holds}A mechanism that did not come in these {} releases (an SMI, a rare lock) may come once in {} releases or more rarely for \
             all they show (95 %, {:.1e} a release), and can take any time.",
            format::count(tail.n),
            power(1.0 / tail.unseen_rate.max(f64::MIN_POSITIVE)),
            tail.unseen_rate
        ),
        format!(
            "Nothing is estimated beyond {FARTHEST} times the releases measured, and nothing here is a bound."
        ),
    ]
}

/// The table of levels: its head and its rows.
pub(crate) const HEAD: [&str; 5] = ["once in", "excesses (GPD)", "95 %", "block maxima (GEV)", "95 %"];

/// One row of it.
pub(crate) fn row(level: &Level) -> Vec<String> {
    let value = |ns: f64, interval| Precision::of(Some(interval)).text(ns, Quantity::Time);
    vec![
        power(level.releases),
        value(level.pareto_ns, level.pareto_interval_ns),
        times(level.pareto_interval_ns),
        value(level.maxima_ns, level.maxima_interval_ns),
        times(level.maxima_interval_ns),
    ]
}

/// A check: its name, statistic, probability, and what came of it.
pub(crate) fn check(check: &Check) -> [String; 4] {
    let dash = || "-".to_owned();
    // Those of the largest sample are latencies.
    let statistic = |value: f64| {
        if check.name.starts_with("largest") { format::ns_f(value) } else { format!("{value:.3}") }
    };
    let p = |p: f64| if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") };
    let verdict = match (check.p, check.passed) {
        (None, _) => "too little to say",
        (_, true) => "passed",
        (_, false) => "failed",
    };
    [
        check.name.clone(),
        check.statistic.map_or_else(dash, statistic),
        check.p.map_or_else(dash, p),
        verdict.to_owned(),
    ]
}

/// A fit in words, one sentence each.
pub(crate) fn fits(tail: &Tail) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(fit) = &tail.pareto {
        sentences.push(format!(
            "generalised Pareto above {}: {} samples in {} clusters (extremal index {:.2}), shape {}, scale {}",
            format::ns(fit.threshold_ns),
            format::count(fit.exceedances),
            format::count(fit.clusters),
            fit.theta,
            shape(fit.law.shape, fit.shape_interval),
            format::ns_f(fit.law.scale)
        ));
    }
    if let Some(fit) = &tail.maxima {
        sentences.push(format!(
            "extreme values of {} blocks of {} releases: shape {}, location {}, scale {}",
            format::count(fit.blocks),
            format::count(fit.block),
            shape(fit.law.shape, fit.shape_interval),
            format::ns_f(fit.law.location),
            format::ns_f(fit.law.scale)
        ));
    }
    sentences
}

/// A shape with its interval.
fn shape(value: f64, interval: [f64; 2]) -> String {
    let precision = Precision::of(Some(interval));
    let value = precision.signed(value, Quantity::Number);
    format!("{value} ({})", precision.signed_range(interval, Quantity::Number))
}

/// `3.0e7`, or a count that is short enough.
pub(crate) fn power(value: f64) -> String {
    if value < 1e6 { format::count(value.round() as u64) } else { format!("{value:.1e}") }
}
