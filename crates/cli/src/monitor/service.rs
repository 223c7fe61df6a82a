//! The systemd unit that watches from each boot on: written, printed, removed.

use super::action;
use super::options::{Listen, StartArgs};
use crate::isolate::apply::need_root;
use crate::isolate::persist::{make_effective, put, trusted_program};
use isolate::monitor_unit;
use machine::Root;
use model::quantity::spelled;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

/// Writes the unit, or prints it.
pub(super) fn install(args: &StartArgs) -> anyhow::Result<u8> {
    let root = Root::open(Path::new("/"))?;
    let own = std::env::current_exe()?;
    let program = args.program.clone().unwrap_or_else(|| own.clone());
    trusted_program(&root, &program, &own)?;
    if let Some(program) = &args.on_breach {
        action::check(program, args.on_breach_user)?;
    }
    let places = Places { state: place(args.state.as_deref())?, textfile: place(args.textfile.as_deref())? };
    let writable: Vec<&Path> = places.state.iter().chain(&places.textfile).map(PathBuf::as_path).collect();
    let all = monitor_unit::unit(&root, &program, &words(args, &places), &writable, args.on_breach.is_some());
    put(&root, &all, args.print, "stillcore-monitor")?;
    Ok(0)
}

/// Removes it; what was kept stays.
pub(super) fn remove() -> anyhow::Result<u8> {
    need_root()?;
    let (removed, commands) = monitor_unit::remove(&Root::open(Path::new("/"))?)?;
    commands.iter().try_for_each(|command| make_effective(command))?;
    if removed.is_empty() {
        println!("there was nothing of stillcore's to remove");
    } else {
        println!("removed: {}", removed.join(", "));
        println!("a service that runs still does until systemctl stop stillcore-monitor");
    }
    Ok(0)
}

/// Directories that are named, from the root on.
struct Places {
    state: Option<PathBuf>,
    textfile: Option<PathBuf>,
}

fn place(named: Option<&Path>) -> std::io::Result<Option<PathBuf>> {
    named.map(absolute).transpose()
}

/// The words that make the same call.
fn words(args: &StartArgs, places: &Places) -> Vec<String> {
    let time = |time: Duration| spelled(time.as_nanos() as u64);
    let mut words = Vec::new();
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    args.cpus.iter().for_each(|cpus| add("--cpus", cpus.to_string()));
    args.comm.iter().for_each(|comm| add("--comm", comm.clone()));
    add("--over", time(args.over));
    args.interference_over.iter().for_each(|over| add("--interference-over", time(*over)));
    add("--before", time(args.before));
    add("--quota", format!("{}M", args.quota.div_ceil(1 << 20)));
    add("--history", args.history.to_string());
    args.host.iter().for_each(|host| add("--host", host.clone()));
    add("--per-hour", args.per_hour.to_string());
    match args.listen {
        Listen::Nowhere => add("--listen", "none".to_owned()),
        Listen::At(address) => add("--listen", address.to_string()),
    }
    places.textfile.iter().for_each(|dir| add("--textfile", dir.display().to_string()));
    args.reporter.iter().for_each(|user| add("--reporter", user.to_string()));
    if let Some(program) = &args.on_breach {
        add("--on-breach", program.display().to_string());
        add("--on-breach-user", args.on_breach_user.to_string());
    }
    places.state.iter().for_each(|dir| add("--state", dir.display().to_string()));
    if args.stacks {
        words.push("--stacks".to_owned());
    }
    words
}
