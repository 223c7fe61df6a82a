//! `budget`: how much more release jitter, or cost, sets tolerate.

use super::arrays::{column, matrix};
use super::sets::{TaskSets, by_name};
use crate::error::Wrong;
use crate::parallel;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sched::asked::Question;
use sched::{BudgetTest, CostBudget, Heuristic, JitterBudget, Limits, System};

/// What both ask of every set.
struct Asked {
    test: BudgetTest,
    partition: Option<Heuristic>,
}

impl Asked {
    fn new(test: &str, partition: Option<&str>) -> Result<Self, Wrong> {
        let partition = partition.map(|name| by_name("partition", name, Heuristic::by_name));
        Ok(Self {
            test: by_name("budget_test", test, BudgetTest::by_name)?,
            partition: partition.transpose()?,
        })
    }

    /// The system with its cores; none where a task found none.
    fn placed(&self, question: &Question, at: usize) -> Result<Option<System>, Wrong> {
        let mut question = question.clone();
        if let Some(found) = question.system.beyond_independent() {
            return Err(Wrong::new(
                format!("sets[{at}]"),
                found,
                "a set without, whose budget is known how to find",
            ));
        }
        question
            .refuse_equals(self.test.verdict())
            .map_err(|error| Wrong::new(format!("sets[{at}]"), error, "priorities that differ"))?;
        let fits = self.partition.map_or(Ok(true), |heuristic| question.place(heuristic));
        let fits = fits.map_err(|error| Wrong::new(format!("sets[{at}].core"), error, "no partition"))?;
        Ok(fits.then_some(question.system))
    }
}

/// Jitter: of every set, of every task, and which is late first.
#[pyfunction]
pub(crate) fn budget_jitter<'py>(
    py: Python<'py>,
    sets: &TaskSets,
    test: &str,
    partition: Option<&str>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let asked = Asked::new(test, partition)?;
    let answers = parallel::each(py, sets.questions.len(), threads, |at| {
        match asked.placed(&sets.questions[at], at)? {
            Some(system) => JitterBudget::of(&system, asked.test, Limits::default()).map_err(Wrong::sentence),
            None => Ok(JitterBudget::not_placed()),
        }
    })?;
    let all = PyDict::new(py);
    all.set_item("budget_ns", column(py, answers.iter().map(|one| one.set_ns)))?;
    let limiting = answers.iter().enumerate();
    let limiting = limiting.map(|(at, one)| one.limiting.map(|task| sets.questions[at].places[task] as u64));
    all.set_item("limiting_task", column(py, limiting))?;
    let budgets = matrix(py, answers.len(), sets.width(), |at| {
        answers[at].tasks_ns.as_ref().map(|tasks| sets.questions[at].in_order(tasks)).unwrap_or_default()
    });
    all.set_item("budgets_ns", budgets?)?;
    Ok(all)
}

/// Cost: the largest factor, in millionths, of all costs of a set, and of each task's alone.
#[pyfunction]
pub(crate) fn budget_cost<'py>(
    py: Python<'py>,
    sets: &TaskSets,
    test: &str,
    partition: Option<&str>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let asked = Asked::new(test, partition)?;
    let answers = parallel::each(py, sets.questions.len(), threads, |at| {
        let question = &sets.questions[at];
        match asked.placed(question, at)? {
            Some(system) => CostBudget::of(&system, asked.test, Limits::default()).map_err(Wrong::sentence),
            None => Ok(CostBudget::not_placed(&question.system)),
        }
    })?;
    let all = PyDict::new(py);
    all.set_item("factor_ppm", column(py, answers.iter().map(CostBudget::factor_ppm)))?;
    let factors =
        matrix(py, answers.len(), sets.width(), |at| sets.questions[at].in_order(&answers[at].tasks_ppm));
    all.set_item("factors_ppm", factors?)?;
    Ok(all)
}
