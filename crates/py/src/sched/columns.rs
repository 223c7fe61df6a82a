//! Sets as columns that Python holds: read where they lie, a set at a time.

use crate::error::{Answer, Wrong};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use sched::asked::Unit;
use sched::simple::{Column, Key, SimpleSet, SimpleTests, TaskColumns};
use sched::{Ask, Limits, MAX_TASKS, Test, Verdict, question};
use std::collections::BTreeMap;
use std::ops::Range;

/// Sets that one thread takes at a time.
const PART: usize = 256;
/// Sets between two checks for signals.
const ROUND: usize = 1 << 14;

/// What came out for some sets, a row a task.
struct Part {
    schedulable: Vec<bool>,
    rounds: Vec<u64>,
    response_times: Vec<i64>,
    /// 1 where a task was given up.
    undecided: Vec<i64>,
}

impl Part {
    fn with_room(sets: usize, rows: usize) -> Self {
        Self {
            schedulable: Vec::with_capacity(sets),
            rounds: Vec::with_capacity(sets),
            response_times: Vec::with_capacity(rows),
            undecided: Vec::with_capacity(rows),
        }
    }
}

/// The verdict on every set of some columns. A set is `width` rows, or the rows of one value of the
/// column `set`.
#[pyfunction]
pub(crate) fn analyze_columns<'py>(
    py: Python<'py>,
    columns: BTreeMap<String, PyReadonlyArray1<'py, i64>>,
    width: Option<usize>,
    test: &str,
    unit: &str,
    extra_jitter_ns: u64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let test = super::sets::by_name("test", test, Test::by_name)?;
    let ask = Ask { extra_jitter_ns, ..Ask::of(test) };
    let unit = Unit::by_name(unit).ok_or_else(|| Wrong::new("unit", "another", "ns, us or ms"))?;
    let rows = columns.values().next().map_or(0, |column| column.as_array().len());
    let mut all = TaskColumns::new(rows, unit);
    for (name, values) in &columns {
        let known = || Key::ALL.map(|(name, _)| name).join(", ");
        let key = Key::by_name(name);
        let key =
            key.ok_or_else(|| Wrong::new("columns", format!("{name:?}"), format!("some of {}", known())))?;
        let values = values
            .as_slice()
            .map_err(|_| Wrong::new(name, "values that do not lie one behind the other", "whole columns"))?;
        if !all.add(key, Column { values, present: None }) {
            return Err(Wrong::new(name, format!("{} rows", values.len()), format!("{rows}")).into());
        }
    }
    let sets = sets(&all, width)?;
    let pool = py.detach(|| crate::parallel::pool(threads))?;
    let mut whole = Part::with_room(sets.len(), rows);
    for some in sets.chunks(ROUND) {
        py.check_signals()?;
        let answer = |rows: &[Range<usize>]| answer(&ask, &all, rows);
        let parts: Vec<Answer<Part>> = py.detach(|| match &pool {
            Some(pool) => pool.install(|| some.par_chunks(PART).map(answer).collect()),
            None => some.chunks(PART).map(answer).collect(),
        });
        for part in parts {
            let Part { schedulable, rounds, response_times, undecided } = part?;
            whole.schedulable.extend(schedulable);
            whole.rounds.extend(rounds);
            whole.response_times.extend(response_times);
            whole.undecided.extend(undecided);
        }
    }
    let answer = PyDict::new(py);
    answer.set_item("schedulable", PyArray1::from_vec(py, whole.schedulable))?;
    answer.set_item("response_times", PyArray1::from_vec(py, whole.response_times))?;
    answer.set_item("undecided", PyArray1::from_vec(py, whole.undecided))?;
    answer.set_item("rounds", PyArray1::from_vec(py, whole.rounds))?;
    Ok(answer)
}

/// The rows of each set.
fn sets(columns: &TaskColumns<'_>, width: Option<usize>) -> Answer<Vec<Range<usize>>> {
    let rows = columns.rows();
    if let Some(width) = width {
        return Ok((0..rows).step_by(width.max(1)).map(|from| from..(from + width).min(rows)).collect());
    }
    let (mut from, mut last, mut sets) = (0, None, Vec::new());
    while from < rows {
        let (range, name) = columns.set_from(from);
        let name = name.ok_or_else(|| Wrong::new("columns", "no column set", "a set for every row"))?;
        if let Some(last) = last.filter(|&last| last >= name) {
            let what = format!("set {name} after set {last}");
            return Err(Wrong::new(format!("set[{from}]"), what, "rows in ascending order of the set"));
        }
        if range.len() > MAX_TASKS {
            return Err(Wrong::new(
                format!("set {name}"),
                format!("{} tasks", range.len()),
                format!("at most {MAX_TASKS}"),
            ));
        }
        last = Some(name);
        from = range.end;
        sets.push(range);
    }
    Ok(sets)
}

/// Answers some sets in turn.
fn answer(ask: &Ask, columns: &TaskColumns<'_>, sets: &[Range<usize>]) -> Answer<Part> {
    let rows = sets.iter().map(Range::len).sum();
    let mut part = Part::with_room(sets.len(), rows);
    let (mut set, mut tests) = (SimpleSet::default(), SimpleTests::default());
    for rows in sets {
        let taken = ask.is_simple() && columns.take(rows.clone(), &mut set);
        if taken && let Some(verdict) = tests.answer(ask, &mut set) {
            part.schedulable.push(verdict.schedulable);
            part.rounds.push(verdict.rounds);
            let time = |ns: &Option<u64>| ns.map_or(-1, |ns| columns.unit().of(ns) as i64);
            part.response_times.extend(verdict.response_times.iter().map(time));
            part.undecided.resize(part.response_times.len(), 0);
            continue;
        }
        answer_any(ask, columns, rows, &mut part)?;
    }
    Ok(part)
}

fn answer_any(ask: &Ask, columns: &TaskColumns<'_>, rows: &Range<usize>, part: &mut Part) -> Answer<()> {
    let place = || match columns.set_from(rows.start).1 {
        Some(name) => format!("set {name}"),
        None => format!("row {}", rows.start),
    };
    let mut question = columns
        .line(rows.clone())
        .and_then(question::read)
        .map_err(|error| Wrong::new(format!("{}, {}", place(), error.field), error.found, error.expected))?;
    let verdict: Verdict = ask
        .answer(&mut question, Limits::default())
        .map_err(|error| Wrong::new(place(), error, "what this test is for"))?;
    let priorities = question.priorities();
    part.schedulable.push(verdict.schedulable);
    part.rounds.push(verdict.rounds);
    for at in priorities {
        let time = verdict.response_times.get(at).copied().flatten();
        part.response_times.push(time.map_or(-1, |ns| columns.unit().of(ns) as i64));
        part.undecided.push(i64::from(verdict.undecided.contains(&at)));
    }
    Ok(())
}
