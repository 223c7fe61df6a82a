//! Whom to watch: a process, the threads of a name, a command that is started for it.

use super::WatchArgs;
use anyhow::Context;
use record::tasks::Tasks;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use sys::held::Held;

/// Whom to watch.
pub(super) struct Target {
    pub(super) asked: String,
    pub(super) tasks: Tasks,
    pub(super) held: Option<Held>,
}

pub(super) fn target(args: &WatchArgs) -> anyhow::Result<Target> {
    if let Some(pid) = args.pid {
        return Ok(Target { asked: format!("process {pid}"), tasks: Tasks::of_process(pid)?, held: None });
    }
    if let Some(name) = &args.comm {
        return Ok(Target { asked: format!("name {name}"), tasks: Tasks::of_name(name)?, held: None });
    }
    can_be_executed(&args.command)?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let held = Held::spawn(&program, &args.command, args.json)?;
    let tasks = Tasks::of_process(held.pid())?;
    Ok(Target { asked: format!("command {}", words(args).join(" ")), tasks, held: Some(held) })
}

/// Refuses a command that is not there before anything is recorded or made for it.
fn can_be_executed(words: &[OsString]) -> Result<(), model::Error> {
    let Some(name) = words.first().map(Path::new) else { return Ok(()) };
    if executable(words).is_some() {
        return Ok(());
    }
    Err(model::Error::invalid("the command", name.display(), "a program that can be executed"))
}

/// The file of a command.
pub(super) fn executable(words: &[OsString]) -> Option<PathBuf> {
    let name = words.first().map(Path::new)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |file: &Path| {
        let mode = std::fs::metadata(file)
            .ok()
            .filter(std::fs::Metadata::is_file)
            .map(|data| data.permissions().mode());
        mode.is_some_and(|mode| mode & 0o111 != 0)
    };
    if name.components().count() > 1 {
        return Some(name.to_owned()).filter(|file| is_program(file));
    }
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| is_program(file))
}

pub(super) fn words(args: &WatchArgs) -> Vec<String> {
    args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
