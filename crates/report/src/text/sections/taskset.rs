//! A task set: measured response times beside the calculated ones, in both metrics.

use super::time;
use crate::text::layout::Page;
use crate::{Document, format};
use analysis::taskset::{MeasuredTask, Spread};

pub(super) fn section(page: &mut Page, document: &Document) {
    let tasks = &document.analysis.taskset;
    let Some(first) = tasks.first() else { return };
    let burnt = first.task.slot_ns.map_or_else(
        || "CPU time".to_owned(),
        |slot| format!("slots of {} of wall-clock time", format::ns(slot as i64)),
    );
    page.heading(&format!("TASK SET   CPU {}, burning {burnt}", first.cpu));
    page.item("", "response from the release, beside the calculated R");
    let head = [
        "task",
        "prio",
        "T",
        "C",
        "R",
        "min",
        "median",
        "observed max",
        "jobs",
        "late",
        "missed",
        "preempted",
    ];
    let rows: Vec<_> = tasks.iter().enumerate().map(|(at, one)| ours(document, at, one)).collect();
    page.table(1, &head, &rows);
    page.item("", "from start to start and from start to end, as in IEEE Access 8 (2020), Table 7");
    let head = ["task", "P mean", "P max", "P min", "P sd", "J mean", "J max"];
    page.table(1, &head, &tasks.iter().map(their_periods).collect::<Vec<_>>());
    let head = ["task", "R mean", "R max", "R min", "R sd"];
    page.table(1, &head, &tasks.iter().map(their_responses).collect::<Vec<_>>());
    let short: u64 = tasks.iter().map(|one| one.figures.under_executed).fold(0, u64::saturating_add);
    if first.task.slot_ns.is_some() && short > 0 {
        let sentence = format!(
            "{short} jobs used less CPU time than their C: what preempted them ran inside their slots"
        );
        page.item("", &sentence);
    }
    page.item(
        "",
        "late: ended behind the deadline; missed: never served; the first job of each task is left out",
    );
}

fn ours(document: &Document, at: usize, one: &MeasuredTask) -> Vec<String> {
    let (task, figures) = (&one.task, &one.figures);
    let calculated = document.responses.get(at).copied().flatten();
    vec![
        task.name.clone(),
        one.priority.to_string(),
        format::ns_round(one.period_ns as f64),
        format::ns_round(task.cost_ns as f64),
        calculated.map_or_else(|| "> D".to_owned(), |ns| format::ns_round(ns as f64)),
        time(figures.response.min_ns),
        time(figures.response.median_ns),
        time(figures.response.observed_max_ns),
        format::count(figures.jobs),
        format::count(figures.late),
        format::count(figures.missed),
        format::count(figures.preemptions),
    ]
}

fn their_periods(one: &MeasuredTask) -> Vec<String> {
    let jitter = &one.figures.jitter;
    let mut row = spread(one, &one.figures.period);
    row.extend([mean(jitter), time(jitter.observed_max_ns)]);
    row
}

fn their_responses(one: &MeasuredTask) -> Vec<String> {
    spread(one, &one.figures.response_from_start)
}

fn spread(one: &MeasuredTask, spread: &Spread) -> Vec<String> {
    let sd = if spread.n < 2 { "-".to_owned() } else { format::ns_f(spread.sd_ns) };
    vec![one.task.name.clone(), mean(spread), time(spread.observed_max_ns), time(spread.min_ns), sd]
}

fn mean(spread: &Spread) -> String {
    if spread.n == 0 { "-".to_owned() } else { format::ns_f(spread.mean_ns) }
}
