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

/// What arguments name.
#[derive(Default)]
pub(super) struct Runs {
    pub(super) runs: Vec<MeasuredRun>,
    /// What lies in a directory of runs and is neither a run nor a result of a known tool.
    pub(super) left_out: Vec<PathBuf>,
}

/// How many of these a note names.
const NAMED: usize = 5;

/// The note about what was left out.
pub(super) fn left_out(paths: &[PathBuf]) -> Option<String> {
    let mut names: Vec<String> =
        paths.iter().take(NAMED).map(|path| model::foreign::in_a_line(&path.to_string_lossy())).collect();
    match paths.len().saturating_sub(NAMED) {
        0 => {}
        more => names.push(format!("and {more} more")),
    }
    (!paths.is_empty()).then(|| {
        format!("left out, being neither a run nor the result of a tool that is known: {}", names.join(", "))
    })
}

/// The group that an argument names, and its name.
pub(super) fn group(argument: &str, series: Option<&str>) -> anyhow::Result<(String, Runs)> {
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
    let mut found = Runs::default();
    let listed = if Path::new(paths).exists() { vec![paths] } else { paths.split(',').collect() };
    for path in listed {
        if !Path::new(path).exists() {
            return Err(absent_run(Path::new(path)).into());
        }
        at(Path::new(path), series, &mut found)?;
    }
    Ok((name, found))
}

/// The configurations that arguments name; those of one name are one.
pub(super) fn groups(
    arguments: &[String],
    series: Option<&str>,
) -> anyhow::Result<(Vec<Group>, Vec<PathBuf>)> {
    let (mut groups, mut all_left_out): (Vec<Group>, _) = (Vec::new(), Vec::new());
    for argument in arguments {
        let (name, Runs { runs, left_out }) = group(argument, series)?;
        all_left_out.extend(left_out);
        let named = argument.starts_with(&format!("{name}="));
        match groups.iter_mut().find(|(known, _)| named && *known == name) {
            Some((_, known)) => known.extend(runs),
            None => groups.push((name, runs)),
        }
    }
    Ok((groups, all_left_out))
}

/// Every run that some arguments name, in their order.
pub(super) fn runs(arguments: &[String], series: Option<&str>) -> anyhow::Result<Runs> {
    let mut all = Runs::default();
    for argument in arguments {
        let (_, found) = group(argument, series)?;
        all.runs.extend(found.runs);
        all.left_out.extend(found.left_out);
    }
    Ok(all)
}

fn label(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// One run, or those of a directory that is none itself. What lies there beside runs, such as a
/// log, is left out; a run that cannot be read is an error.
fn at(path: &Path, series: Option<&str>, found: &mut Runs) -> anyhow::Result<()> {
    if !path.is_dir() || path.join(store::RUN).exists() {
        found.runs.push(one(path, series)?);
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(|source| Error::io("read", path, source))?;
    let mut inside: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| Error::io("read", path, source))?.path();
        if !entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            inside.push(entry);
        }
    }
    inside.sort_by_key(|path| by_number(path));
    let before = found.runs.len();
    for entry in inside {
        let run = if entry.is_file() {
            among_results(&entry, series)?
        } else if entry.join(store::RUN).exists() {
            Some(one(&entry, series)?)
        } else {
            None
        };
        match run {
            Some(run) => found.runs.push(run),
            None => found.left_out.push(entry),
        }
    }
    if found.runs.len() == before {
        return Err(Error::invalid(
            path.display(),
            "no run in it",
            "a run directory, or a directory of runs",
        )
        .into());
    }
    Ok(())
}

/// Runs 1 to 10 in their order, and others by their names.
fn by_number(path: &Path) -> (Option<u64>, PathBuf) {
    let number = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
    (number, path.to_owned())
}

/// The result in a file beside others, if it is one.
fn among_results(path: &Path, series: Option<&str>) -> anyhow::Result<Option<MeasuredRun>> {
    let name = path.display().to_string();
    import::read_if_known(path, name.clone(), series).with_context(|| format!("{name} cannot be compared"))
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
