//! Why a probe cannot conclude anything.

use model::Error;

/// The reason, a clause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// A file that may not be read.
    #[error(transparent)]
    File(#[from] Error),
    /// A file that must be there.
    #[error("there is no /{0}")]
    Absent(String),
    /// A file that offers no choice.
    #[error("/{file} holds {text:?}, no choice in brackets")]
    NoChoice { file: String, text: String },
    /// A value of a file.
    #[error("{0:?} is no number")]
    NoNumber(String),
    /// A file that holds no set of CPUs.
    #[error("/{file}: {error}")]
    NoCpus { file: String, error: Error },
    /// A file that holds no checkpoint.
    #[error("/{file}: {error}")]
    NoCheckpoint { file: &'static str, error: serde_json::Error },
    /// Limits are in the kernel's memory.
    #[error("a captured machine does not show which limits processes hold")]
    Captured,
    /// Kernel threads are everywhere, but not to be seen from every namespace.
    #[error("no kernel threads could be read")]
    NoThreads,
    /// A parameter without a trace.
    #[error("nothing shows what the kernel made of it")]
    Traceless,
    /// RCU callbacks are offloaded, of CPUs that nothing names.
    #[error(
        "there are threads for offloaded callbacks, and neither the command line nor the boot log says of which CPUs"
    )]
    Unlisted,
    /// A boot line whose meaning is not known.
    #[error("{0}, and its boot log does not say which")]
    Unlogged(String),
}
