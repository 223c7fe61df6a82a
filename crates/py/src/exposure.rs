//! Exposure: events per operation from the runs of single stressors, as `stillcore study exposure`
//! concludes.

use crate::error::Answer;
use analysis::exposure::{CellFacts, Expectation, conclude, facts};
use pyo3::prelude::*;
use std::path::PathBuf;

/// What was counted of one cell, as JSON.
#[pyfunction]
pub(crate) fn exposure_facts(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let render = || -> Answer<String> { Ok(serde_json::to_string(&facts(&path)?)?) };
    Ok(py.detach(render)?)
}

/// The table of some cells, as JSON; `seen` and `unseen` name the stressors that are controls.
#[pyfunction]
pub(crate) fn exposure_table(
    py: Python<'_>,
    cells: Vec<String>,
    seen: Vec<String>,
    unseen: Vec<String>,
) -> PyResult<String> {
    let render = || -> Answer<String> {
        let cells =
            cells.iter().map(|cell| Ok(serde_json::from_str(cell)?)).collect::<Answer<Vec<CellFacts>>>()?;
        let expect = |seen: bool| move |stressor: &String| Expectation { stressor: stressor.clone(), seen };
        let expected: Vec<Expectation> =
            seen.iter().map(expect(true)).chain(unseen.iter().map(expect(false))).collect();
        Ok(serde_json::to_string(&conclude(&cells, &expected))?)
    };
    Ok(py.detach(render)?)
}
