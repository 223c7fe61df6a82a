//! The driver behind `make test`: the steps of the fast tier, by name, one build for all of them.
//!
//! Tests, the command they start and the program that boots in the lab are the same files: everything is built once,
//! static, for the musl target of this machine with the profile in `ci-profile.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::steps::{Step, run, run_all, summary};
use crate::{elf, hosts, python, tidy};

/// How the tests are run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fail when fewer than two kernels booted in the lab (`false`: only say so).
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    strict: bool,
    /// Run only the steps whose name contains this word (repeatable).
    #[arg(long = "only", value_name = "WORD")]
    only: Vec<String>,
}

/// The kernels that the strict tier wants to have booted.
const KERNELS: usize = 2;

/// Where each guest test leaves `<kernel>`, a file that holds the guest's `uname -r`, once its results are back.
const BOOTS: &str = "target/guest-boots";

/// Where the browser test leaves its screenshots.
const SCREENS: &str = "target/report-screens";

/// Runs the steps, prints the account and says whether all passed.
pub(crate) fn run_tests(root: &Path, options: &Options) -> Result<bool> {
    let build = Build { root };
    let all = vec![
        Step::new("format", move || run(root, "cargo", &["fmt", "--all", "--", "--check"])),
        Step::new("tidy", move || ensure_true(tidy::run(root)?, "a convention is broken")),
        Step::new("clippy", move || build.clippy()),
        Step::new("build", move || build.binary()),
        Step::new("unit, property and transcript tests", move || {
            build.nextest("not (binary(/^guest/) or binary(report_browser) or binary(boot) or binary(hosts))")
        }),
        Step::new("doc tests", move || build.doc_tests()),
        Step::new("python", move || python::test(root, &build.target_dir()?)),
        Step::new("hosts through Ansible", move || build.hosts()),
        Step::new("report in Chromium", move || build.browser()),
        Step::new("lab guests", move || build.guests(options.strict)),
    ];
    let chosen =
        |name: &str| options.only.is_empty() || options.only.iter().any(|word| name.contains(word.as_str()));
    let steps: Vec<_> = all.into_iter().filter(|step| chosen(step.name)).collect();
    ensure!(!steps.is_empty(), "--only {}: no such step", options.only.join(" --only "));
    let done = run_all(steps);
    print!("\n{}", summary(&done));
    Ok(done.iter().all(|d| d.failure.is_none()))
}

/// The one build: the same target, profile and features in every step, so that nothing is compiled twice.
#[derive(Clone, Copy)]
struct Build<'a> {
    root: &'a Path,
}

impl Build<'_> {
    fn target() -> String {
        format!("{}-unknown-linux-musl", std::env::consts::ARCH)
    }

    /// What every cargo command needs to hit the same build.
    fn common(profile_flag: &str) -> Vec<String> {
        let target = Self::target();
        [
            "--workspace",
            "--locked",
            "--features",
            "stillcore/guest-tests,stillcore/browser-tests,stillcore/hosts-tests,stillcore-lab/guest",
            "--target",
            &target,
            "--config",
            "xtask/ci-profile.toml",
            profile_flag,
            "ci",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    fn cargo(self, command: &[&str], profile_flag: &str, rest: &[&str]) -> Result<()> {
        let mut args: Vec<String> = command.iter().map(|&a| a.to_owned()).collect();
        args.extend(Self::common(profile_flag));
        args.extend(rest.iter().map(|&a| a.to_owned()));
        run(self.root, "cargo", &args)
    }

    fn clippy(self) -> Result<()> {
        self.cargo(&["clippy"], "--profile", &["--all-targets", "--", "-D", "warnings"])
    }

    /// Builds the command and looks whether it is what a guest can run: static.
    fn binary(self) -> Result<()> {
        self.cargo(&["build"], "--profile", &["--bins"])?;
        let path = self.target_dir()?.join(Self::target()).join("ci/stillcore");
        let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        ensure!(
            !elf::has_interpreter(&bytes)?,
            "{} is linked dynamically; expected a static program",
            path.display()
        );
        println!("static, {} KiB with symbols", bytes.len() / 1024);
        Ok(())
    }

    fn nextest(self, filter: &str) -> Result<()> {
        self.cargo(
            &["nextest", "run"],
            "--cargo-profile",
            &["--config-file", "xtask/nextest.toml", "--no-fail-fast", "-E", filter],
        )
    }

    fn doc_tests(self) -> Result<()> {
        self.cargo(&["test", "--doc"], "--profile", &[])
    }

    fn browser(self) -> Result<()> {
        let screens = self.root.join(SCREENS);
        clear(&screens)?;
        self.nextest("package(stillcore) and binary(report_browser)")?;
        let stored = files(&screens)?.iter().filter(|p| p.extension().is_some_and(|e| e == "png")).count();
        ensure!(stored >= 2, "{stored} screenshots in {SCREENS}; expected one with scripts and one without");
        Ok(())
    }

    fn hosts(self) -> Result<()> {
        hosts::prepare(self.root)?;
        self.nextest("package(stillcore) and binary(hosts)")
    }

    fn guests(self, strict: bool) -> Result<()> {
        let boots = self.root.join(BOOTS);
        clear(&boots)?;
        let outcome = self.nextest("binary(/^guest/) or binary(boot)");
        let booted = booted(&boots)?;
        println!("{} kernels booted: {}", booted.len(), booted.join(", "));
        if booted.len() < KERNELS {
            let few = format!("{} kernels booted; expected at least {KERNELS}", booted.len());
            if strict {
                bail!("{few} (`make test STRICT=0` allows it)");
            }
            println!("{few}; allowed, because STRICT=0");
            return Ok(());
        }
        outcome
    }

    fn target_dir(self) -> Result<PathBuf> {
        crate::repo::target_dir(self.root)
    }
}

fn ensure_true(good: bool, why: &str) -> Result<()> {
    ensure!(good, "{why}");
    Ok(())
}

/// Removes what an earlier run left, so that a step cannot pass on old evidence.
fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => {
            let mut paths = entries.map(|e| Ok(e?.path())).collect::<Result<Vec<_>>>()?;
            paths.sort();
            Ok(paths)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("list {}", folder.display())),
    }
}

/// The distinct releases that guests reported.
fn booted(folder: &Path) -> Result<Vec<String>> {
    let mut releases = Vec::new();
    for path in files(folder)? {
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        releases.extend(text.lines().next().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned));
    }
    releases.sort();
    releases.dedup();
    Ok(releases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_kernel_twice_is_one_boot_and_an_empty_file_is_none() {
        let folder = std::env::temp_dir().join(format!("xtask-boots-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in
            [("6.1", "6.1.0-1-amd64\n"), ("6.1-again", "6.1.0-1-amd64"), ("6.1-rt", ""), ("x", "6.12\n")]
        {
            fs::write(folder.join(name), text).unwrap();
        }
        let found = booted(&folder);
        clear(&folder).unwrap();
        assert_eq!(found.unwrap(), ["6.1.0-1-amd64", "6.12"]);
        assert_eq!(booted(&folder).unwrap(), Vec::<String>::new());
        clear(&folder).unwrap();
    }
}
