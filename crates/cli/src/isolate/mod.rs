//! `stillcore isolate`: one file per verb.

pub(crate) mod apply;
pub(crate) mod boot_line;
mod crash;
pub(crate) mod deployment;
pub(crate) mod desired;
pub(crate) mod export;
mod from;
pub(crate) mod hold;
pub(crate) mod look;
pub(crate) mod order;
pub(crate) mod persist;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod target;
pub(crate) mod undo;
pub(crate) mod verify;

use crate::run::place::NO_HOME;
use clap::Args;
use isolate::standing::{self, Found};
use std::path::PathBuf;

verbs! {
    /// Verbs under `isolate`.
    IsolateVerb {
        /// Print what apply would change, in order, and what it cannot; write nothing.
        Plan(plan::PlanArgs) => reads(plan::run),
        /// Write these options, or what is applied, as the file that --profile takes.
        Profile(profile::ProfileArgs) => reads(profile::run),
        /// Write a desired state as a profile of tuned, rt-conf, Ansible or another tool.
        Export(export::ExportArgs) => reads(export::run),
        /// Apply the plan; record every change first, so that undo can restore it.
        Apply(apply::ApplyArgs) => changes(apply::run),
        /// Compare the machine with the applied settings, once or continuously.
        Verify(verify::VerifyArgs) => changes(verify::run),
        /// Apply, then keep it so: set again what somebody changes, and name who did.
        Hold(hold::HoldArgs) => changes(hold::run),
        /// Run a command on the isolated CPUs.
        Run(run::RunArgs) => completes(run::run),
        /// Restore every changed value.
        Undo(undo::UndoArgs) => completes(undo::run),
        /// Print what is applied.
        Status(status::StatusArgs) => reads(status::run),
        /// Write stillcore's own files that restore the isolation after a boot.
        Persist(persist::PersistArgs) => completes(persist::run),
        /// Apply one of the IEEE Access paper's six multicore deployments; undo reverts it.
        Deployment(deployment::DeploymentArgs) => changes(deployment::run),
    }
}

/// Location of the journal.
#[derive(Debug, Args)]
pub(crate) struct State {
    /// Directory of the journal [default: /var/lib/stillcore].
    #[arg(long = "state", value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

impl State {
    /// Where to look for a journal: without root the system's place first, since only root can have
    /// isolated anything.
    pub(crate) fn places(&self) -> Vec<PathBuf> {
        let home = journal::session::home();
        let default = || journal::session::states_to_read(home.as_deref());
        self.dir.clone().map_or_else(default, |dir| vec![dir])
    }

    /// The isolation in force, and where its journal is.
    pub(crate) fn standing(&self) -> anyhow::Result<Option<(PathBuf, Found)>> {
        let found = standing::find_first(&self.places())?;
        Ok(found.map(|(state, found)| (standing::path(&state), found)))
    }

    /// The message that nothing is isolated; it names the places searched if there are several.
    pub(crate) fn nothing(&self) -> String {
        let places: Vec<_> = self.places().iter().map(|place| place.display().to_string()).collect();
        let looked = if places.len() == 1 {
            String::new()
        } else {
            format!(" (no journal in {})", places.join(" or "))
        };
        format!("nothing is isolated by stillcore{looked}")
    }

    /// The directory to write to.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        let home = journal::session::home();
        let default = || journal::session::default_state(home.as_deref());
        self.dir.clone().or_else(default).ok_or_else(|| anyhow::anyhow!(NO_HOME))
    }
}
