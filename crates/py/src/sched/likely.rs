//! `probabilistic`: how probable a late job is, from all wake-ups of a run.

use super::arrays::{chances, matrix};
use super::sets::{TaskSets, by_name};
use crate::error::{Answer, Wrong, guarded};
use crate::parallel;
use analysis::latencies::{WindowLatencies, exceedance, latencies};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sched::probabilistic::{LatestError, OnCore, Releases, on_cores};
use sched::{Heuristic, Limits, Test};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a run says of releases, and the wake-ups of the window with the fewest.
fn measured(run: &Path) -> Answer<(Releases, u64)> {
    let windows = latencies(run)?;
    let Some(n) = windows.iter().map(WindowLatencies::n).min().filter(|n| *n > 0) else {
        let expected = "a run of assess or of measure wakeup";
        return Err(Wrong::new(run.display(), "no wake-up was measured", expected));
    };
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (latency_ns, count) in windows.iter().flat_map(|window| &window.counts) {
        *counts.entry(*latency_ns).or_default() += count;
    }
    let counts: Vec<(u64, u64)> = counts.into_iter().collect();
    let releases = Releases::new(exceedance(&windows), &counts).map_err(Wrong::sentence)?;
    Ok((releases, n))
}

/// Of every set what is known of each task, and of the run how many wake-ups it has, the latest of
/// them.
#[pyfunction]
pub(crate) fn probabilistic<'py>(
    py: Python<'py>,
    sets: &TaskSets,
    run: PathBuf,
    partition: Option<&str>,
    latest_ns: Option<u64>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let heuristic = partition.map(|name| by_name("partition", name, Heuristic::by_name)).transpose()?;
    let (releases, wakeups) = py.detach(|| guarded(&run, || measured(&run)))?;
    let answers = parallel::each(py, sets.questions.len(), threads, |at| {
        let question = &sets.questions[at];
        let by_priority = |error| Wrong::new(format!("sets[{at}]"), error, "priorities that differ");
        question.refuse_equals(Test::FpRta).map_err(by_priority)?;
        let mut question = question.clone();
        let placed = heuristic.map_or(Ok(true), |heuristic| question.place(heuristic));
        let overruled = |error| Wrong::new(format!("sets[{at}].core"), error, "no partition");
        if !placed.map_err(overruled)? {
            return Ok(Vec::new());
        }
        on_cores(&question.system, &releases, latest_ns, &[], Limits::default()).map_err(
            |error| match error {
                LatestError::Observed { latest_ns, longest_ns } => {
                    let expected = format!("at least {longest_ns}, which was observed");
                    Wrong::new("latest", format!("{latest_ns} ns, by default the shortest period"), expected)
                }
                other => Wrong::new(format!("sets[{at}]"), other, "a set of which something is known"),
            },
        )
    })?;
    let times = |of: &dyn Fn(&OnCore) -> Option<u64>| {
        matrix(py, answers.len(), sets.width(), |at| {
            sets.questions[at].in_order(&answers[at].iter().map(of).collect::<Vec<_>>())
        })
    };
    let shares = |of: &dyn Fn(&OnCore) -> Option<f64>| {
        chances(py, answers.len(), sets.width(), |at| {
            sets.questions[at].in_order(&answers[at].iter().map(of).collect::<Vec<_>>())
        })
    };
    let all = PyDict::new(py);
    all.set_item("budgets_ns", times(&|one| one.likelihood.budget_ns)?)?;
    all.set_item("releases", times(&|one| one.likelihood.releases)?)?;
    all.set_item("late_at_most", shares(&|one| Some(one.likelihood.late_at_most))?)?;
    all.set_item("late_at_most_if_stopped", shares(&|one| one.likelihood.late_at_most_if_stopped)?)?;
    all.set_item("late_estimate", shares(&|one| one.likelihood.late_estimate)?)?;
    all.set_item("wakeups", wakeups)?;
    all.set_item("longest_ns", releases.longest_ns)?;
    Ok(all)
}
