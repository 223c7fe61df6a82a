//! `stillcore sched budget --of cost|utilization`: how much more jobs may cost, and what load of a core that is.

use super::budget::SCHEMA;
use crate::measure::table::table;
use sched::question::Question;
use sched::{CostMargin, Limits, System, TaskError, UNCHANGED_PPM, cost_margin, cost_margin_edf, with_costs};
use serde_json::json;

/// What one core tolerates.
struct Core {
    number: usize,
    /// Its tasks, by priority.
    indices: Vec<usize>,
    margin: CostMargin,
    /// Load as given, and with all costs at the largest factor.
    utilization: f64,
    at_margin: Option<f64>,
}

/// What a set tolerates.
pub(super) struct CostBudget {
    cores: Vec<Core>,
    /// Of every task, by priority.
    tasks: Vec<Option<u64>>,
}

impl CostBudget {
    /// Core by core.
    pub(super) fn of(system: &System, test: &str) -> Result<Self, TaskError> {
        let mut budget = Self { cores: Vec::new(), tasks: vec![None; system.tasks.len()] };
        for (number, indices) in system.by_core().into_iter().enumerate() {
            if indices.is_empty() {
                continue;
            }
            let set = system.set_of(&indices)?;
            let margin = match test {
                "fp-rta" => cost_margin(&set, Limits::default()),
                _ => cost_margin_edf(&set, Limits::default()),
            };
            for (&index, factor) in indices.iter().zip(&margin.per_task_ppm) {
                budget.tasks[index] = *factor;
            }
            let grown = margin.factor_ppm.and_then(|factor| with_costs(&set, None, factor));
            let at_margin = grown.map(|set| set.utilization());
            budget.cores.push(Core { number, indices, margin, utilization: set.utilization(), at_margin });
        }
        Ok(budget)
    }

    /// A set of which some task found no core.
    pub(super) fn not_placed(system: &System) -> Self {
        Self { cores: Vec::new(), tasks: vec![None; system.tasks.len()] }
    }

    /// The largest factor of all costs: the least core counts.
    fn factor_ppm(&self) -> Option<u64> {
        self.cores.iter().map(|core| core.margin.factor_ppm).min().flatten()
    }

    /// Whether the set is late as given.
    pub(super) fn late(&self) -> bool {
        !self.tasks.is_empty() && self.factor_ppm().is_none_or(|factor| factor < UNCHANGED_PPM)
    }

    fn in_order(&self, question: &Question) -> Vec<Option<u64>> {
        let mut ordered: Vec<_> = question.places.iter().zip(&self.tasks).collect();
        ordered.sort_by_key(|(place, _)| **place);
        ordered.into_iter().map(|(_, factor)| *factor).collect()
    }

    pub(super) fn json(&self, test: &str, number: usize, question: &Question) -> String {
        let cores = self.cores.iter().map(|core| {
            json!({
                "core": core.number,
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
            "schedulable": !self.late(),
            "factor_ppm": self.factor_ppm(),
            "factors_ppm": self.in_order(question),
            "cores": cores.collect::<Vec<_>>(),
        })
        .to_string()
    }

    /// Factors of all costs and of each task's alone.
    pub(super) fn text_of_costs(&self, number: usize, question: &Question) -> String {
        let head = match self.factor_ppm() {
            _ if self.tasks.is_empty() => return format!("line {number}: no task\n"),
            None => format!("line {number}: late with any costs\n"),
            Some(ppm) => format!(
                "line {number}: {}costs times {}, the largest factor of all at which deadlines are met\n",
                if self.late() { "not schedulable as it is; " } else { "" },
                factor(Some(ppm))
            ),
        };
        let rows = self.in_order(question).into_iter().enumerate();
        let rows = rows.map(|(place, ppm)| vec![place.to_string(), factor(ppm)]).collect();
        let foot = "factor of a task: its cost alone grows, and all of its core are still in time\n";
        head + &table(&["task", "factor"], rows) + foot
    }

    /// The load of every core at its own largest factor.
    pub(super) fn text_of_utilization(&self, number: usize) -> String {
        if self.tasks.is_empty() {
            return format!("line {number}: no task\n");
        }
        if self.cores.is_empty() {
            return format!("line {number}: not schedulable as it is\n");
        }
        let rows = self.cores.iter().map(|core| {
            vec![
                core.number.to_string(),
                core.indices.len().to_string(),
                format!("{:.6}", core.utilization),
                core.at_margin.map_or_else(|| "-".to_owned(), |load| format!("{load:.6}")),
                factor(core.margin.factor_ppm),
            ]
        });
        let head = ["core", "tasks", "utilization", "at most", "factor"];
        format!(
            "line {number}: utilization of each core with all its costs grown as far as deadlines are met\n"
        ) + &table(&head, rows.collect())
    }
}

/// Millionths as a factor.
fn factor(ppm: Option<u64>) -> String {
    ppm.map_or_else(|| "-".to_owned(), |ppm| format!("{}.{:06}", ppm / UNCHANGED_PPM, ppm % UNCHANGED_PPM))
}
