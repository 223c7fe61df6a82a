//! How the command reports an error on standard error: `error: WHAT: WHY` and, where there is one,
//! `hint: COMMAND`; or one JSON object. Exit 1.

mod hints;
pub(crate) mod nearest;
mod usage;

use crate::stdout;
pub(crate) use hints::absent_run;
use model::Error;
use std::process::ExitCode;
pub(crate) use usage::explained;

/// An error that one verb words itself, with a command or a valid form to try instead.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Hinted {
    /// What failed, on what, and why: lower case, without a full stop.
    pub(crate) what: String,
    /// A command, or a valid form.
    pub(crate) hint: Option<String>,
}

impl Hinted {
    /// An error with a hint.
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: Some(hint.into()) }
    }
}

/// Reports the error.
pub(crate) fn show(error: &anyhow::Error, json: bool) -> ExitCode {
    let hint = hints::of(error);
    if json {
        let mut parts = parts(error);
        parts["hint"] = hint.into();
        eprintln!("{}", serde_json::json!({ "error": parts }));
    } else {
        stdout::write_labelled(stdout::Label::Error, &sentence(error));
        if let Some(hint) = hint {
            eprintln!();
            stdout::write_labelled(stdout::Label::Hint, &hint);
        }
    }
    ExitCode::from(1)
}

/// The chain of causes in one sentence. Many errors already end with their cause's words; those are
/// not said twice.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let last = hints::last_words(cause);
        let words = last.clone().unwrap_or_else(|| cause.to_string());
        if said.is_empty() {
            said = words;
        } else if !said.ends_with(&words) {
            said = format!("{said}: {words}");
        }
        if last.is_some() {
            break;
        }
    }
    said
}

/// What, where and what was expected, as far as the error separates them.
fn parts(error: &anyhow::Error) -> serde_json::Value {
    let absent = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref::<Error>(), Some(Error::Absent { .. }))
    };
    let absent = error.chain().any(absent);
    let (what, place, expected) = error
        .chain()
        .find_map(|cause| {
            if let Some(words) = hints::last_words(cause) {
                return Some((words, None, None));
            }
            let known = cause.downcast_ref::<Error>().map(of_model);
            known.or_else(|| cause.downcast_ref::<ftrace::Error>().and_then(of_trace))
        })
        .unwrap_or_else(|| (sentence(error), None, None));
    let mut parts = serde_json::json!({ "what": what, "where": place, "expected": expected });
    if absent {
        parts["absent"] = true.into();
    }
    parts
}

type Parts = (String, Option<String>, Option<String>);

fn of_model(error: &Error) -> Parts {
    match error {
        Error::Invalid { place, what, expected } | Error::Absent { place, what, expected } => {
            (what.clone(), Some(place.clone()), Some(expected.clone()))
        }
        Error::Unknown(name) => (name.what(), Some(name.place.clone()), Some(name.expected.clone())),
        Error::Io { action, path, source } => {
            (format!("cannot {action}: {source}"), Some(path.display().to_string()), None)
        }
    }
}

fn of_trace(error: &ftrace::Error) -> Option<Parts> {
    match error {
        ftrace::Error::Io { path, action, source } => {
            Some((format!("cannot {action}: {source}"), Some(path.display().to_string()), None))
        }
        ftrace::Error::Malformed { path, offset, what, value, expected } => Some((
            format!("{what} is {value}"),
            Some(format!("{}: byte {offset}", path.display())),
            Some(expected.clone()),
        )),
        ftrace::Error::Truncated { path, offset, what, need } => {
            let expected = format!("{need} more bytes");
            Some((
                format!("ends inside {what}"),
                Some(format!("{}: byte {offset}", path.display())),
                Some(expected),
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cause_is_said_twice() {
        let full = std::io::Error::other("disk full");
        let error = anyhow::Error::from(Error::io("write", "/x".as_ref(), full)).context("nothing was kept");
        assert_eq!(sentence(&error), "nothing was kept: cannot write /x: disk full");
    }
}
