//! A run directory: what it says of itself, its tables, and the conclusions drawn from it, as
//! `stillcore report` draws them.

use crate::error::{Answer, Wrong, guarded};
use crate::events;
use crate::samples::{self, Wanted};
use crate::table::Table;
use model::events::EventCatalogue;
use model::run::{ProbeRecord, SCHEMA, TraceRecord};
use model::store;
use pyo3::prelude::*;
use report::{Document, TextOptions};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What of a run of an earlier schema has another form since.
#[derive(Serialize)]
struct Converted {
    schema: &'static str,
    probes: Vec<ProbeRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<TraceRecord>,
}

/// The text of a run's `run.json`, once it has been read as one, as it stands: in its order, and
/// with what a newer program may have added. Of a run of an earlier schema also the keys that have
/// another form since; what was not recorded then stays absent.
#[pyfunction]
pub(crate) fn read_run(py: Python<'_>, path: PathBuf) -> PyResult<(String, Option<String>)> {
    let read = || -> Answer<(String, Option<String>)> {
        model::run::stored::read_run(&path)?;
        let file = path.join(store::RUN);
        let text =
            std::fs::read_to_string(&file).map_err(|source| model::Error::io("read", &file, source))?;
        let run: model::Run = store::read_json(&file)?;
        if run.schema == SCHEMA {
            return Ok((text, None));
        }
        let trace = run.trace.filter(|trace| trace.snapshots.is_some());
        let converted = Converted { schema: SCHEMA, probes: run.probes, trace };
        Ok((text, Some(serde_json::to_string(&converted).map_err(Wrong::sentence)?)))
    };
    Ok(py.detach(read)?)
}

/// The samples of a run.
#[pyfunction]
pub(crate) fn read_samples(
    py: Python<'_>,
    path: PathBuf,
    probe: Option<String>,
    phase: Option<String>,
    cpu: Option<u32>,
    counted: bool,
) -> PyResult<Table> {
    let wanted = Wanted { probe, phase, cpu, counted };
    Ok(py.detach(|| guarded(&path, || samples::samples(&path, &wanted)))?)
}

/// The interference events of a run.
#[pyfunction]
pub(crate) fn read_events(py: Python<'_>, path: PathBuf, cpu: Option<u32>) -> PyResult<Table> {
    Ok(py.detach(|| guarded(&path, || events::events(&path, cpu)))?)
}

/// Everything that is concluded from a run.
#[pyclass(frozen, module = "stillcore._native")]
pub(crate) struct Conclusions {
    document: Document,
}

/// Draws the conclusions from the run's files; nothing is written.
#[pyfunction]
pub(crate) fn conclude(py: Python<'_>, path: PathBuf) -> PyResult<Conclusions> {
    Ok(py.detach(|| guarded(&path, || document(&path))).map(|document| Conclusions { document })?)
}

fn document(dir: &Path) -> Answer<Document> {
    let run = model::run::stored::read_run(dir)?;
    let machine = store::read_json(&dir.join(&run.machine_before))?;
    let findings = store::read_json(&dir.join(store::FINDINGS))?;
    let analysis = analysis::analyse(dir)?;
    let catalogue = EventCatalogue::embedded()?;
    Ok(Document::conclude(&dir.display().to_string(), run, machine, findings, analysis, &catalogue))
}

#[pymethods]
impl Conclusions {
    /// The content of `analysis.json`, as text.
    fn analysis_json(&self, py: Python<'_>) -> PyResult<String> {
        let render = || -> Answer<String> { Ok(self.document.analysis_json()?.to_string()) };
        Ok(py.detach(render)?)
    }

    /// The verdicts on the largest samples, as in the report's JSON, as text.
    fn verdicts_json(&self) -> PyResult<String> {
        let json = serde_json::to_string(&report::verdicts(&self.document)).map_err(Wrong::sentence);
        Ok(json?)
    }

    /// The report, one page without anything outside it.
    fn report_html(&self, py: Python<'_>) -> PyResult<String> {
        let page = || -> Answer<String> { Ok(report::page(&self.document)?) };
        Ok(py.detach(page)?)
    }

    /// What the command prints of the run.
    fn summary(&self, width: u16) -> String {
        report::summary(&self.document, TextOptions { color: false, width })
    }

    /// The run in a notebook: a fragment of HTML.
    fn notebook_html(&self) -> PyResult<String> {
        let fragment = || -> Answer<String> { Ok(report::notebook(&self.document)?) };
        Ok(fragment()?)
    }
}
