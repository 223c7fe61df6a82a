//! A machine, captured or this one, audited as `stillcore audit` does.

use crate::error::{Answer, Wrong};
use audit::{Catalogue, answer};
use machine::Root;
use model::Cpus;
use pyo3::prelude::*;
use std::path::PathBuf;

/// The answer, as JSON; `cpus` as a list such as 2-3.
#[pyfunction]
pub(crate) fn audit_machine(
    py: Python<'_>,
    root: PathBuf,
    cpus: Option<String>,
    catalogue: Option<PathBuf>,
) -> PyResult<String> {
    let render = || -> Answer<String> {
        let bad = |error| Wrong::new("cpus", error, "a list such as 2-3");
        let cpus = cpus.map(|list| list.parse::<Cpus>().map_err(bad)).transpose()?;
        let catalogue = catalogue.map_or_else(Catalogue::embedded, |folder| Catalogue::load(&folder))?;
        Ok(serde_json::to_string(&answer(&Root::open(&root)?, &catalogue, cpus)?)?)
    };
    Ok(py.detach(render)?)
}
