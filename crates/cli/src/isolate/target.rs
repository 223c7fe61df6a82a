//! What is to be isolated, as all verbs that plan take it, and the plan it comes to.

use super::State;
use clap::{Args, ValueEnum};
use linux::isolate::placed::Placed;
use linux::isolate::{Catalogue, Request};
use linux::machine::{self, Root};
use model::plan::{Placement, Plan};
use model::{Cpus, Machine};
use std::path::PathBuf;

/// Arguments that say what to isolate.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// CPUs to isolate, as a list such as 2,3 or 4-7 [default: those the kernel was booted to isolate].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Isolate CPU 0 too.
    #[arg(long)]
    pub(crate) force: bool,
    /// Isolate some threads of a core and leave its others to everything else.
    #[arg(long)]
    pub(crate) allow_split: bool,
    /// Also change these mechanisms, which are choices, risks or contested, and not changed by default.
    #[arg(long = "with", value_delimiter = ',', value_name = "IDS")]
    pub(crate) with: Vec<String>,
    /// Leave these mechanisms as they are.
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    pub(crate) without: Vec<String>,
    /// How to keep the scheduler off [default: the best that the kernel and its mounts allow].
    #[arg(long, value_name = "HOW")]
    pub(crate) placement: Option<How>,
    /// Read the mechanisms from this directory instead of the built-in catalogue.
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
}

/// How the scheduler is kept off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum How {
    /// The kernel was booted with these CPUs outside its scheduling domains.
    Boot,
    /// An isolated partition of cgroup version 2.
    Partition,
    /// Cpusets of cgroup version 1.
    Cpuset,
    /// Affinities alone.
    Affinity,
}

impl From<How> for Placement {
    fn from(how: How) -> Self {
        match how {
            How::Boot => Self::Boot,
            How::Partition => Self::Partition,
            How::Cpuset => Self::Cpuset,
            How::Affinity => Self::Affinity,
        }
    }
}

/// What was put on the isolated CPUs of this machine; a captured one tells nothing of it, nor does a journal that may not be read.
fn placed(root: &Root, state: &State) -> Placed {
    let standing = || state.standing().ok().flatten();
    root.is_live().then(standing).flatten().map(|(_, found)| found.placed).unwrap_or_default()
}

/// Whether a text begins as `uname -r` does and is a file name.
fn is_release(text: &str) -> bool {
    let mut numbers = text.split('.').map(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    numbers.next() == Some(true) && numbers.next() == Some(true) && !text.contains('/')
}

impl Target {
    /// Makes the plan for the machine under `root`. Nothing is written.
    pub(crate) fn plan(&self, root: &Root, state: &State) -> anyhow::Result<Plan> {
        self.plan_for(root, state, None, None)
    }

    /// The same with the boot line of a kernel of this release, or of an image.
    pub(crate) fn plan_for(
        &self,
        root: &Root,
        state: &State,
        kernel: Option<String>,
        image: Option<Root>,
    ) -> anyhow::Result<Plan> {
        if let Some(release) = kernel.as_deref().filter(|release| !is_release(release)) {
            anyhow::bail!("--for-kernel {release:?}: expected a release such as 6.12 or 6.1.0-30-amd64");
        }
        let catalogue = self.catalogue()?;
        let machine = machine::read(root)?;
        let request = Request {
            cpus: self.cpus_of(&machine)?,
            force: self.force,
            allow_split: self.allow_split,
            with: self.with.clone(),
            without: self.without.clone(),
            placement: self.placement.map(Placement::from),
            placed: placed(root, state),
            kernel,
            image,
        };
        Ok(linux::isolate::plan(root, &machine, &catalogue, &request)?)
    }

    fn cpus_of(&self, machine: &Machine) -> anyhow::Result<Cpus> {
        if let Some(cpus) = &self.cpus {
            return Ok(cpus.clone());
        }
        let topology = &machine.topology;
        let booted = topology.isolated.or(&topology.nohz_full).and(&topology.online);
        if booted.is_empty() {
            anyhow::bail!("no CPU of this machine is isolated at boot: name those to isolate with --cpus");
        }
        Ok(booted)
    }

    /// The catalogue named, or the built-in one.
    pub(crate) fn catalogue(&self) -> anyhow::Result<Catalogue> {
        Ok(match &self.catalogue {
            Some(directory) => Catalogue::load(directory)?,
            None => Catalogue::embedded()?,
        })
    }
}
