//! What failed on a machine, on what, and why.

use std::fmt::Display;

/// A machine that did not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {object}: {source}")]
    Os {
        /// What was attempted, as a verb.
        action: &'static str,
        /// What it was attempted on: a path, a process, a CPU.
        object: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Something that stillcore started did not do its part.
    #[error("{part} failed: {what}")]
    Failed {
        /// Which part.
        part: String,
        /// What it said.
        what: String,
    },
    /// Data of a shape that it must not have, or a file of the run that could not be written.
    #[error(transparent)]
    Data(#[from] model::Error),
    /// The error of a crate above this one, in its own words.
    #[error(transparent)]
    Of(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// An [`Error::Os`].
    pub fn os(action: &'static str, object: impl Display, source: impl Into<std::io::Error>) -> Self {
        Self::Os { action, object: object.to_string(), source: source.into() }
    }

    /// An [`Error::Failed`].
    pub fn failed(part: impl Display, what: impl Display) -> Self {
        Self::Failed { part: part.to_string(), what: what.to_string() }
    }

    /// An [`Error::Of`].
    pub fn of(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Of(Box::new(error))
    }
}
