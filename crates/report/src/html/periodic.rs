//! Periodic jobs: per process what a job took, over time, and what its wake-ups did (ERTS 2022,
//! Figs. 3, 8, 10 to 12).

use analysis::periodic::{OverTime, Process};
use minijinja::{Value, context};
use model::run::ProbeRecord;

use super::chart;
use super::filters::typographic;
use super::plot::plot;
use crate::jobs::{self, Quantity};
use crate::svg::{Course, Upright, course};
use crate::{Document, format};

/// Processes that get charts.
const CHARTS: usize = 4;
/// Processes that the table lists.
const LISTED: usize = 48;

pub(super) fn figures(document: &Document) -> Value {
    let all: Vec<_> = jobs::processes(&document.run, &document.analysis.periodic).collect();
    let unavailable = document.run.limits.iter().filter(|limit| limit.starts_with("counter "));
    let copies = all.iter().take(LISTED).map(|(record, process)| copy(record, process));
    context! {
        what => all.first().map(|(record, _)| jobs::what(&document.run, record)),
        empty => all.first().is_some_and(|(record, _)| record.jobs().is_some_and(|job| job.work == "empty")),
        processes => all.iter().take(CHARTS).map(|(record, process)| drawn(document, record, process)).collect::<Vec<_>>(),
        several => all.len() > 1,
        copies => copies.collect::<Vec<_>>(),
        unlisted => all.len().saturating_sub(LISTED),
        undrawn => all.len().saturating_sub(CHARTS),
        unavailable => unavailable.cloned().collect::<Vec<_>>(),
    }
}

/// The victim's jobs over time, and what kept each from its CPU.
pub(super) fn opening(document: &Document) -> Vec<Value> {
    let victim =
        jobs::processes(&document.run, &document.analysis.periodic).min_by_key(|(_, one)| one.thread);
    let Some(over) = victim.and_then(|(_, process)| process.over_time.as_ref()) else { return Vec::new() };
    let one = |label, style, slots| Course { label, style, slots };
    let times = [
        one("response", 1, &over.response_ns[..]),
        one("execution", 0, &over.execution_ns[..]),
        one("CPU time", 2, &over.cpu_ns[..]),
    ];
    let off = [one("off its CPU", 0, &over.off_cpu_ns[..])];
    vec![
        plot(
            course("oj", "Jobs over time", "time of a job", Upright::Log, &times),
            "Response from the intended release, execution and CPU time of each job.".to_owned(),
        ),
        plot(
            course("oo", "Time off the CPU", "execution less CPU time", Upright::Linear, &off),
            "How long each job was kept from its CPU.".to_owned(),
        ),
    ]
}

fn drawn(document: &Document, record: &ProbeRecord, process: &Process) -> Value {
    let rows = jobs::quantities(record, &process.jobs);
    context! {
        name => name(process),
        how => jobs::how(record),
        rows => rows.iter().map(row).collect::<Vec<_>>(),
        remarks => jobs::remarks(&document.run, record, &process.jobs),
        charts => process.over_time.as_ref().map(|over| charts(process, over)).unwrap_or_default(),
        file => record.file.as_str(),
    }
}

fn name(process: &Process) -> String {
    if process.thread == 0 { "victim".to_owned() } else { format!("copy {}", process.thread) }
}

fn charts(process: &Process, over: &OverTime) -> Vec<Value> {
    let (id, name) = (process.thread, name(process));
    let one = |label, style, slots| Course { label, style, slots };
    let times = [
        one("response", 1, &over.response_ns[..]),
        one("execution", 0, &over.execution_ns[..]),
        one("CPU time", 2, &over.cpu_ns[..]),
    ];
    let draw = |key: &str, what: &str, upright, courses: &[Course<'_>], caption: &str| {
        let svg = course(&format!("{key}{id}"), &format!("{what}, {name}"), what, upright, courses);
        context! { svg => chart(svg), caption => format!("{name}: {caption}") }
    };
    vec![
        draw(
            "pt",
            "time of a job",
            Upright::Log,
            &times,
            "response from the intended release, execution and CPU time of each job.",
        ),
        draw(
            "po",
            "execution less CPU time",
            Upright::Linear,
            &[one("off its CPU", 0, &over.off_cpu_ns)],
            "execution less CPU time (ERTS 2022, Fig. 8): what each job was kept from its CPU.",
        ),
        draw(
            "pd",
            "wake-up date off the grid",
            Upright::Linear,
            &[one("off the grid", 0, &over.wake_up_off_ns)],
            "date of the wake-up against the grid of nominal periods through the first (Fig. 10).",
        ),
        draw(
            "pf",
            "first difference less the period",
            Upright::Linear,
            &[one("first difference", 0, &over.difference_ns)],
            "distance of two wake-ups less the period (Figs. 11 and 12).",
        ),
    ]
}

fn row(quantity: &Quantity) -> Value {
    let figure = &quantity.figure;
    let number = |value: Option<f64>| match value {
        None => "\u{2013}".to_owned(),
        Some(value) if quantity.time => typographic(&format::ns(value.round() as i64)),
        Some(value) => format::short(value),
    };
    let whole = |value: Option<i64>| number(value.map(|value| value as f64));
    context! {
        name => quantity.name.as_str(), source => quantity.source.as_deref(), n => figure.n, min => whole(figure.min),
        mean => number(figure.mean), max => whole(figure.observed_max), std => number(figure.std),
        refused => figure.refused,
    }
}

fn copy(record: &ProbeRecord, process: &Process) -> Value {
    let jobs = &process.jobs;
    context! {
        name => name(process), place => jobs::place(record), n => jobs.n, missed => record.missed(),
        execution_ns => jobs.execution_ns.mean, execution_max_ns => jobs.execution_ns.observed_max,
        cpu_ns => jobs.cpu_ns.mean, off_cpu_max_ns => jobs.off_cpu_ns.observed_max,
        response_max_ns => jobs.response_ns.observed_max, wake_up_max_ns => jobs.wake_up_ns.observed_max,
        moved => jobs.moved, wrong => record.jobs().map(|job| job.outputs_wrong),
        drift => jobs.drift.as_ref().map(|drift| format!("{:+.3} µs/min", drift.us_per_min)),
    }
}
