//! `stillcore isolate`: one file per verb.

pub(crate) mod apply;
pub(crate) mod boot_line;
mod crash;
pub(crate) mod deployment;
pub(crate) mod persist;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod target;
pub(crate) mod undo;
pub(crate) mod verify;

use clap::{Args, Subcommand};
use isolate::standing::{self, Found};
use std::path::PathBuf;
use sys::signals::EndSignals;

/// Verbs under `isolate`.
#[derive(Debug, Subcommand)]
pub(crate) enum IsolateVerb {
    /// Print what apply would change, in order, and what it cannot; write nothing.
    Plan(plan::PlanArgs),
    /// Apply the plan; record every change first, so that undo can restore it.
    Apply(apply::ApplyArgs),
    /// Compare the machine with the applied settings, once or continuously.
    Verify(verify::VerifyArgs),
    /// Run a command on the isolated CPUs.
    Run(run::RunArgs),
    /// Restore every changed value.
    Undo(undo::UndoArgs),
    /// Print what is applied.
    Status(status::StatusArgs),
    /// Write stillcore's own files that restore the isolation after a boot.
    Persist(persist::PersistArgs),
    /// Apply one of the IEEE Access paper's six multicore deployments; undo reverts it.
    Deployment(deployment::DeploymentArgs),
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
        let home = std::env::var_os("HOME").map(PathBuf::from);
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
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let default = || journal::session::default_state(home.as_deref());
        self.dir
            .clone()
            .or_else(default)
            .ok_or_else(|| anyhow::anyhow!("no home directory: give --state DIR"))
    }
}

impl IsolateVerb {
    /// Whether it changes something on the machine, or watches it until a signal ends it.
    pub(crate) fn touches_the_machine(&self) -> bool {
        !matches!(self, Self::Plan(_) | Self::Status(_))
    }

    /// Whether answers and errors are to be JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Plan(args) => args.json,
            Self::Apply(args) => args.json,
            Self::Verify(args) => args.json,
            Self::Run(_) => false,
            Self::Undo(args) => args.json,
            Self::Status(args) => args.json,
            Self::Persist(args) => args.json,
            Self::Deployment(args) => args.json,
        }
    }

    /// Runs the verb; returns the exit status.
    pub(crate) fn run(&self, signals: &EndSignals) -> anyhow::Result<u8> {
        match self {
            Self::Plan(args) => plan::run(args),
            Self::Apply(args) => apply::run(args, signals),
            Self::Verify(args) => verify::run(args, signals),
            Self::Run(args) => run::run(args),
            Self::Undo(args) => undo::run(args),
            Self::Status(args) => status::run(args),
            Self::Persist(args) => persist::run(args),
            Self::Deployment(args) => deployment::run(args, signals),
        }
    }
}
