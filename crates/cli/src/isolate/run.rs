//! `stillcore isolate run`: a command on the isolated CPUs, in the partition that owns them.

use super::State;
use anyhow::Context;
use clap::Args;
use isolate::placed;
use isolate::standing::Found;
use journal::enter;
use model::Cpus;
use model::plan::Placement;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use sys::process::Owner;

/// Arguments of `isolate run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// CPUs to run on [default: all isolated CPUs].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Location of the journal.
    #[command(flatten)]
    pub(crate) state: State,
    /// Command to run.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}

/// Becomes the command; returns only on failure.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let standing = args.state.standing()?.filter(|(_, found)| found.this_boot);
    let cpus = match (&args.cpus, &standing) {
        (Some(cpus), _) => cpus.clone(),
        (None, Some((_, found))) if !found.head.isolated.is_empty() => found.head.cpus.clone(),
        (None, Some(_)) => anyhow::bail!("no CPU is isolated by stillcore now: name the CPUs with --cpus"),
        (None, None) => anyhow::bail!("{}: name the CPUs with --cpus", args.state.nothing()),
    };
    enter::onto(&cpus).with_context(|| format!("cannot run on CPUs {cpus}"))?;
    if let Some((journal, found)) = &standing {
        note_placed(journal, found);
    }
    sys::signals::unblock_end();
    let error = Command::new(&args.command[0]).args(&args.command[1..]).exec();
    Err(anyhow::Error::from(error).context(format!("cannot run {}", args.command[0])))
}

/// A later apply is to leave this process and its children where they are.
fn note_placed(journal: &Path, found: &Found) {
    let state = journal.parent().unwrap_or(journal);
    let noted = Owner::of_this_process().and_then(|owner| placed::record(state, owner));
    // In a partition, or on CPUs isolated at boot, it is known by where it is.
    let needed = matches!(found.placement(), Placement::Cpuset | Placement::Affinity);
    if let (Err(error), true) = (noted, needed) {
        eprintln!("note: another stillcore isolate apply will move this command away: {error}");
    }
}
