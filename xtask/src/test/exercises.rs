//! The exercises: `docs/exercises/NAME.patch` is all that somebody changes who adds one thing of a
//! kind, as CONTRIBUTING.md shows it. All of them are applied to a copy of the tree, which keeps
//! the conventions: the fast tier. In the slow one it also compiles, and the command that it makes
//! has what was added.
//!
//! A patch begins with commands, `$ stillcore ...`, and below each with lines that it then prints.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{build, clear};
use crate::docs::EXERCISES;
use crate::output::Output;
use crate::repo::{self, Repo};
use crate::steps::Counts;
use crate::tidy;

/// The copy, in which cargo finds the settings of the tree above: not a second time in the copy.
const COPY: &str = "target/exercises";
const SETTINGS: &str = ".cargo/";

/// The command of the copy, beside that of the tree.
const PROGRAM: &str = "exercised";

/// Applies all exercises; the copy keeps the conventions. Returns the packages that they change.
pub(super) fn apply(root: &Path, output: &mut Output, counts: &mut Counts) -> Result<BTreeSet<String>> {
    let (repo, copy) = (Repo::read(root)?, root.join(COPY));
    let mut packages = BTreeSet::from(["cli".to_owned()]);
    clear(&copy)?;
    for path in repo.files.keys().filter(|path| !path.starts_with(SETTINGS)) {
        copy_file(&root.join(path), &copy.join(path)).with_context(|| format!("copy {path}"))?;
    }
    // A repository of its own: in a folder that another one ignores, git applies nothing.
    output.run(&copy, "git", &["init", "--quiet"])?;
    for (path, patch) in patches(&repo) {
        output.run(&copy, "git", &["apply", path]).with_context(|| refresh(path))?;
        packages.extend(patch.lines().filter_map(package).map(str::to_owned));
        counts.passed += 1;
    }
    ensure!(tidy::run(&copy, output)?, "the tree with all exercises breaks a convention");
    Ok(packages)
}

fn patches(repo: &Repo) -> impl Iterator<Item = (&str, &str)> {
    repo.texts(|path| path.starts_with(EXERCISES))
}

/// Applies all exercises, builds the command, and looks for what they add.
pub(super) fn test(root: &Path, output: &mut Output, counts: &mut Counts) -> Result<()> {
    let packages = apply(root, output, counts)?;
    let (repo, copy) = (Repo::read(root)?, root.join(COPY));
    compile(root, &copy, &packages, output)?;
    let program = repo::target_dir(root)?.join(build::musl()).join("ci").join(PROGRAM);
    for (path, patch) in patches(&repo) {
        for (command, lines) in promises(patch) {
            let printed = run(&program, command, &copy, output)?;
            for line in lines {
                ensure!(printed.contains(line), "{path}: {command} does not print {line:?}");
                counts.passed += 1;
            }
        }
    }
    Ok(())
}

/// Copies with the time of the last change, by which cargo sees that it need not compile again what
/// no exercise touches.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("no folder")?)?;
    fs::copy(from, to)?;
    Ok(File::options().write(true).open(to)?.set_modified(fs::metadata(from)?.modified()?)?)
}

/// What to do about a patch that no longer applies.
fn refresh(path: &str) -> String {
    format!(
        "{path} no longer applies; refresh it in a clean tree: git apply --reject {path}, make the change \
         of each *.rej by hand, git add -N ., and put git diff -U1 in place of what is below its commands"
    )
}

/// The package that a line `+++ b/PATH` of a patch changes; the catalogue is part of `audit`.
fn package(line: &str) -> Option<&str> {
    let path = line.strip_prefix("+++ b/")?;
    path.strip_prefix("crates/").map_or(Some("audit"), |rest| rest.split('/').next())
}

/// Builds the command. Packages of a copy are for cargo those of the tree, and would take their
/// place: those that the exercises touch get another version, and the command another name. A test
/// program asks for it, so that all else has the features that the build of the tests gave it.
fn compile(root: &Path, copy: &Path, packages: &BTreeSet<String>, output: &mut Output) -> Result<()> {
    let target = repo::target_dir(root)?.display().to_string();
    let musl = build::musl();
    let mut args = vec!["--idle", "0", "cargo", "test", "--no-run", "--offline", "--profile", "ci"];
    args.extend(["--target-dir", &target, "--target", &musl]);
    args.extend(["--workspace", "--exclude", build::WHEEL, "--test", PROGRAM]);
    for package in packages {
        let path = copy.join("crates").join(package).join("Cargo.toml");
        let manifest = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let manifest = manifest
            .replace("\nversion.workspace = true", "\nversion = \"0.0.0\"")
            .replace("[[bin]]\nname = \"stillcore\"", &format!("[[bin]]\nname = \"{PROGRAM}\""));
        fs::write(&path, manifest).with_context(|| format!("write {}", path.display()))?;
    }
    fs::write(copy.join(format!("crates/cli/tests/{PROGRAM}.rs")), "//! Needs the command.\n")?;
    output.run(copy, "chrt", &args)
}

/// The commands before the first file of a patch, each with the lines that it prints.
fn promises(patch: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in patch.lines().take_while(|line| !line.starts_with("diff ")).filter(|line| !line.is_empty()) {
        match (line.strip_prefix("$ stillcore "), found.last_mut()) {
            (Some(command), _) => found.push((command, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    found
}

/// The output of the command. Its exit code is that of the machine it looks at.
fn run(program: &Path, command: &str, folder: &Path, output: &mut Output) -> Result<String> {
    output.line(&format!("$ {} {command}", program.display()))?;
    let ran = Command::new(program).args(command.split(' ')).current_dir(folder).output();
    let ran = ran.with_context(|| format!("run {}", program.display()))?;
    output.bytes(&ran.stdout)?;
    output.bytes(&ran.stderr)?;
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_says_what_its_commands_print_and_which_packages_it_touches() {
        let patch = "$ stillcore x --list\na\n\n$ stillcore y\nb  c\nd\n\ndiff --git a/a b/a\n--- a/a\n\
                     +++ b/crates/disturb/src/a.rs\n$ stillcore z\n+++ b/catalogue/mechanisms/x.toml\n";
        assert_eq!(promises(patch), [("x --list", vec!["a"]), ("y", vec!["b  c", "d"])]);
        assert_eq!(patch.lines().filter_map(package).collect::<Vec<_>>(), ["disturb", "audit"]);
    }
}
