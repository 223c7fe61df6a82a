//! The one error of this crate: what was wrong, where, and what was expected.

use std::path::{Path, PathBuf};

/// A value that could not be read, written or understood.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb: "read", "create", …
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file or argument did not have the shape it must have.
    #[error("{place}: {what}; expected {expected}")]
    Invalid {
        /// A path, with a line or byte where known, or the name of an argument.
        place: String,
        /// What was found.
        what: String,
        /// What would have been accepted.
        expected: String,
    },
    /// The machine or kernel lacks what is required: nothing failed.
    #[error("{place}: {what}; expected {expected}")]
    Absent {
        /// What requires it.
        place: String,
        /// What is absent.
        what: String,
        /// Where it would be there.
        expected: String,
    },
}

impl Error {
    /// An [`Error::Io`] for `path`.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// An [`Error::Absent`] from displayable parts.
    pub fn absent(place: impl ToString, what: impl ToString, expected: impl ToString) -> Self {
        Self::Absent { place: place.to_string(), what: what.to_string(), expected: expected.to_string() }
    }

    /// An [`Error::Invalid`] from displayable parts.
    pub fn invalid(place: impl ToString, what: impl ToString, expected: impl ToString) -> Self {
        Self::Invalid { place: place.to_string(), what: what.to_string(), expected: expected.to_string() }
    }
}
