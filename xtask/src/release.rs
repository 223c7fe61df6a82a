//! What must hold before a release: the oldest supported compiler, licences, sources and known
//! vulnerabilities of every dependency, and a small static binary for each architecture.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::output::Output;
use crate::steps::{Done, Step, run_all, summary};
use crate::{repo, shipped};

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// The size budget of the stripped binary without middleware features.
const BUDGET_BYTES: u64 = 20 * 1000 * 1000;

/// The checks of `cargo xtask check-release`.
pub(crate) fn check(root: &Path) -> bool {
    let step = |name, work: Work| vec![Step::new(name, move |output, _| work(root, output))];
    finish(&run_all(
        vec![
            step("packages", |root, output| output.run(root, "sh", &["xtask/deps.sh", "release"])),
            step("oldest compiler", oldest_compiler),
            step("licences, bans and sources", |root, output| {
                output.run(root, "cargo", &["deny", "check", "licenses", "bans", "sources"])
            }),
            // Fetches the list of advisories anew: without it nothing is known, and this fails.
            step("known vulnerabilities", |root, output| {
                output.run(root, "cargo", &["deny", "check", "advisories"])
            }),
            step(TARGETS[0], |root, output| within_budget(&shipped::build(root, TARGETS[0], output)?)),
            step(TARGETS[1], |root, output| within_budget(&shipped::build(root, TARGETS[1], output)?)),
        ],
        None,
    ))
}

type Work = fn(&Path, &mut Output) -> Result<()>;

/// Prints the account and says whether all passed.
pub(crate) fn finish(done: &[Done]) -> bool {
    let took = done.iter().map(|step| step.took).sum();
    print!("\n{}", summary(done, took));
    done.iter().all(|d| d.failure.is_none())
}

/// Type-checks everything with the compiler that `rust-version` promises.
fn oldest_compiler(root: &Path, output: &mut Output) -> Result<()> {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).context("read Cargo.toml")?;
    let manifest: toml::Table = manifest.parse().context("parse Cargo.toml")?;
    let wanted =
        manifest["workspace"]["package"]["rust-version"].as_str().context("no rust-version")?.to_owned();
    let listed =
        Command::new("rustup").args(["toolchain", "list"]).output().context("run rustup toolchain list")?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let Some(toolchain) = matching(&listed, &wanted) else {
        bail!("Rust {wanted} is not installed: rustup toolchain install {wanted} --profile minimal");
    };
    let shared = ["run", toolchain, "cargo", "check", "--workspace", "--all-targets", "--locked"];
    let target_dir = repo::target_dir(root)?.join("oldest");
    let mut args: Vec<_> = shared.iter().map(std::ffi::OsString::from).collect();
    args.extend(["--target-dir".into(), target_dir.into()]);
    output.run(root, "rustup", &args)
}

/// The installed toolchain that is version `wanted` (`1.90` accepts `1.90.0-...`, not `1.9.0-...`).
fn matching<'a>(listed: &'a str, wanted: &str) -> Option<&'a str> {
    listed.lines().filter_map(|line| line.split_whitespace().next()).find(|name| {
        name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    })
}

fn within_budget(path: &Path) -> Result<()> {
    let size = fs::metadata(path).with_context(|| format!("read {}", path.display()))?.len();
    println!("{size} bytes of at most {BUDGET_BYTES}");
    ensure!(size < BUDGET_BYTES, "{size} bytes; expected fewer than {BUDGET_BYTES}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toolchain_is_chosen_by_version_not_by_prefix() {
        let listed = "stable-x86_64 (default)\n1.9.0-x86_64\n1.900.0-x86_64\n1.90.0-x86_64\n";
        assert_eq!(matching(listed, "1.90"), Some("1.90.0-x86_64"));
        assert_eq!(matching("1.90-x86_64\n", "1.90"), Some("1.90-x86_64"));
        assert_eq!(matching("stable-x86_64\n1.95.0-x86_64\n", "1.90"), None);
    }
}
