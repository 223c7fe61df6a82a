//! Hints of errors that libraries return, by their type; and their words, where the command knows
//! better ones.

use super::Hinted;
use super::nearest::did_you_mean;
use model::quantity::{NotATime, TIME_UNITS, WhyNotATime};
use model::{Cpus, Error, store};
use std::error::Error as StdError;
use std::io::ErrorKind;
use std::path::Path;

/// Runs of the current directory that a hint names at most.
const RUNS: usize = 3;
/// Entries of the current directory that are looked at for runs.
const MOST_ENTRIES: usize = 10_000;

/// The hint of the first cause that has one.
pub(super) fn of(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(of_cause)
}

/// The hint of one cause.
pub(super) fn of_cause(cause: &(dyn StdError + 'static)) -> Option<String> {
    if let Some(hinted) = cause.downcast_ref::<Hinted>() {
        return hinted.hint.clone();
    }
    if let Some(wrong) = cause.downcast_ref::<NotATime>() {
        return Some(of_time(wrong));
    }
    if let Some(error) = cause.downcast_ref::<disturb::Error>() {
        return match error {
            disturb::Error::UnknownStressor { name, known }
            | disturb::Error::UnknownSuite { name, known } => {
                let meant = did_you_mean(name, known.split(", ")).map(|meant| meant + " ");
                Some(meant.unwrap_or_default() + "all stressors and suites: stillcore disturb --list")
            }
            _ => None,
        };
    }
    match cause.downcast_ref::<Error>()? {
        Error::Unknown(name) => did_you_mean(&name.word, name.known.iter().map(String::as_str)),
        Error::Invalid { place, expected, .. } if place.starts_with("--cpus") => {
            let online: Cpus = expected.strip_prefix("CPUs among ")?.parse().ok()?;
            let highest = online.0.last().filter(|_| online.len() > 1)?;
            Some(format!("leave at least one CPU for everything else, for example --cpus {highest}"))
        }
        error => missing_run(error).map(|_| runs_here()),
    }
}

/// The words of a cause that leaves nothing to say for the causes below it.
pub(super) fn last_words(cause: &(dyn StdError + 'static)) -> Option<String> {
    match cause.downcast_ref::<disturb::Error>() {
        // The hint has the nearest of a long list.
        Some(disturb::Error::UnknownStressor { name, .. }) => Some(format!("no stressor is called '{name}'")),
        Some(disturb::Error::UnknownSuite { name, .. }) => Some(format!("no suite is called '{name}'")),
        _ => cause.downcast_ref::<Error>().and_then(missing_run).map(no_run),
    }
}

/// What is not there, where a directory was to be a run.
fn no_run(dir: &Path) -> String {
    let shown = dir.display();
    if dir.is_dir() {
        format!("no run directory '{shown}': it has no {}", store::RUN)
    } else if dir.exists() {
        format!("no run directory '{shown}': it is a file")
    } else {
        format!("no run directory '{shown}': it does not exist")
    }
}

/// The error of a run that is not there, for verbs that take other things than runs as well.
pub(crate) fn absent_run(dir: &Path) -> Hinted {
    Hinted { what: no_run(dir), hint: Some(runs_here()) }
}

/// The directory that was read as a run, and is none.
fn missing_run(error: &Error) -> Option<&Path> {
    let Error::Io { path, source, .. } = error else { return None };
    let missing = matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    path.parent().filter(|_| missing && path.ends_with(store::RUN))
}

/// The newest runs of the current directory, and how to start one.
fn runs_here() -> String {
    let start = "start one with stillcore assess, several with stillcore measure wakeup --runs 5";
    let Ok(entries) = std::fs::read_dir(".") else { return start.to_owned() };
    let mut runs: Vec<_> = entries
        .take(MOST_ENTRIES)
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let written = |dir: &Path| dir.join(store::RUN).metadata().and_then(|file| file.modified()).ok();
            // One run, or several under numbers, as measure --runs makes them.
            let group = || Some((written(&entry.path().join("1"))?, format!("{name} (several)")));
            written(&entry.path()).map(|time| (time, name.clone())).or_else(group)
        })
        .collect();
    runs.sort_unstable_by(|a, b| b.cmp(a));
    if runs.is_empty() {
        return start.to_owned();
    }
    let more = if runs.len() > RUNS { format!(" and {} more", runs.len() - RUNS) } else { String::new() };
    let newest: Vec<_> = runs.into_iter().take(RUNS).map(|(_, name)| name).collect();
    format!("runs here: {}{more}; {start}", newest.join(", "))
}

/// How the length of time would have been accepted.
fn of_time(wrong: &NotATime) -> String {
    match wrong.why {
        WhyNotATime::UnitMissing if wrong.text.parse::<f64>().is_ok() => {
            format!("write {}s; {TIME_UNITS}", wrong.text.trim())
        }
        _ => TIME_UNITS.to_owned(),
    }
}
