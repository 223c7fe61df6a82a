//! `stillcore isolate undo`: restores every changed value, newest first. A value that somebody else
//! has set meanwhile is left alone.

use super::State;
use super::apply::need_root;
use super::crash::Crashing;
use crate::verbs::restore_what_was_left_in;
use clap::Args;
use isolate::revert::{Reverted, forget, revert};
use isolate::standing::{self, Standing};
use journal::settings::Live;
use std::time::Duration;

/// How long a hold may be at work on the journal: it heals what has drifted, and then reads on.
const PATIENCE: Duration = Duration::from_secs(10);

/// Arguments of `isolate undo`.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Location of the journal.
    #[command(flatten)]
    pub(crate) state: State,
    /// Give up settings that cannot be restored, such as those of a removed device; keep their
    /// journal under another name.
    #[arg(long)]
    pub(crate) forget: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// End the process before (2k) or after (2k+1) the k-th write: for tests.
    #[arg(long, hide = true)]
    pub(crate) crash_at: Option<u64>,
}

/// Undoes.
pub(crate) fn run(args: &UndoArgs) -> anyhow::Result<u8> {
    // Changes for the length of a run, left by one that was killed.
    let left = args.state.path().map_or(Ok(Vec::new()), |state| restore_what_was_left_in(&state))?;
    let code = undo_what_stands(args)?;
    anyhow::ensure!(left.is_empty(), "left by a killed run and still there: {}", left.join("; "));
    Ok(code)
}

/// Undoes the isolation in force.
pub(crate) fn undo_what_stands(args: &UndoArgs) -> anyhow::Result<u8> {
    if !args.state.places().iter().any(|state| standing::exists(state)) {
        let what = format!("{}: nothing to undo", args.state.nothing());
        return print_result(args, &Reverted::default(), &what);
    }
    need_root()?;
    let state = args.state.path()?;
    let standing = Standing::open_within(&state, PATIENCE)?;
    let journal = standing.path().display().to_string();
    let mut live = Live::new(&std::env::current_exe()?);
    let mut settings = Crashing::new(&mut live, args.crash_at);
    let undo = if args.forget { forget } else { revert };
    let reverted = undo(standing, &mut settings)?;
    if reverted.other_boot {
        let what = "the machine has been booted since, and what was changed went with the old boot";
        return print_result(args, &reverted, what);
    }
    let what = format!(
        "{} changes undone{}, {} had their old value or are gone, {} tasks started meanwhile followed",
        reverted.undone.len().saturating_sub(reverted.remembered),
        and_remembered(reverted.remembered),
        reverted.already,
        reverted.heirs
    );
    if !reverted.failed.is_empty() {
        let failures = reverted.failed.join("; ");
        anyhow::bail!(
            "{what}; not given back, and still in {journal}: {failures}; undo --forget gives that up"
        );
    }
    let read_back = match reverted.as_before {
        0 => String::new(),
        1 => "\nread back: 1 value is what it was before".to_owned(),
        values => format!("\nread back: {values} values are what they were before"),
    };
    print_result(args, &reverted, &(what + &read_back))
}

/// What was given back beside the changes: values that the kernel had computed anew.
fn and_remembered(values: usize) -> String {
    match values {
        0 => String::new(),
        1 => " and 1 remembered value restored".to_owned(),
        more => format!(" and {more} remembered values restored"),
    }
}

fn print_result(args: &UndoArgs, reverted: &Reverted, what: &str) -> anyhow::Result<u8> {
    if args.json {
        let mut value = serde_json::to_value(reverted)?;
        value["schema"] = "stillcore.isolate-undo/1".into();
        println!("{value}");
    } else {
        println!("{what}");
        for left in &reverted.left {
            println!("left alone: {left}");
        }
        for differs in &reverted.differ {
            println!("not as before: {differs}");
        }
        for unread in &reverted.unread {
            println!("not read back: {unread}");
        }
        for abandoned in &reverted.abandoned {
            println!("given up: {abandoned}");
        }
        if let Some(kept) = &reverted.kept {
            println!("its journal is kept as {}", kept.display());
        }
    }
    let whole = reverted.left.is_empty() && reverted.differ.is_empty() && reverted.abandoned.is_empty();
    Ok(if whole { 0 } else { 2 })
}
