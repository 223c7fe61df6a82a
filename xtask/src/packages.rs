//! `cargo xtask dist`: the static programs, and what `xtask/pack` packs them into. That crate is
//! built here and nowhere else, since it takes more libraries than all chores together.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::jobs::Jobs;
use crate::output::Output;
use crate::steps::{Step, run_all};
use crate::{python, release, repo, results, shipped};

/// What to package, and where to.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Architecture of the packages.
    #[arg(long, value_name = "ARCH", value_parser = ["x86_64", "aarch64", "all"], default_value = "all")]
    arch: String,
    /// Directory to write to.
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
    /// Program to package instead of one built now: x86_64=FILE or aarch64=FILE (repeatable).
    #[arg(long = "program", value_name = "ARCH=FILE")]
    programs: Vec<String>,
    /// Version of the packages [default: the workspace's].
    #[arg(long)]
    version: Option<String>,
    /// Also build the wheel of the Python package for each architecture.
    #[arg(long)]
    wheels: bool,
    /// Only print results that were measured on another program; do not fail.
    #[arg(long)]
    warn_older_results: bool,
}

/// Builds, packages, and demands that every result of the program is of this one.
pub(crate) fn dist(root: &Path, options: &Options) -> Result<bool> {
    let out = root.join(&options.out);
    let arches: Vec<&str> = match options.arch.as_str() {
        "all" => vec!["x86_64", "aarch64"],
        one => vec![one],
    };
    let epoch = epoch(root)?;
    let mut wheels = Vec::new();
    if options.wheels {
        let folder = repo::target_dir(root)?.join("wheels");
        let build = |arch: &str| {
            let arch = arch.to_owned();
            let (folder, epoch) = (folder.clone(), epoch.clone());
            Step::new("wheel", move |output, _| python::release_wheel(root, &arch, &folder, &epoch, output))
        };
        std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        wheels.extend(arches.iter().map(|arch| vec![build(arch)]));
    }
    let package = Step::new("packages", |output, _| package(root, options, &arches, &out, &epoch, output));
    let here = arches.contains(&std::env::consts::ARCH) && options.programs.is_empty();
    let mut phases = wheels;
    phases.push(vec![package]);
    if here {
        let program = out.join(format!("stillcore-{}-linux", std::env::consts::ARCH));
        let warn = options.warn_older_results;
        phases.push(vec![Step::new("results of this program", move |_, _| are_of(root, &program, warn))]);
    }
    Ok(release::finish(&run_all(phases, None)))
}

/// Packages of programs in a directory, with a version of their own where one is given.
pub(crate) fn package(
    root: &Path,
    options: &Options,
    arches: &[&str],
    out: &Path,
    epoch: &str,
    output: &mut Output,
) -> Result<()> {
    let mut words: Vec<OsString> = Vec::new();
    let mut here = None;
    for arch in arches {
        let file = program(root, options, arch, output)?;
        if *arch == std::env::consts::ARCH {
            here = Some(file.clone());
        }
        let mut word = OsString::from(format!("{arch}="));
        word.push(file);
        words.extend(["--program".into(), word]);
    }
    // Pages and completions are those of any architecture; a program of this one prints them.
    let pages = match here {
        Some(file) => file,
        None => program(root, options, std::env::consts::ARCH, output)?,
    };
    words.extend(["--pages".into(), pages.into()]);
    if let Some(version) = &options.version {
        words.extend(["--version".into(), version.into()]);
    }
    if options.wheels {
        words.extend(["--with".into(), repo::target_dir(root)?.join("wheels").into()]);
    }
    call(root, out, epoch, words, output)
}

/// Calls the packager.
fn call(root: &Path, out: &Path, epoch: &str, words: Vec<OsString>, output: &mut Output) -> Result<()> {
    let first = ["run", "--locked", "--quiet", "--package", "pack", "--", "--epoch", epoch, "--out"];
    let mut all: Vec<OsString> = first.map(OsString::from).into();
    all.push(out.into());
    all.extend(words);
    output.run(root, "cargo", &all)
}

/// The program for an architecture: the one named, or one built now.
fn program(root: &Path, options: &Options, arch: &str, output: &mut Output) -> Result<PathBuf> {
    let named = options.programs.iter().find_map(|word| word.strip_prefix(arch)?.strip_prefix('='));
    let Some(named) = named else {
        return shipped::build(root, &format!("{arch}-unknown-linux-musl"), output);
    };
    let path = PathBuf::from(named);
    shipped::read_static(&path)?;
    Ok(path)
}

/// The time that every file of a package has: `SOURCE_DATE_EPOCH`, else that of the commit.
pub(crate) fn epoch(root: &Path) -> Result<String> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        ensure!(given.parse::<u32>().is_ok(), "SOURCE_DATE_EPOCH is {given:?}; expected seconds since 1970");
        return Ok(given);
    }
    if !root.join(".git").exists() {
        bail!("no commit says what time files are to have: set SOURCE_DATE_EPOCH");
    }
    let safe = format!("safe.directory={}", root.display());
    let words = ["-c", &safe, "log", "-1", "--format=%ct"];
    let out = Command::new("git").args(words).current_dir(root).output().context("run git log")?;
    ensure!(out.status.success(), "git log: {}", String::from_utf8_lossy(&out.stderr).trim());
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Fails, naming them, where stored results are of another program than this one.
fn are_of(root: &Path, program: &Path, only_warn: bool) -> Result<()> {
    let sum = shipped::sha256(program)?;
    let older = results::of_another_program(&Jobs::read(root)?, &results::read(root)?, &sum);
    for line in &older {
        println!("{line}");
    }
    ensure!(only_warn || older.is_empty(), "{} results are not of the program that ships", older.len());
    Ok(())
}

/// Packages of this machine's program made twice, which must be the same, and once as a later
/// version; then they are installed, upgraded and removed.
pub(crate) fn test(root: &Path, output: &mut Output) -> Result<()> {
    let folder = repo::target_dir(root)?.join("packages");
    let arch = std::env::consts::ARCH;
    let program = shipped::build(root, &shipped::target(), output)?;
    let mut word = OsString::from(format!("{arch}="));
    word.push(program);
    let epoch = epoch(root)?;
    let made = |name: &str, more: &[&str], output: &mut Output| -> Result<PathBuf> {
        let out = folder.join(name);
        let mut words = vec!["--program".into(), word.clone()];
        words.extend(more.iter().map(OsString::from));
        call(root, &out, &epoch, words, output)?;
        Ok(out)
    };
    let (one, two) = (made("one", &[], output)?, made("two", &[], output)?);
    let sums = |folder: &Path| std::fs::read_to_string(folder.join("SHA256SUMS")).context("read SHA256SUMS");
    ensure!(
        sums(&one)? == sums(&two)?,
        "two calls made different packages: {} and {}",
        one.display(),
        two.display()
    );
    let later = made("later", &["--version", "9.9.9"], output)?;
    let script = [OsString::from("xtask/install.sh"), one.into(), later.into(), folder.into()];
    output.run(root, "sh", &script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_time_of_the_commit() {
        let time: u32 = epoch(&repo::root()).unwrap().parse().unwrap();
        assert!(time > 1_700_000_000);
    }
}
