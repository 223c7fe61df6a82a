//! Periodic jobs: least, mean, most and deviation of each quantity of the victim, as the paper's
//! figures plot them; one row per copy.

use super::time;
use crate::jobs::{self, Quantity};
use crate::text::layout::Page;
use crate::{Document, format};

/// Copies listed before the list is cut.
const ROWS: usize = 24;

pub(super) fn section(page: &mut Page, document: &Document) {
    let all: Vec<_> = jobs::processes(&document.run, &document.analysis.periodic).collect();
    let Some((record, victim)) = all.first() else { return };
    page.heading(&format!("JOBS   {}", jobs::what(&document.run, record)));
    page.item("  ", &jobs::how(record));
    let rows: Vec<_> = jobs::quantities(record, &victim.jobs).iter().map(row).collect();
    page.table(1, &["per job", "n", "min", "mean", "observed max", "std", "refused"], &rows);
    for remark in jobs::remarks(&document.run, record, &victim.jobs) {
        page.item("  ", &remark);
    }
    if all.len() == 1 {
        return;
    }
    let others = all.iter().map(|(record, process)| {
        let jobs = &process.jobs;
        let whole = |value: Option<f64>| time(value.map(|value| value.round() as i64));
        vec![
            process.thread.to_string(),
            jobs::place(record),
            format::count(jobs.n),
            format::count(record.missed()),
            whole(jobs.execution_ns.mean),
            time(jobs.execution_ns.observed_max),
            whole(jobs.cpu_ns.mean),
            time(jobs.response_ns.observed_max),
        ]
    });
    let rows: Vec<_> = others.collect();
    let head = [
        "copy",
        "on",
        "n",
        "missed",
        "execution: mean",
        "observed max",
        "CPU: mean",
        "response: observed max",
    ];
    page.table(2, &head, &rows[..rows.len().min(ROWS)]);
    if rows.len() > ROWS {
        page.item("  ", &format!("... {} more copies in analysis.json", rows.len() - ROWS));
    }
}

fn row(quantity: &Quantity) -> Vec<String> {
    let figure = &quantity.figure;
    let number = |value: Option<f64>| match value {
        None => "-".to_owned(),
        Some(value) if quantity.time => format::ns(value.round() as i64),
        Some(value) => format::short(value),
    };
    let whole = |value: Option<i64>| number(value.map(|value| value as f64));
    vec![
        quantity.name.clone(),
        figure.n.to_string(),
        whole(figure.min),
        number(figure.mean),
        whole(figure.observed_max),
        number(figure.std),
        if figure.refused > 0 { figure.refused.to_string() } else { String::new() },
    ]
}
