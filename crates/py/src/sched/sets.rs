//! Many task sets as one object: checked once, kept as the analysis takes them, seen from Python as
//! matrices or as JSON.

use super::arrays::matrix;
use crate::error::{Answer, Wrong};
use crate::parallel;
use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use sched::asked::{Question, Unit};
use sched::curves::declared::Sets;
use sched::generate::Generator;
use sched::locks::{Protocol, Semantics};
use sched::{
    BudgetTest, EdfJitter, Heuristic, MAX_CORES, MAX_NS, Order, System, SystemTask, Task, Test, equals,
    question, question_line,
};
use std::collections::BTreeMap;

/// Task sets.
#[pyclass(frozen, module = "stillcore._native")]
pub(crate) struct TaskSets {
    pub(super) questions: Vec<Question>,
}

impl TaskSets {
    /// Tasks of the largest set.
    pub(super) fn width(&self) -> usize {
        self.questions.iter().map(|question| question.system.tasks.len()).max().unwrap_or(0)
    }

    fn times<'py>(
        &self,
        py: Python<'py>,
        of: impl Fn(&SystemTask) -> u64,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.values(py, |question, task| question.in_unit(of(task)))
    }

    fn values<'py>(
        &self,
        py: Python<'py>,
        of: impl Fn(&Question, &SystemTask) -> u64,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        matrix(py, self.questions.len(), self.width(), |at| {
            let question = &self.questions[at];
            let values: Vec<_> = question.system.tasks.iter().map(|task| Some(of(question, task))).collect();
            question.in_order(&values)
        })
    }
}

#[pymethods]
impl TaskSets {
    fn __len__(&self) -> usize {
        self.questions.len()
    }

    fn __repr__(&self) -> String {
        format!("<stillcore.sched.TaskSets: {} sets of at most {} tasks>", self.questions.len(), self.width())
    }

    /// Some of the sets, by a range.
    fn part(&self, start: usize, end: usize) -> Self {
        let end = end.min(self.questions.len());
        Self { questions: self.questions[start.min(end)..end].to_vec() }
    }

    /// Units of the times, one a set.
    #[getter]
    fn units(&self) -> Vec<&'static str> {
        self.questions.iter().map(|question| question.unit.name()).collect()
    }

    /// Cores of each set.
    #[getter]
    fn cores(&self) -> Vec<u32> {
        self.questions.iter().map(|question| question.system.cores).collect()
    }

    #[getter]
    fn period<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.times(py, |task| task.task.period_ns)
    }

    #[getter]
    fn deadline<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.times(py, |task| task.task.deadline_ns)
    }

    #[getter]
    fn cost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.times(py, |task| task.task.cost_ns)
    }

    #[getter]
    fn jitter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.times(py, |task| task.task.jitter_ns)
    }

    #[getter]
    fn blocking<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.times(py, |task| task.task.blocking_ns)
    }

    #[getter]
    fn core<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        self.values(py, |_, task| u64::from(task.core))
    }

    /// A set a line of JSON, tasks by priority.
    fn to_jsonl(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let line = |question: &Question| {
                question_line(&question.system, question.unit).unwrap_or_default() + "\n"
            };
            self.questions.iter().map(line).collect()
        })
    }
}

/// Reads lines of JSON.
#[pyfunction]
pub(crate) fn sets_from_jsonl(py: Python<'_>, text: &str) -> PyResult<TaskSets> {
    let read = || -> Answer<TaskSets> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let one = |(at, line): (usize, &str)| {
            let place = |field: &str| format!("line {}, {field}", at + 1);
            question::read(line).map_err(|error| Wrong::new(place(&error.field), error.found, error.expected))
        };
        Ok(TaskSets { questions: lines.map(one).collect::<Answer<_>>()? })
    };
    Ok(py.detach(read)?)
}

/// Sets from matrices, a row a set, a column a task; `None` for what the question leaves out.
#[pyfunction]
pub(crate) fn sets_from_arrays(
    fields: BTreeMap<String, PyReadonlyArray2<'_, i64>>,
    cores: u32,
    unit: &str,
) -> PyResult<TaskSets> {
    let unit = Unit::by_name(unit).ok_or_else(|| Wrong::new("unit", "another", "ns, us or ms"))?;
    if !(1..=MAX_CORES).contains(&cores) {
        return Err(Wrong::new("cores", cores, format!("1 to {MAX_CORES}")).into());
    }
    let views: BTreeMap<&str, _> =
        fields.iter().map(|(name, array)| (name.as_str(), array.as_array())).collect();
    let shape = views["period"].dim();
    if let Some((name, view)) = views.iter().find(|(_, view)| view.dim() != shape) {
        let found = format!("shape {:?}", view.dim());
        return Err(Wrong::new(name, found, format!("{shape:?}, that of period")).into());
    }
    let value = |name: &str, set: usize, task: usize, least: i64, most: u64| -> Answer<Option<u64>> {
        let Some(view) = views.get(name) else { return Ok(None) };
        let value = view[[set, task]];
        let good = u64::try_from(value).ok().filter(|good| value >= least && *good <= most);
        let wrong = || Wrong::new(format!("{name}[{set}, {task}]"), value, format!("{least} to {most}"));
        good.map(Some).ok_or_else(wrong)
    };
    let one = |set: usize| -> Answer<Question> {
        let mut ranked = Vec::with_capacity(shape.1);
        for task in 0..shape.1 {
            let most = MAX_NS / unit.ns();
            let time = |name: &str, least: i64| {
                Ok::<_, Wrong>(value(name, set, task, least, most)?.map(|t| t * unit.ns()))
            };
            let period_ns = time("period", 1)?.unwrap_or_default();
            let parameters = Task {
                period_ns,
                deadline_ns: time("deadline", 1)?.unwrap_or(period_ns),
                cost_ns: time("cost", 1)?.unwrap_or_default(),
                jitter_ns: time("jitter", 0)?.unwrap_or(0),
                blocking_ns: time("blocking", 0)?.unwrap_or(0),
            };
            let core = value("core", set, task, 0, u64::from(cores) - 1)?.unwrap_or(0) as u32;
            let priority = value("priority", set, task, 0, u64::from(u32::MAX))?.unwrap_or(0);
            ranked.push((priority, task, SystemTask { core, ..parameters.into() }));
        }
        ranked.sort_by_key(|(priority, place, _)| (*priority, *place));
        let places = ranked.iter().map(|(_, place, _)| *place).collect();
        let priorities: Vec<u64> = ranked.iter().map(|one| one.0).collect();
        let equals = if views.contains_key("priority") { equals(&priorities) } else { Vec::new() };
        let tasks = ranked.into_iter().map(|(_, _, task)| task).collect();
        let placed = views.contains_key("core");
        Ok(Question { unit, system: System { cores, tasks }, places, placed, equals })
    };
    Ok(TaskSets { questions: (0..shape.0).map(one).collect::<Answer<_>>()? })
}

/// Sets `lo` to `hi - 1` of a specification.
#[pyfunction]
pub(crate) fn generate(
    py: Python<'_>,
    spec: &str,
    seed: u64,
    lo: u64,
    hi: u64,
    jitter_ns: u64,
    threads: Option<usize>,
) -> PyResult<TaskSets> {
    let sets: Sets = serde_json::from_str(spec).map_err(|error| {
        Wrong::new("spec", error, "what sched generate takes: tasks, periods, utilization, …")
    })?;
    let spec = sets.spec(sets.cores, sets.utilization.unwrap_or_default()).map_err(Wrong::from)?;
    let generator = Generator::new(sched::generate::Spec { jitter_ns, ..spec }, seed).map_err(Wrong::from)?;
    let n = super::study::length(lo, hi)?;
    let questions = parallel::each(py, n, threads, |at| {
        let system = generator.system(lo + at as u64).map_err(Wrong::from)?;
        let places = (0..system.tasks.len()).collect();
        let placed = generator.spec().per_core;
        Ok(Question { unit: Unit::Ns, places, placed, system, equals: Vec::new() })
    })?;
    Ok(TaskSets { questions })
}

/// A time with its unit, ns.
#[pyfunction]
pub(crate) fn read_time(text: &str) -> PyResult<u64> {
    Ok(sched::generate::read_time(text).map_err(Wrong::from)?)
}

/// Every name that an option knows.
#[pyfunction]
pub(crate) fn names() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([
        ("test", Test::ALL.map(Test::name).to_vec()),
        ("locks", Protocol::ALL.map(Protocol::name).to_vec()),
        ("order", Order::ALL.map(Order::name).to_vec()),
        ("partition", Heuristic::ALL.map(|(name, _)| name).to_vec()),
        ("semantics", Semantics::ALL.map(Semantics::name).to_vec()),
        ("edf_jitter", EdfJitter::ALL.map(|(name, _)| name).to_vec()),
        ("budget_test", BudgetTest::ALL.map(|(name, _)| name).to_vec()),
    ])
}

/// The thing of one name, or which names there are.
pub(super) fn by_name<T>(option: &str, name: &str, of: impl Fn(&str) -> Option<T>) -> Answer<T> {
    let known = names().remove(option).unwrap_or_default();
    of(name).ok_or_else(|| Wrong::new(option, format!("{name:?}"), format!("one of {}", known.join(", "))))
}
