//! What is to be isolated, and on which machine and kernel: of verbs that change nothing.

use super::State;
use super::target::{NextBoot, Target};
use clap::Args;
use machine::Root;
use std::path::{Path, PathBuf};

/// What to isolate, and where.
#[derive(Debug, Args)]
pub(crate) struct Order {
    /// What to isolate.
    #[command(flatten)]
    pub(crate) target: Target,
    /// Location of the journal of applied changes.
    #[command(flatten)]
    pub(crate) state: State,
    /// Snapshot to read instead of this machine: directory or tar archive of `stillcore snapshot`.
    #[arg(long, value_name = "DIR|TAR")]
    root: Option<PathBuf>,
    /// Kernel release to compute the boot line for, such as 6.12 [default: the running one].
    #[arg(long, value_name = "RELEASE")]
    for_kernel: Option<String>,
}

impl Order {
    /// The machine, or the snapshot of one.
    pub(crate) fn root(&self) -> anyhow::Result<Root> {
        Ok(Root::open(self.root.as_deref().unwrap_or(Path::new("/")))?)
    }

    /// The kernel of the next boot.
    pub(crate) fn next(&self) -> NextBoot {
        NextBoot { kernel: self.for_kernel.clone(), image: None }
    }
}
