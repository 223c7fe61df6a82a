//! What is changed on the machine for a replication over boots, and given back: an entry for one
//! boot, and a unit that goes on after it.

use super::super::ReplicateArgs;
use super::here::Here;
use crate::isolate::persist::make_effective;
use anyhow::Context;
use audit::program;
use isolate::{persist, resume};
use journal::trust;
use machine::Root;
use model::{Error, store};
use std::path::{Path, PathBuf};
use study::boots::{Chain, Stage};

/// Refuses, before anything is changed, a machine on which it could not go on.
pub(super) fn possible(here: &Here, chain: &Chain, out: &Path) -> anyhow::Result<()> {
    let waiting: Vec<&Stage> = chain.waiting().map(|at| &chain.stages[at]).collect();
    if waiting.iter().all(|stage| stage.boot.kernel.is_none()) {
        let why: Vec<&str> = chain.stages.iter().filter_map(|stage| stage.given_up.as_deref()).collect();
        let found = if why.is_empty() { "no cell needs a boot".to_owned() } else { why.join("; ") };
        return Err(Error::invalid("--boots", found, "kernels to boot").into());
    }
    if !boot::at_hand(&here.root, "").own.is_empty() {
        let found = "isolate persist is in force";
        return Err(Error::invalid("--boots", found, "stillcore isolate persist --remove first").into());
    }
    for stage in waiting {
        writing(here, stage)?;
    }
    installed_program()?;
    let out = std::path::absolute(out)?;
    let temporary = ["/tmp", "/var/tmp", "/run", "/dev/shm"].into_iter().find(|place| out.starts_with(place));
    if let Some(place) = temporary {
        let found = format!("{}: what lies under {place} may be gone after a boot", out.display());
        return Err(
            Error::invalid("--out", found, "a directory that stays, such as /var/lib/replication").into()
        );
    }
    // What stands there decides what root runs.
    for dir in out.ancestors().filter(|dir| dir.exists()) {
        trust::is_own(dir)?;
    }
    Ok(())
}

/// This program, where a unit of root's may start it.
fn installed_program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    program::trusted(&Root::live(), &own).map_err(|reason| {
        anyhow::anyhow!(
            "root must not start {} after each boot: {reason}; install it first \
             (install -m 0755 {} /usr/local/sbin/stillcore) and call that",
            own.display(),
            own.display()
        )
    })?;
    Ok(own)
}

/// The unit that makes this call after each boot.
pub(super) fn install(args: &ReplicateArgs, out: &Path) -> anyhow::Result<()> {
    let own = installed_program()?;
    let all = resume::unit(&Root::live(), &own, &words(args, &std::path::absolute(out)?));
    persist::install(&Root::live(), &all)?;
    all.by_hand.iter().for_each(|line| crate::run::progress::Reporter::say(&format!("note: {line}")));
    all.commands.iter().try_for_each(|command| make_effective(command))
}

/// The words of the same call, without questions.
fn words(args: &ReplicateArgs, out: &Path) -> Vec<String> {
    let mut words = ["study", "replicate", &args.paper, "--boots", "--yes"].map(str::to_owned).to_vec();
    let mut put = |option: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
    };
    put("--out", Some(out.display().to_string()));
    put("--within", Some(format!("{}s", args.within.as_secs())));
    put("--only", (!args.only.is_empty()).then(|| args.only.join(",")));
    put("--scale", args.scale.map(|scale| scale.to_string()));
    put("--repetitions", args.repetitions.map(|n| n.to_string()));
    put("--kernels", (!args.kernels.is_empty()).then(|| args.kernels.join(",")));
    put("--cpus", args.cpus.as_ref().map(ToString::to_string));
    put("--state", args.state.as_ref().map(|path| path.display().to_string()));
    put("--disk", Some(args.disk.to_string()));
    put("--reboot-by", args.reboot_by.clone());
    words
}

fn writing(here: &Here, stage: &Stage) -> anyhow::Result<Option<boot::Writing>> {
    let Some(entry) = here.entry(&stage.boot) else { return Ok(None) };
    let line = here.line_of(&stage.boot, entry);
    Ok(Some(boot::writing_once(&here.root, &line, &entry.release)?))
}

/// Chooses a stage for the next boot alone.
pub(super) fn choose(here: &Here, stage: &Stage) -> anyhow::Result<()> {
    let writing = writing(here, stage)?
        .with_context(|| format!("the boot loader has no entry of kernel {} any more", stage.release))?;
    boot::write(&here.root, &writing)?;
    writing.commands.iter().try_for_each(|command| make_effective(command))
}

/// Takes the entry away.
pub(super) fn give_back_line() -> anyhow::Result<()> {
    let undone = boot::undo_once(&Root::live())?.unwrap_or_default();
    undone.commands.iter().try_for_each(|command| make_effective(command))?;
    match undone.left.first() {
        None => Ok(()),
        Some(left) => anyhow::bail!("left as it is: {left}"),
    }
}

/// Takes the unit away.
pub(super) fn give_back_unit() -> anyhow::Result<()> {
    let root = Root::live();
    let (_, commands) = resume::remove(&root)?;
    commands.iter().try_for_each(|command| make_effective(command))
}

/// Boots the machine, once what was stored is on the disk.
pub(super) fn reboot(args: &ReplicateArgs, out: &Path) -> anyhow::Result<u8> {
    store::sync_tree(out)?;
    let words: Vec<String> = match &args.reboot_by {
        Some(command) => command.split_whitespace().map(str::to_owned).collect(),
        None => ["systemctl", "reboot"].map(str::to_owned).to_vec(),
    };
    let again = "reboot by hand; the same call goes on";
    make_effective(&words).with_context(|| again.to_owned())?;
    Ok(0)
}
