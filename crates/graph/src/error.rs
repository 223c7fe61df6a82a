//! The one error of this crate.

/// What kept a graph from being read or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Data of a shape that it must not have.
    #[error(transparent)]
    Data(#[from] model::Error),
    /// The machine did not do as asked.
    #[error(transparent)]
    Machine(#[from] sys::Error),
    /// A link could not be made or used.
    #[error(transparent)]
    Transport(#[from] crate::transport::Error),
}

impl Error {
    /// The operating system refused something.
    pub(crate) fn os(action: &'static str, object: impl std::fmt::Display, source: std::io::Error) -> Self {
        Self::Machine(sys::Error::os(action, object, source))
    }
}
