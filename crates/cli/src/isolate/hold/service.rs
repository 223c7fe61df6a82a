//! The systemd unit that holds an isolation from each boot on: written, printed, removed.

use super::{HoldArgs, OnStop, asks};
use crate::isolate::apply::need_root;
use crate::isolate::desired::Reading;
use crate::isolate::persist::{make_effective, put, trusted_program, words};
use isolate::hold_unit;
use machine::Root;
use model::quantity::spelled;
use std::path::Path;

/// Writes the unit, or prints it.
pub(super) fn install(args: &HoldArgs) -> anyhow::Result<u8> {
    let root = Root::open(Path::new("/"))?;
    anyhow::ensure!(asks(&args.target), "name what the unit is to hold: --profile FILE, or --cpus LIST");
    if let Some(keep) = args.target.keep.iter().find(|keep| !keep.is_lasting()) {
        anyhow::bail!(
            "--keep {keep}: a number does not outlive a boot; name it by its task, group or policy"
        );
    }
    let own = std::env::current_exe()?;
    let program = args.program.clone().unwrap_or_else(|| own.clone());
    trusted_program(&root, &program, &own)?;
    let machine = machine::read(&root)?;
    let profile = args.target.desired(&machine, Reading::ToActUpon)?;
    let mut call = words(&args.target, &root, &profile)?;
    call.extend(of_holding(args));
    let state = args.state.dir.as_deref().map(std::path::absolute).transpose()?;
    if let Some(state) = &state {
        call.extend(["--state".to_owned(), state.display().to_string()]);
    }
    let all = hold_unit::unit(&root, &program, &call, state.as_deref());
    put(&root, &all, args.print, "stillcore-hold")?;
    Ok(0)
}

/// Removes it; what is applied stays until it is undone.
pub(super) fn remove(args: &HoldArgs) -> anyhow::Result<u8> {
    need_root()?;
    let root = Root::open(Path::new("/"))?;
    let (removed, commands) = hold_unit::remove(&root)?;
    commands.iter().try_for_each(|command| make_effective(command))?;
    if args.json {
        println!("{}", serde_json::json!({ "schema": "stillcore.isolate-hold/1", "removed": removed }));
    } else if removed.is_empty() {
        println!("there was nothing of stillcore's to remove");
    } else {
        println!("removed: {}", removed.join(", "));
        println!(
            "a service that runs still does until systemctl stop stillcore-hold; end the isolation with stillcore isolate undo"
        );
    }
    Ok(0)
}

/// Options of holding that are not as they are without them.
fn of_holding(args: &HoldArgs) -> Vec<String> {
    let mut words = vec!["--interval".to_owned(), spelled(args.interval.as_nanos() as u64)];
    words.extend(["--full-interval".to_owned(), spelled(args.full_interval.as_nanos() as u64)]);
    words.extend(["--heals".to_owned(), args.heals.to_string()]);
    words.extend(["--window".to_owned(), spelled(args.window.as_nanos() as u64)]);
    if args.on_stop == OnStop::Undo {
        words.extend(["--on-stop".to_owned(), "undo".to_owned()]);
    }
    if args.no_trace {
        words.push("--no-trace".to_owned());
    }
    words
}
