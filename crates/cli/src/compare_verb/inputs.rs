//! Resolves arguments to runs: a run directory, a result file of another tool, a directory of
//! these, or `NAME=` before any of them.

use crate::failure::absent_run;
use analysis::groups::measured::{self, MeasuredRun};
use analysis::import;
use anyhow::Context;
use model::{Error, store};
use std::path::{Path, PathBuf};

/// Runs under one name.
pub(super) type Group = (String, Vec<MeasuredRun>);

/// The group that an argument names.
pub(super) fn group(argument: &str, series: Option<&str>) -> anyhow::Result<Group> {
    let (name, paths) = match argument.split_once('=') {
        // A path with an equals sign in it is a path.
        Some((name, paths)) if !Path::new(argument).exists() => (name.to_owned(), paths),
        _ => (label(Path::new(argument)), argument),
    };
    if name.is_empty() || paths.is_empty() {
        return Err(Error::invalid(
            "compare",
            format!("{argument:?}"),
            "NAME=PATH[,PATH] with a name and a path",
        )
        .into());
    }
    let mut runs = Vec::new();
    let listed = if Path::new(paths).exists() { vec![paths] } else { paths.split(',').collect() };
    for path in listed {
        if !Path::new(path).exists() {
            return Err(absent_run(Path::new(path)).into());
        }
        runs.extend(at(Path::new(path), series)?);
    }
    Ok((name, runs))
}

/// The configurations that arguments name; those of one name are one.
pub(super) fn groups(arguments: &[String], series: Option<&str>) -> anyhow::Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for argument in arguments {
        let (name, runs) = group(argument, series)?;
        let named = argument.starts_with(&format!("{name}="));
        match groups.iter_mut().find(|(known, _)| named && *known == name) {
            Some((_, known)) => known.extend(runs),
            None => groups.push((name, runs)),
        }
    }
    Ok(groups)
}

/// Every run that some arguments name, in their order.
pub(super) fn runs(arguments: &[String], series: Option<&str>) -> anyhow::Result<Vec<MeasuredRun>> {
    let mut all = Vec::new();
    for argument in arguments {
        all.extend(group(argument, series)?.1);
    }
    Ok(all)
}

fn label(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// One run, or those of a directory that is none itself.
fn at(path: &Path, series: Option<&str>) -> anyhow::Result<Vec<MeasuredRun>> {
    if !path.is_dir() || path.join(store::RUN).exists() {
        return Ok(vec![one(path, series)?]);
    }
    let entries = std::fs::read_dir(path).map_err(|source| Error::io("read", path, source))?;
    let mut inside: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| Error::io("read", path, source))?.path();
        let hidden = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && (entry.is_file() || entry.join(store::RUN).exists()) {
            inside.push(entry);
        }
    }
    inside.sort();
    if inside.is_empty() {
        return Err(Error::invalid(
            path.display(),
            "no run in it",
            "a run directory, or a directory of runs",
        )
        .into());
    }
    inside.iter().map(|path| one(path, series)).collect()
}

/// One run.
pub(super) fn one(path: &Path, series: Option<&str>) -> anyhow::Result<MeasuredRun> {
    let name = path.display().to_string();
    let read = if path.is_dir() {
        measured::read(path, name.clone()).map_err(anyhow::Error::from)
    } else {
        import::read(path, name.clone(), series).map_err(anyhow::Error::from)
    };
    // Errors of a run's own files name these, not the run.
    read.with_context(|| format!("{name} cannot be compared"))
}
