//! Why a run directory could not be analysed.

/// The cause, with the path from the part that found it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `run.json`, a samples file or the event catalogue.
    #[error(transparent)]
    Model(#[from] model::Error),
    /// The trace.
    #[error(transparent)]
    Trace(#[from] ftrace::Error),
}
