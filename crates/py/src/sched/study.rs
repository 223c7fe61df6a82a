//! A declared study in pieces: the verdicts of every curve on some sets of one point are the unit
//! of work, a pure function of the declaration, the seed and the numbers of the sets; the
//! conclusions are drawn from all of them at once.

use crate::error::{Answer, Wrong};
use crate::parallel;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray3};
use pyo3::prelude::*;
use sched::curves::conclude::conclude;
use sched::curves::declared::{Declared, DeclaredError};
use sched::curves::{CurveError, verdicts};
use sched::generate::Generator;

/// Sets that one thread takes at a time.
const PART: u64 = 256;

/// Reads a declaration, TOML or JSON, checks it and gives it as JSON with everything that it leaves
/// open.
#[pyfunction]
pub(crate) fn read_declaration(text: &str, is_toml: bool, place: &str) -> PyResult<String> {
    let expected = format!("a study, {}", sched::curves::declared::SCHEMA);
    let declared: Declared = if is_toml {
        toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.get(..start).unwrap_or_default().matches('\n').count();
            Wrong::new(format!("{place}, line {line}"), error.message().trim(), &expected)
        })?
    } else {
        serde_json::from_str(text).map_err(|error| Wrong::new(place, error, &expected))?
    };
    declared.check().map_err(|error| wrong(error, place))?;
    Ok(serde_json::to_string(&declared).map_err(Wrong::sentence)?)
}

fn wrong(error: DeclaredError, place: &str) -> Wrong {
    match error {
        DeclaredError::Field { field, found, expected } => {
            Wrong::new(format!("{place}, {field}"), found, expected)
        }
        DeclaredError::Generate(error) => error.into(),
    }
}

fn read(declared: &str) -> Answer<Declared> {
    serde_json::from_str(declared).map_err(|error| Wrong::new("spec", error, "a declared study"))
}

/// How many numbers from `lo` up to `hi`.
pub(super) fn length(lo: u64, hi: u64) -> Answer<usize> {
    let n = hi.checked_sub(lo).and_then(|n| usize::try_from(n).ok());
    n.ok_or_else(|| Wrong::new("hi", hi, format!("{lo}, which lo is, or more")))
}

/// The verdicts of all curves on the sets `lo` to `hi - 1` at one point of the axis:
/// `[curve, set]`.
#[pyfunction]
pub(crate) fn analyse_batch<'py>(
    py: Python<'py>,
    declared: &str,
    seed: u64,
    lo: u64,
    hi: u64,
    at: usize,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<bool>>> {
    let declared = read(declared)?;
    let curves = declared.curves().map_err(|error| wrong(error, "spec"))?;
    let points = declared.axis.values.len();
    let x = declared.axis.values.get(at);
    let x = *x.ok_or_else(|| {
        Wrong::new("at", at, format!("0 to {}, a point of the axis", points.saturating_sub(1)))
    })?;
    let generator = declared.spec(x).and_then(|spec| Generator::new(spec, seed)).map_err(Wrong::from)?;
    let parts = length(lo, hi)?.div_ceil(PART as usize);
    let parts = parallel::each(py, parts, threads, |part| {
        let start = lo + part as u64 * PART;
        let answer = verdicts(&generator, &curves, start..(start + PART).min(hi));
        answer.map_err(|error| match error {
            CurveError::Generate(error) => error.into(),
            CurveError::Refused { .. } => Wrong::new("curve", error, "tests that are for such sets"),
        })
    })?;
    let whole = |curve: usize| parts.iter().flat_map(move |part| part[curve].iter().copied());
    let all: Vec<bool> = (0..curves.len()).flat_map(whole).collect();
    PyArray1::from_vec(py, all).reshape([curves.len(), length(lo, hi)?])
}

/// The conclusions from the verdicts `[curve, point, set]`: what `sched study --json` prints.
#[pyfunction]
pub(crate) fn study_conclude(
    py: Python<'_>,
    declared: &str,
    verdicts: PyReadonlyArray3<'_, bool>,
) -> PyResult<String> {
    let declared = read(declared)?;
    let curves = declared.curves().map_err(|error| wrong(error, "spec"))?;
    let view = verdicts.as_array();
    let wanted = (curves.len(), declared.axis.values.len(), declared.sets as usize);
    if view.dim() != wanted {
        return Err(Wrong::new("verdicts", format!("shape {:?}", view.dim()), format!("{wanted:?}")).into());
    }
    let row = |curve: usize, point: usize| (0..wanted.2).map(|set| view[[curve, point, set]]).collect();
    let all: Vec<Vec<Vec<bool>>> =
        (0..wanted.0).map(|curve| (0..wanted.1).map(|point| row(curve, point)).collect()).collect();
    let json = py.detach(|| serde_json::to_string(&conclude(&declared, &curves, &all, Vec::new())));
    Ok(json.map_err(Wrong::sentence)?)
}
