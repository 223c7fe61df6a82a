//! The one error of this crate: what was wrong, where, and what was expected.

use std::fmt;
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
    /// A name is none of the known ones.
    #[error("{0}")]
    Unknown(Box<UnknownName>),
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

/// A name that nothing has.
#[derive(Debug)]
pub struct UnknownName {
    /// The name of an argument, or a path with a line.
    pub place: String,
    /// What has such names.
    pub kind: &'static str,
    /// The name that was found.
    pub word: String,
    /// The names that exist, to suggest the nearest.
    pub known: Vec<String>,
    /// What would have been accepted.
    pub expected: String,
}

impl UnknownName {
    /// What was found.
    pub fn what(&self) -> String {
        format!("no {} is called {:?}", self.kind, self.word)
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; expected {}", self.place, self.what(), self.expected)
    }
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

    /// An [`Error::Unknown`] that lists the known names.
    pub fn unknown<N: ToString>(
        place: impl ToString,
        kind: &'static str,
        word: impl ToString,
        known: impl IntoIterator<Item = N>,
    ) -> Self {
        let known: Vec<String> = known.into_iter().map(|name| name.to_string()).collect();
        let expected = format!("one of {}", known.join(", "));
        let (place, word) = (place.to_string(), word.to_string());
        Self::Unknown(Box::new(UnknownName { place, kind, word, known, expected }))
    }

    /// The same, where others than the known names are accepted, or there are too many to list.
    #[must_use]
    pub fn expecting(mut self, text: impl ToString) -> Self {
        match &mut self {
            Self::Unknown(name) => name.expected = text.to_string(),
            Self::Invalid { expected, .. } | Self::Absent { expected, .. } => *expected = text.to_string(),
            Self::Io { .. } => {}
        }
        self
    }

    /// An [`Error::Invalid`] from displayable parts.
    pub fn invalid(place: impl ToString, what: impl ToString, expected: impl ToString) -> Self {
        Self::Invalid { place: place.to_string(), what: what.to_string(), expected: expected.to_string() }
    }
}
