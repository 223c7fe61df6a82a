//! What is to be isolated, and on which machine and kernel: of verbs that change nothing.

use super::State;
use super::desired::Reading;
use super::target::{NextBoot, Target, request_of};
use audit::{Desired, Profile};
use clap::Args;
use machine::Root;
use model::{Cpus, Machine};
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

    /// What is desired in full.
    pub(crate) fn desired(&self, root: &Root) -> anyhow::Result<Desired> {
        let machine = machine::read(root)?;
        self.full(root, &machine, self.target.desired(&machine, Reading::AsData)?)
    }

    /// The same to compare with, whoever these CPUs belong to; `cpus`: those to isolate where these
    /// options name none.
    pub(crate) fn compared(&self, root: &Root, cpus: Option<&Cpus>) -> anyhow::Result<Desired> {
        let machine = machine::read(root)?;
        let mut target = self.target.clone();
        if target.profile.is_none() {
            target.cpus = target.cpus.or_else(|| cpus.cloned());
        }
        let profile = target.desired(&machine, Reading::AsData)?;
        self.full(root, &machine, Profile { force: true, ..profile })
    }

    fn full(&self, root: &Root, machine: &Machine, profile: Profile) -> anyhow::Result<Desired> {
        let catalogue = self.target.catalogue()?;
        let request = request_of(root, &profile, &self.state, self.next())?;
        Ok(audit::desired(root, machine, &catalogue, &request)?)
    }

    /// The kernel of the next boot.
    pub(crate) fn next(&self) -> NextBoot {
        NextBoot { kernel: self.for_kernel.clone(), image: None }
    }
}
