//! One exception for everything that is wrong with an input: `stillcore.Error`, with what, where
//! and what was expected.
//!
//! The class is Python's own (`stillcore/_error.py`), so that it travels between processes by
//! pickle. Errors of the libraries are taken apart as the command does for `--json`.

use pyo3::prelude::*;
use sched::generate::GenerateError;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What is wrong, before an interpreter is at hand.
#[derive(Debug)]
pub(crate) struct Wrong {
    what: String,
    place: Option<String>,
    expected: Option<String>,
}

/// A result of what runs without the interpreter.
pub(crate) type Answer<T> = Result<T, Wrong>;

impl Wrong {
    /// From its three parts.
    pub(crate) fn new(place: impl Display, what: impl Display, expected: impl Display) -> Self {
        let text = |part: &dyn Display| Some(part.to_string());
        Self { what: what.to_string(), place: text(&place), expected: text(&expected) }
    }

    /// A sentence that has its parts inside.
    pub(crate) fn sentence(what: impl Display) -> Self {
        Self { what: what.to_string(), place: None, expected: None }
    }

    /// The same, with a place where none is known.
    pub(crate) fn at(self, place: impl Display) -> Self {
        Self { place: self.place.or_else(|| Some(place.to_string())), ..self }
    }
}

/// Reads what is at `place`. The Parquet reader trusts pages and panics on some
/// damaged ones; that becomes an error here.
pub(crate) fn guarded<T>(place: &Path, read: impl FnOnce() -> Answer<T>) -> Answer<T> {
    let damaged = |_| Err(Wrong::new(place.display(), "a file in it is damaged", "a run as it was written"));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(damaged)
}

impl From<model::Error> for Wrong {
    fn from(error: model::Error) -> Self {
        match error {
            model::Error::Invalid { place, what, expected }
            | model::Error::Absent { place, what, expected } => Self::new(place, what, expected),
            model::Error::Unknown(name) => {
                let what = name.what();
                Self::new(name.place, what, name.expected)
            }
            model::Error::Io { action, path, source } => {
                Self::sentence(format!("cannot {action}: {source}")).at(path.display())
            }
        }
    }
}

impl From<ftrace::Error> for Wrong {
    fn from(error: ftrace::Error) -> Self {
        match error {
            ftrace::Error::Io { path, action, source } => {
                Self::sentence(format!("cannot {action}: {source}")).at(path.display())
            }
            ftrace::Error::Malformed { path, offset, what, value, expected } => Self::new(
                format!("{}: byte {offset}", path.display()),
                format!("{what} is {value}"),
                expected,
            ),
            ftrace::Error::Truncated { path, offset, what, need } => Self::new(
                format!("{}: byte {offset}", path.display()),
                format!("ends inside {what}"),
                format!("{need} more bytes"),
            ),
            other => Self::sentence(other),
        }
    }
}

impl From<attribution::Error> for Wrong {
    fn from(error: attribution::Error) -> Self {
        match error {
            attribution::Error::Model(error) => error.into(),
            attribution::Error::Trace(error) => error.into(),
        }
    }
}

impl From<report::Error> for Wrong {
    fn from(error: report::Error) -> Self {
        Self::sentence(error)
    }
}

impl From<GenerateError> for Wrong {
    fn from(error: GenerateError) -> Self {
        match error {
            GenerateError::Spec { field, found, expected } => Self::new(field, found, expected),
            other => Self::sentence(other),
        }
    }
}

impl From<serde_json::Error> for Wrong {
    fn from(error: serde_json::Error) -> Self {
        Self::sentence(error)
    }
}

impl From<Wrong> for PyErr {
    fn from(wrong: Wrong) -> Self {
        Python::attach(|py| {
            let made = py
                .import("stillcore._error")
                .and_then(|module| module.getattr("Error"))
                .and_then(|class| class.call1((wrong.what, wrong.place, wrong.expected)));
            made.map_or_else(|error| error, PyErr::from_value)
        })
    }
}
