//! `stillcore isolate persist`: files of stillcore's own that bring the isolation back after a boot.

use super::State;
use super::target::Target;
use anyhow::Context;
use clap::{Args, ValueEnum};
use linux::isolate::persist::{Persistence, after_removal, install, persistence, remove};
use linux::machine::Root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of `isolate persist`.
#[derive(Debug, Args)]
pub(crate) struct PersistArgs {
    /// What to isolate.
    #[command(flatten)]
    pub(crate) target: Target,
    /// Take the files away again.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Only print what would be written.
    #[arg(long, conflicts_with = "remove")]
    pub(crate) print: bool,
    /// Write below this directory, the root of an image; the plan is still made for this machine.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes or removes.
pub(crate) fn run(args: &PersistArgs) -> anyhow::Result<u8> {
    let root = Root::open(args.root.as_deref().unwrap_or(Path::new("/")))?;
    if args.remove {
        let removed = remove(&root)?;
        if root.is_live() {
            after_removal(&root, &removed).iter().try_for_each(|command| make_effective(command))?;
        }
        let what = if removed.is_empty() {
            "there was nothing of stillcore's to remove".to_owned()
        } else {
            format!(
                "removed {}; boot parameters of theirs are in force until the next boot",
                removed.join(", ")
            )
        };
        return Ok(tell(args, &what, &serde_json::json!({ "removed": removed })));
    }
    let plan = args.target.plan(&Root::open(Path::new("/"))?, &State { dir: None })?;
    let cmdline = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let program = std::env::current_exe()?;
    let all = persistence(&root, &plan, &program, &arguments(args, &plan.cpus), &cmdline);
    if !args.print {
        if root.is_live() {
            super::apply::need_root()?;
        }
        install(&root, &all)?;
        if root.is_live() {
            all.commands.iter().try_for_each(|command| make_effective(command))?;
        }
    }
    Ok(tell(args, &text(args, &all), &answer(&all)))
}

/// What the unit calls with: the same order as given here.
fn arguments(args: &PersistArgs, cpus: &model::Cpus) -> Vec<String> {
    let target = &args.target;
    let mut words = vec!["--cpus".to_owned(), cpus.to_string()];
    if target.force {
        words.push("--force".to_owned());
    }
    if target.allow_split {
        words.push("--allow-split".to_owned());
    }
    if let Some(placement) = &target.placement {
        let name = placement.to_possible_value();
        words.extend([
            "--placement".to_owned(),
            name.map_or_else(String::new, |one| one.get_name().to_owned()),
        ]);
    }
    for (option, ids) in [("--with", &target.with), ("--without", &target.without)] {
        if !ids.is_empty() {
            words.extend([option.to_owned(), ids.join(",")]);
        }
    }
    words
}

fn make_effective(command: &[String]) -> anyhow::Result<()> {
    let told = command.join(" ");
    let output = Command::new(&command[0]).args(&command[1..]).output().with_context(|| told.clone())?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    anyhow::bail!(
        "the files are as they are to be, but {told} failed: {}",
        why.lines().last().unwrap_or("no reason given")
    )
}

fn text(args: &PersistArgs, all: &Persistence) -> String {
    let mut lines = Vec::new();
    for (file, text) in &all.files {
        if args.print {
            lines.push(format!("/{file}\n{}", text.trim_end()));
        } else {
            lines.push(format!("written: /{file}"));
        }
    }
    lines.extend(all.links.iter().map(|(link, to)| format!("linked: /{link} to {to}")));
    lines.extend(all.commands.iter().map(|command| format!("run: {}", command.join(" "))));
    lines.extend(all.by_hand.iter().map(|line| format!("by hand: {line}")));
    lines.join("\n")
}

fn answer(all: &Persistence) -> serde_json::Value {
    let files: Vec<_> = all
        .files
        .iter()
        .map(|(file, text)| serde_json::json!({ "path": format!("/{file}"), "text": text }))
        .collect();
    serde_json::json!({ "files": files, "commands": all.commands, "by_hand": all.by_hand })
}

fn tell(args: &PersistArgs, text: &str, answer: &serde_json::Value) -> u8 {
    if args.json {
        let mut value = answer.clone();
        value["schema"] = "stillcore.isolate-persist/1".into();
        println!("{value}");
    } else {
        println!("{text}");
    }
    0
}
