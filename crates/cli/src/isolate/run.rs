//! `stillcore isolate run`: a command on the isolated CPUs, in the partition that owns them.

use super::State;
use anyhow::Context;
use clap::Args;
use linux::isolate::{enter, standing};
use model::Cpus;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Arguments of `isolate run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// CPUs to run on [default: all that are isolated].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Where the journal is.
    #[command(flatten)]
    pub(crate) state: State,
    /// The command.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}

/// Becomes the command; returns only on failure.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let cpus = match &args.cpus {
        Some(cpus) => cpus.clone(),
        None => match standing::find(&args.state.path()?)? {
            Some(found) if found.this_boot && !found.head.isolated.is_empty() => found.head.cpus,
            _ => anyhow::bail!("nothing is isolated by stillcore: name the CPUs with --cpus"),
        },
    };
    enter(&cpus).with_context(|| format!("cannot run on CPUs {cpus}"))?;
    linux::sys::signals::unblock_end();
    let error = Command::new(&args.command[0]).args(&args.command[1..]).exec();
    Err(anyhow::Error::from(error).context(format!("cannot run {}", args.command[0])))
}
