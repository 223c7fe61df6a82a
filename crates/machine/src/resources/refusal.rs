//! Why something of the machine is not known.

use crate::Root;
use model::Error;
use rustix::io::Errno;
use std::path::Path;

/// The reason. Files are paths below the root.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The machine has no such file.
    #[error("there is no /{0}")]
    Absent(&'static str),
    /// The table shows other CPUs.
    #[error("/{file} has no column for CPU {cpu}")]
    NoColumn { file: &'static str, cpu: u32 },
    /// Files of debugfs belong to root.
    #[error("only root may read /{0}")]
    OnlyRoot(String),
    /// Under lockdown not even root may read them.
    #[error("the kernel lets nobody read /{0}, as under lockdown")]
    Lockdown(String),
    /// Anything else.
    #[error(transparent)]
    Other(Error),
}

impl Refusal {
    /// Why a file of the machine could not be read.
    pub(crate) fn of(root: &Root, error: Error) -> Self {
        let Error::Io { source, path, .. } = &error else { return Self::Other(error) };
        let file = |path: &Path| path.strip_prefix(root.at("")).unwrap_or(path).display().to_string();
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ACCESS) => Self::OnlyRoot(file(path)),
            Some(Errno::PERM) => Self::Lockdown(file(path)),
            _ => Self::Other(error),
        }
    }
}
