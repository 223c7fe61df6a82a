//! Groups of runs against each other, as `stillcore compare` does it; and what other tools have
//! left behind as runs.

use crate::describe::probe;
use crate::error::{Answer, Wrong, guarded};
use analysis::groups::best::best;
use analysis::groups::chi2::chi2;
use analysis::groups::condition::{self, Condition, Judged};
use analysis::groups::figures::Figure;
use analysis::groups::measured::{self, MeasuredRun};
use analysis::groups::{self, Question, admitted};
use analysis::import;
use model::sample::ProbeKind;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use serde_json::{Value, json};
use stats::decide::Margin;
use std::path::PathBuf;

/// Values and how often each was seen.
type Counts<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u64>>);

/// Runs of one kind, whatever tool measured them.
#[pyclass(frozen, module = "stillcore._native")]
pub(crate) struct Runs {
    runs: Vec<MeasuredRun>,
}

/// Reads run directories and result files of other tools. `part`: of a file that holds several
/// series, which.
#[pyfunction]
pub(crate) fn load_runs(py: Python<'_>, paths: Vec<PathBuf>, part: Option<&str>) -> PyResult<Runs> {
    let one = |path: &PathBuf| -> Answer<MeasuredRun> {
        let name = path.display().to_string();
        guarded(path, || {
            if path.is_dir() { Ok(measured::read(path, name)?) } else { Ok(import::read(path, name, part)?) }
        })
    };
    let runs = py.detach(|| paths.iter().map(one).collect::<Answer<Vec<_>>>())?;
    if runs.is_empty() {
        return Err(Wrong::new("paths", "nothing", "a run directory or a result file at least").into());
    }
    Ok(Runs { runs })
}

#[pymethods]
impl Runs {
    fn __len__(&self) -> usize {
        self.runs.len()
    }

    /// What is known of a run but its samples, as JSON.
    fn about(&self, at: usize) -> PyResult<String> {
        let run = self.run(at)?;
        let window = |one: &measured::MeasuredWindow| {
            json!({
                "probe": one.probe,
                "phase": one.phase,
                "disturbed": one.disturbed,
                "cpus": one.cpus,
                "threads": one.threads,
                "period_ns": one.period_ns,
                "threshold_ns": one.threshold_ns,
                "policy": one.policy,
                "duration_ns": one.duration_ns,
                "missed_releases": one.missed,
                "lost_samples": one.lost,
                "n": one.samples.n(),
                "resolution_ns": one.samples.resolution_ns(),
                "beyond_bins": one.samples.beyond_bins(),
                "min_ns": one.samples.min(),
                "observed_max_ns": one.samples.max(),
            })
        };
        let object = json!({
            "name": run.name,
            "tool": run.tool,
            "kernel": run.kernel,
            "started_at": run.started_at,
            "cpu_model": run.cpu_model,
            "windows": run.windows.iter().map(window).collect::<Vec<_>>(),
        });
        Ok(object.to_string())
    }

    /// The distinct values of a window, ns, ascending, and how often each was seen.
    fn counts<'py>(&self, py: Python<'py>, at: usize, window: usize) -> PyResult<Counts<'py>> {
        let run = self.run(at)?;
        let window =
            run.windows.get(window).ok_or_else(|| Wrong::new("window", window, "one of the run's"))?;
        let (values, counts): (Vec<i64>, Vec<u64>) = py.detach(|| window.samples.steps()).into_iter().unzip();
        Ok((values.into_pyarray(py), counts.into_pyarray(py)))
    }
}

impl Runs {
    fn run(&self, at: usize) -> Answer<&MeasuredRun> {
        self.runs
            .get(at)
            .ok_or_else(|| Wrong::new("run", at, format!("0 to {}", self.runs.len().saturating_sub(1))))
    }
}

/// What is compared, as Python says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    probe: Option<String>,
    phase: Option<String>,
    figures: Vec<String>,
    margin_ns: Option<f64>,
    margin_share: Option<f64>,
    fail_if: Vec<String>,
    anyway: bool,
}

impl Asked {
    fn question(&self) -> Answer<(Question, Vec<Condition>)> {
        let figures = self.figures.iter().map(|name| figure("figures", name)).collect::<Answer<_>>()?;
        let condition =
            |text: &String| Condition::parse(text).map_err(|why| Wrong::sentence(why).at("fail_if"));
        let conditions = self.fail_if.iter().map(condition).collect::<Answer<Vec<_>>>()?;
        let question = Question {
            probe: self.probe.as_deref().map(probe).transpose()?,
            phase: self.phase.clone(),
            figures,
            more_figures: condition::named(&conditions),
            asked: condition::asked(&conditions),
            margin: Margin { ns: self.margin_ns, share: self.margin_share },
            whole: true,
            anyway: self.anyway,
        };
        Ok((question, conditions))
    }
}

fn figure(place: &str, name: &str) -> Answer<Figure> {
    Figure::parse(name).map_err(|why| Wrong::sentence(why).at(place))
}

/// Two groups side by side, as JSON: what `compare --json` prints.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, base: &Runs, other: &Runs, asked: Asked) -> PyResult<String> {
    let render = || -> Answer<String> {
        let (question, conditions) = asked.question()?;
        let comparison = groups::compare(&base.runs, &other.runs, &question).map_err(Wrong::sentence)?;
        let judged: Vec<Judged> = conditions.iter().map(|condition| condition.judge(&comparison)).collect();
        let mut answer = serde_json::to_value(comparison)?;
        answer["conditions"] = serde_json::to_value(judged)?;
        Ok(answer.to_string())
    };
    Ok(py.detach(render)?)
}

/// The published chi-square selection, a probe an entry, as JSON.
#[pyfunction]
pub(crate) fn compare_chi2(
    py: Python<'_>,
    reference: &Runs,
    observed: &Runs,
    asked: Asked,
) -> PyResult<String> {
    let render = || -> Answer<String> {
        let (question, _) = asked.question()?;
        let (matched, _) =
            admitted(&[&reference.runs, &observed.runs], &question).map_err(Wrong::sentence)?;
        let latencies = matched.iter().filter(|one| one.probe != ProbeKind::Noise);
        let mut all = Vec::new();
        for one in latencies {
            let selection = chi2(&one.groups[0], &one.groups[1]).ok_or_else(|| {
                Wrong::new(
                    "observed",
                    "no samples in it or in its reference, or more than a second between them",
                    "latencies",
                )
            })?;
            let mut answer = serde_json::to_value(selection)?;
            answer["probe"] = json!(one.probe);
            answer["phase"] = json!(one.phase);
            all.push(answer);
        }
        if all.is_empty() {
            return Err(Wrong::sentence("the method is one for latencies, and the runs share none"));
        }
        Ok(Value::Array(all).to_string())
    };
    Ok(py.detach(render)?)
}

/// Groups by their loss, as JSON: what `compare --best --json` prints.
#[pyfunction]
pub(crate) fn rank(
    py: Python<'_>,
    groups: Vec<(String, PyRef<'_, Runs>)>,
    loss: &str,
    asked: Asked,
) -> PyResult<String> {
    if groups.len() < 2 {
        return Err(Wrong::new("groups", format!("{} of them", groups.len()), "two or more to rank").into());
    }
    let groups: Vec<(String, Vec<MeasuredRun>)> =
        groups.into_iter().map(|(name, group)| (name, group.runs.clone())).collect();
    let render = || -> Answer<String> {
        let (question, _) = asked.question()?;
        let ranking = best(&groups, figure("loss", loss)?, &question).map_err(Wrong::sentence)?;
        Ok(serde_json::to_string(&ranking)?)
    };
    Ok(py.detach(render)?)
}
