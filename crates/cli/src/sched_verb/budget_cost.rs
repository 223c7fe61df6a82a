//! `stillcore sched budget --of cost|utilization`: how much more jobs may cost, and what load of a
//! core that is.

use crate::measure::table::table;
use sched::asked::Question;
use sched::{CostBudget, UNCHANGED_PPM};
use serde_json::json;

pub(super) fn json(budget: &CostBudget, test: &str, number: usize, question: &Question) -> String {
    let cores = budget.cores.iter().map(|core| {
        json!({
            "core": core.core,
            "factor_ppm": core.margin.factor_ppm,
            "utilization": core.utilization,
            "utilization_at_factor": core.at_margin,
        })
    });
    json!({
        "schema": SCHEMA,
        "of": "cost",
        "line": number,
        "test": test,
        "unit": question.unit.name(),
        "schedulable": !budget.late(),
        "factor_ppm": budget.factor_ppm(),
        "factors_ppm": question.in_order(&budget.tasks_ppm),
        "cores": cores.collect::<Vec<_>>(),
    })
    .to_string()
}

/// Factors of all costs and of each task's alone.
pub(super) fn text_of_costs(budget: &CostBudget, number: usize, question: &Question) -> String {
    let head = match budget.factor_ppm() {
        _ if budget.tasks_ppm.is_empty() => return format!("line {number}: no task\n"),
        None => format!("line {number}: late with any costs\n"),
        Some(ppm) => format!(
            "line {number}: {}costs times {}, the largest factor of all at which deadlines are met\n",
            if budget.late() { "not schedulable as it is; " } else { "" },
            factor(Some(ppm))
        ),
    };
    let rows = question.in_order(&budget.tasks_ppm).into_iter().enumerate();
    let rows = rows.map(|(place, ppm)| vec![place.to_string(), factor(ppm)]).collect();
    let foot = "factor of a task: its cost alone grows, and all of its core are still in time\n";
    head + &table(&["task", "factor"], rows) + foot
}

/// The load of every core at its own largest factor.
pub(super) fn text_of_utilization(budget: &CostBudget, number: usize) -> String {
    if budget.tasks_ppm.is_empty() {
        return format!("line {number}: no task\n");
    }
    if budget.cores.is_empty() {
        return format!("line {number}: not schedulable as it is\n");
    }
    let rows = budget.cores.iter().map(|core| {
        vec![
            core.core.to_string(),
            core.indices.len().to_string(),
            format!("{:.6}", core.utilization),
            core.at_margin.map_or_else(|| "-".to_owned(), |load| format!("{load:.6}")),
            factor(core.margin.factor_ppm),
        ]
    });
    let head = ["core", "tasks", "utilization", "at most", "factor"];
    format!("line {number}: utilization of each core with all its costs grown as far as deadlines are met\n")
        + &table(&head, rows.collect())
}

/// Millionths as a factor.
pub(super) fn factor(ppm: Option<u64>) -> String {
    ppm.map_or_else(|| "-".to_owned(), |ppm| format!("{}.{:06}", ppm / UNCHANGED_PPM, ppm % UNCHANGED_PPM))
}

pub(crate) const SCHEMA: &str = "stillcore.sched-budget/1";
