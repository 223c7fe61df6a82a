//! `stillcore isolate undo`: gives every changed value back, newest first. A value that somebody else has set meanwhile is left alone.

use super::State;
use super::apply::need_root;
use super::crash::Crashing;
use clap::Args;
use linux::isolate::change::Live;
use linux::isolate::revert::{Reverted, revert};
use linux::isolate::standing::{self, Standing};

/// Arguments of `isolate undo`.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Where the journal is.
    #[command(flatten)]
    pub(crate) state: State,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// End the process before (2k) or after (2k+1) the k-th write: for tests.
    #[arg(long, hide = true)]
    pub(crate) crash_at: Option<u64>,
}

/// Undoes.
pub(crate) fn run(args: &UndoArgs) -> anyhow::Result<u8> {
    let state = args.state.path()?;
    if standing::find(&state)?.is_none() && !state.join("isolation.jsonl").exists() {
        return tell(args, &Reverted::default(), "nothing is isolated by stillcore: nothing to undo");
    }
    need_root()?;
    let standing = Standing::open(&state)?;
    let journal = standing.path().display().to_string();
    let mut live = Live::new(&std::env::current_exe()?);
    let reverted = revert(standing, &mut Crashing::new(&mut live, args.crash_at))?;
    if reverted.other_boot {
        let what = "the machine has been booted since, and what was changed went with the old boot";
        return tell(args, &reverted, what);
    }
    let what = format!(
        "{} values given back, {} had their old value or are gone, {} tasks started meanwhile followed",
        reverted.undone.len(),
        reverted.already,
        reverted.heirs
    );
    if !reverted.failed.is_empty() {
        let told = reverted.failed.join("; ");
        anyhow::bail!("{what}; not given back, and still in {journal}: {told}");
    }
    tell(args, &reverted, &what)
}

fn tell(args: &UndoArgs, reverted: &Reverted, what: &str) -> anyhow::Result<u8> {
    if args.json {
        let mut value = serde_json::to_value(reverted)?;
        value["schema"] = "stillcore.isolate-undo/1".into();
        println!("{value}");
    } else {
        println!("{what}");
        for left in &reverted.left {
            println!("left alone: {left}");
        }
    }
    Ok(if reverted.left.is_empty() { 0 } else { 2 })
}
