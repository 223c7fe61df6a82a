//! `stillcore isolate persist`: the boot line where the boot loader keeps it, and files of
//! stillcore's own that bring the rest of the isolation back after a boot.

use super::desired::{self, Reading};
use super::target::{NextBoot, Planned, Target};
use super::{State, boot_line};
use anyhow::Context;
use audit::keep::Keep;
use audit::{Profile, program};
use boot::Writing;
use clap::Args;
use isolate::persist::{Persistence, after_removal, install, persistence, remove};
use machine::Root;
use model::plan::Plan;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of `isolate persist`.
#[derive(Debug, Args)]
pub(crate) struct PersistArgs {
    /// What to isolate.
    #[command(flatten)]
    pub(crate) target: Target,
    /// Restore the boot loader's files and remove the others.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Only print the files.
    #[arg(long, conflicts_with = "remove")]
    pub(crate) print: bool,
    /// Root directory of an image to write into; settings and CPUs are still planned for this
    /// machine.
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Program that the systemd unit starts [default: this one; with --root, the one installed in
    /// the image].
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,
    /// Kernel release to compute the boot line for, such as 6.12 [default: the running one; with
    /// --root, the installed one].
    #[arg(long, value_name = "RELEASE")]
    pub(crate) for_kernel: Option<String>,
    /// Try the boot line in the next boot only, with a separate entry that the boot loader uses
    /// once.
    #[arg(long, conflicts_with = "remove")]
    pub(crate) once: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes or removes.
pub(crate) fn run(args: &PersistArgs) -> anyhow::Result<u8> {
    let root = Root::open(args.root.as_deref().unwrap_or(Path::new("/")))?;
    if args.remove {
        return undo(args, &root);
    }
    if let Some(keep) = args.target.keep.iter().find(|keep| !keep.is_lasting()) {
        anyhow::bail!(
            "--keep {keep}: a number does not outlive a boot; name it by its task, group or policy"
        );
    }
    // A trial changes the line alone.
    let program = if args.once { None } else { Some(program_of(args, &root)?) };
    let image = (!root.is_live()).then(|| root.clone());
    let live = Root::open(Path::new("/"))?;
    let next = NextBoot { kernel: args.for_kernel.clone(), image };
    let Planned { plan, profile } =
        args.target.plan_for(&live, &State { dir: None }, Reading::ToActUpon, next)?;
    let all = match program {
        Some(program) => persistence(&root, &plan, &program, &words(&args.target, &root, &profile)?),
        None => Persistence::default(),
    };
    let line = if args.once {
        let release = plan.boot_line.kernel.split(' ').next().unwrap_or_default();
        boot::writing_once(&root, &plan.boot_line, release)?
    } else {
        boot::writing(&root, &plan.boot_line)?
    };
    if !args.print {
        if root.is_live() {
            super::apply::need_root()?;
        }
        boot::write(&root, &line)?;
        install(&root, &all).inspect_err(|_| {
            let _ = boot::undo(&root);
        })?;
        if root.is_live() {
            // Where the loader keeps the line by a command that fails, nothing is in force.
            let kept = line.commands.iter().try_for_each(|command| make_effective(command));
            kept.inspect_err(|_| {
                if line.files.is_empty() {
                    let _ = boot::undo(&root);
                }
            })?;
            all.commands.iter().try_for_each(|command| make_effective(command))?;
        }
    }
    report(args, &text(args, &plan, &line, &all), &answer(&plan, &line, &all));
    Ok(0)
}

fn undo(args: &PersistArgs, root: &Root) -> anyhow::Result<u8> {
    let line = boot::undo(root)?.unwrap_or_default();
    let removed = remove(root)?;
    if root.is_live() {
        let after = after_removal(root, &removed);
        line.commands.iter().chain(&after).try_for_each(|command| make_effective(command))?;
    }
    let mut lines = Vec::new();
    let named = [("restored", &line.restored), ("taken out of", &line.cleaned), ("removed", &removed)];
    for (what, files) in named.iter().filter(|(_, files)| !files.is_empty()) {
        lines.push(format!("{what}: {}", files.join(", ")));
    }
    if !root.is_live() {
        lines
            .extend(line.commands.iter().map(|command| format!("run on the machine: {}", command.join(" "))));
    }
    lines.extend(line.left.iter().map(|left| format!("left as it is: {left}")));
    if lines.is_empty() {
        lines.push("there was nothing of stillcore's to remove".to_owned());
    } else {
        lines.push("boot parameters are in force until the next boot".to_owned());
    }
    let answer = serde_json::json!({
        "removed": removed, "restored": line.restored, "cleaned": line.cleaned, "left": line.left,
    });
    report(args, &lines.join("\n"), &answer);
    Ok(if line.left.is_empty() { 0 } else { 2 })
}

/// The program for the unit, or why there is none.
fn program_of(args: &PersistArgs, root: &Root) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let program = match &args.program {
        Some(program) => program.clone(),
        None if root.is_live() => own.clone(),
        None => program::installed(root).with_context(|| {
            format!(
                "no stillcore is installed in {}: install -D -m 0755 {} {}/usr/local/sbin/stillcore, or name it with --program",
                root.at("").display(),
                own.display(),
                root.at("").display().to_string().trim_end_matches('/')
            )
        })?,
    };
    trusted_program(root, &program, &own)?;
    Ok(program)
}

/// Refuses a program that a unit of root's must not start. `own` is what could be installed.
pub(crate) fn trusted_program(root: &Root, program: &Path, own: &Path) -> anyhow::Result<()> {
    program::trusted(root, program).map_err(|reason| {
        anyhow::anyhow!(
            "root must not start {} at each boot: {reason}; install it first (install -m 0755 {} /usr/local/sbin/stillcore) \
             and call that, or name it with --program",
            program.display(),
            own.display()
        )
    })
}

/// Arguments of a unit's call: the same order as given here.
pub(crate) fn words(target: &Target, root: &Root, profile: &Profile) -> anyhow::Result<Vec<String>> {
    if let Some(file) = &target.profile {
        let file = desired::lasting(root, file)?;
        let mut words = vec!["--profile".to_owned(), file.display().to_string()];
        words.extend(kept(&target.keep));
        return Ok(words);
    }
    let mut words = vec!["--cpus".to_owned(), profile.cpus.to_string()];
    let flags = [("--force", target.force), ("--allow-split", target.allow_split)];
    words.extend(flags.iter().filter(|(_, on)| *on).map(|(flag, _)| (*flag).to_owned()));
    if let Some(placement) = profile.placement {
        words.extend(["--placement".to_owned(), placement.name().to_owned()]);
    }
    for (option, ids) in [("--with", &target.with), ("--without", &target.without)] {
        if !ids.is_empty() {
            words.extend([option.to_owned(), ids.join(",")]);
        }
    }
    words.extend(kept(&target.keep));
    if target.move_pinned {
        words.push("--move-pinned".to_owned());
    }
    Ok(words)
}

fn kept(keep: &[Keep]) -> impl Iterator<Item = String> {
    keep.iter().flat_map(|keep| ["--keep".to_owned(), keep.to_string()])
}

/// Writes what a service needs, or only prints it; `service`: its name.
pub(crate) fn put(root: &Root, all: &Persistence, print: bool, service: &str) -> anyhow::Result<()> {
    let mut lines: Vec<String> = all.by_hand.iter().map(|line| format!("by hand: {line}")).collect();
    if print {
        lines.extend(all.files.iter().map(|file| format!("/{}\n{}", file.path, file.text.trim_end())));
    } else {
        super::apply::need_root()?;
        install(root, all)?;
        all.commands.iter().try_for_each(|command| make_effective(command))?;
        lines.extend(all.files.iter().map(|file| format!("written: /{}", file.path)));
        lines.extend(all.links.iter().map(|link| format!("linked: /{} to {}", link.path, link.to)));
        if !all.files.is_empty() {
            lines.push(format!("start it now with systemctl start {service}"));
        }
    }
    println!("{}", lines.join("\n"));
    Ok(())
}

/// Runs a command that makes written files count.
pub(crate) fn make_effective(command: &[String]) -> anyhow::Result<()> {
    let call = command.join(" ");
    let output = Command::new(&command[0]).args(&command[1..]).output().with_context(|| call.clone())?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    anyhow::bail!(
        "the files are as they are to be, but {call} failed: {}",
        why.lines().last().unwrap_or("no reason given")
    )
}

fn text(args: &PersistArgs, plan: &Plan, line: &Writing, all: &Persistence) -> String {
    let mut lines = vec![format!("boot loader: {}", line.loader)];
    lines.extend(boot_line::text(&plan.boot_line).lines().map(str::to_owned));
    if plan.boot_line.is_settled() {
        lines.push("  the kernel command line needs no change".to_owned());
    }
    let boot = line.files.iter().map(|file| (&file.path, String::from_utf8_lossy(&file.after).into_owned()));
    let rest = all.files.iter().map(|one| (&one.path, one.text.clone()));
    for (file, text) in boot.chain(rest) {
        if args.print {
            lines.push(format!("/{file}\n{}", text.trim_end()));
        } else {
            lines.push(format!("written: /{file}"));
        }
    }
    lines.extend(all.links.iter().map(|link| format!("linked: /{} to {}", link.path, link.to)));
    let commands = line.commands.iter().chain(&all.commands);
    let run = if args.root.is_some() { "run on the machine" } else { "run" };
    lines.extend(commands.map(|command| format!("{run}: {}", command.join(" "))));
    lines.extend(line.by_hand.iter().chain(&all.by_hand).map(|line| format!("by hand: {line}")));
    lines.extend(line.next.iter().map(|line| format!("note: {line}")));
    lines.join("\n")
}

fn answer(plan: &Plan, line: &Writing, all: &Persistence) -> serde_json::Value {
    let boot = line.files.iter().map(|file| (&file.path, String::from_utf8_lossy(&file.after).into_owned()));
    let files: Vec<_> = boot
        .chain(all.files.iter().map(|one| (&one.path, one.text.clone())))
        .map(|(file, text)| serde_json::json!({ "path": format!("/{file}"), "text": text }))
        .collect();
    let commands: Vec<_> = line.commands.iter().chain(&all.commands).collect();
    let by_hand: Vec<_> = line.by_hand.iter().chain(&all.by_hand).collect();
    serde_json::json!({
        "loader": line.loader, "boot_line": plan.boot_line, "files": files, "commands": commands,
        "by_hand": by_hand, "notes": line.next,
    })
}

fn report(args: &PersistArgs, text: &str, answer: &serde_json::Value) {
    if args.json {
        let mut value = answer.clone();
        value["schema"] = "stillcore.isolate-persist/1".into();
        println!("{value}");
    } else {
        println!("{text}");
    }
}
