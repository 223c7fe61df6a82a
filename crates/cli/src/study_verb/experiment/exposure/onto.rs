//! `lab matrix --onto`: the rows of this call's stressors and profiles replace those of a table
//! that was measured before.

use crate::study_verb::profile;
use analysis::exposure::{Change, Column, graft};
use anyhow::Context;
use model::kernel_options::OptionDifference;
use model::{Cpus, Error, store};
use report::{Matrix, MatrixKernel};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The parts of `matrix.json` that are kept.
#[derive(Debug, Deserialize)]
struct Stored {
    schema: String,
    conditions: BTreeMap<String, String>,
    kernels: Vec<MatrixKernel>,
    options: Vec<OptionDifference>,
    columns: Vec<Column>,
    changes: Vec<Change>,
}

/// The command a table was made with: the one condition in which two calls differ.
const COMMAND: &str = "command";

/// The table of `file` with the rows of these stressors as they are in `fresh`. Kernels and
/// conditions have to be the same.
pub(super) fn onto(
    fresh: Matrix,
    file: &Path,
    stressors: &[String],
    measured: &Cpus,
) -> anyhow::Result<Matrix> {
    let stored: Stored = store::read_json(file)?;
    let place = file.display().to_string();
    if stored.schema != report::MATRIX_SCHEMA {
        return Err(Error::invalid(place, stored.schema, report::MATRIX_SCHEMA).into());
    }
    let differs = |what: &str, there: &str, here: &str| {
        let expected = "the kernels and conditions of the table that the rows go into";
        Error::invalid(&place, format!("{what} was {there} there and is {here} now"), expected)
    };
    for kernel in &fresh.kernels {
        let known = stored.kernels.iter().find(|one| one.name == kernel.name);
        if known != Some(kernel) {
            let there = known.map_or("not measured", |one| one.release.as_str());
            return Err(differs(&format!("kernel {}", kernel.name), there, &kernel.release).into());
        }
    }
    let whole = |column: &Column| column.rows.iter().all(|row| stressors.contains(&row.stressor));
    let ours = |column: &&Column| fresh.columns.iter().any(|new| new.profile == column.profile);
    let rows =
        if stored.columns.iter().filter(ours).all(whole) { "all".to_owned() } else { stressors.join(", ") };
    let which: Vec<&str> = fresh.profiles.iter().map(|(name, _)| name.as_str()).collect();
    let mut conditions = Vec::new();
    let mut command = None;
    for (name, value) in fresh.conditions.clone() {
        let there = stored.conditions.get(&name).cloned().unwrap_or_default();
        if name == COMMAND {
            command = Some((format!("rows of {rows} ({})", which.join(", ")), value));
        } else if there != value {
            return Err(differs(&name, &there, &value).into());
        }
        conditions.push((name, there));
    }
    // Earlier replacements in the table stay recorded.
    let known: Vec<String> = conditions.iter().map(|(name, _)| name.clone()).collect();
    conditions.extend(stored.conditions.into_iter().filter(|(name, _)| !known.contains(name)));
    conditions.retain(|(name, _)| command.as_ref().is_none_or(|(ours, _)| ours != name));
    conditions.extend(command);
    let (mut columns, mut changes) = (stored.columns, stored.changes);
    graft(&mut columns, &mut changes, &fresh.columns, stressors, measured.len() as u64)
        .with_context(|| place)?;
    let profiles = profile::titles(columns.iter().map(|column| column.profile.as_str()));
    Ok(Matrix {
        conditions,
        profiles,
        kernels: stored.kernels,
        options: stored.options,
        columns,
        changes,
        ..fresh
    })
}
