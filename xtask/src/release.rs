//! What must hold before a release and what a release ships: the oldest supported compiler, licences and sources of
//! every dependency, and one small static binary for each architecture in `dist/` with its checksum.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::steps::{Done, Step, run, run_all, summary};
use crate::{elf, repo};

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// The size budget of the stripped binary without middleware features.
const BUDGET_BYTES: u64 = 20 * 1000 * 1000;

/// The checks of `make check-release`.
pub(crate) fn check(root: &Path) -> bool {
    let steps = vec![
        Step::new("oldest compiler", move || oldest_compiler(root)),
        Step::new("licences, bans and sources", move || {
            run(root, "cargo", &["deny", "check", "licenses", "bans", "sources"])
        }),
        Step::new(TARGETS[0], move || within_budget(&ship(root, TARGETS[0])?)),
        Step::new(TARGETS[1], move || within_budget(&ship(root, TARGETS[1])?)),
    ];
    finish(&run_all(steps))
}

/// Builds both binaries into `dist/` and writes `SHA256SUMS`.
pub(crate) fn dist(root: &Path) -> Result<bool> {
    let folder = root.join("dist");
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let steps = vec![
        Step::new(TARGETS[0], move || collect(root, TARGETS[0])),
        Step::new(TARGETS[1], move || collect(root, TARGETS[1])),
        Step::new("checksums", move || checksums(root)),
    ];
    Ok(finish(&run_all(steps)))
}

/// Prints the account and says whether all passed.
fn finish(done: &[Done]) -> bool {
    print!("\n{}", summary(done));
    done.iter().all(|d| d.failure.is_none())
}

/// Type-checks everything with the compiler that `rust-version` promises.
fn oldest_compiler(root: &Path) -> Result<()> {
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
    run(root, "rustup", &args)
}

/// The installed toolchain that is version `wanted` (`1.90` accepts `1.90.0-...`, not `1.9.0-...`).
fn matching<'a>(listed: &'a str, wanted: &str) -> Option<&'a str> {
    listed.lines().filter_map(|line| line.split_whitespace().next()).find(|name| {
        name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    })
}

/// Builds what is shipped for one target; the path of the binary.
fn ship(root: &Path, target: &str) -> Result<PathBuf> {
    let args = ["build", "--locked", "--release", "--package", "stillcore", "--target", target];
    run(root, "cargo", &args)?;
    let path = repo::target_dir(root)?.join(target).join("release/stillcore");
    let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    ensure!(
        !elf::has_interpreter(&bytes)?,
        "{} is linked dynamically; expected a static program",
        path.display()
    );
    Ok(path)
}

fn within_budget(path: &Path) -> Result<()> {
    let size = fs::metadata(path).with_context(|| format!("read {}", path.display()))?.len();
    println!("{size} bytes of at most {BUDGET_BYTES}");
    ensure!(size < BUDGET_BYTES, "{size} bytes; expected fewer than {BUDGET_BYTES}");
    Ok(())
}

fn shipped_name(target: &str) -> String {
    format!("stillcore-{}-linux", target.split('-').next().unwrap_or(target))
}

fn collect(root: &Path, target: &str) -> Result<()> {
    let built = ship(root, target)?;
    let shipped = root.join("dist").join(shipped_name(target));
    fs::copy(&built, &shipped).with_context(|| format!("copy to {}", shipped.display()))?;
    Ok(())
}

fn checksums(root: &Path) -> Result<()> {
    use sha2::{Digest, Sha256};
    let folder = root.join("dist");
    let mut text = String::new();
    for target in TARGETS {
        let name = shipped_name(target);
        let bytes = fs::read(folder.join(&name)).with_context(|| format!("read dist/{name}"))?;
        for byte in Sha256::digest(&bytes) {
            let _ = write!(text, "{byte:02x}");
        }
        // The format of sha256sum, so that `sha256sum -c SHA256SUMS` checks it.
        let _ = writeln!(text, "  {name}");
    }
    fs::write(folder.join("SHA256SUMS"), &text).context("write dist/SHA256SUMS")?;
    print!("{text}");
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

    #[test]
    fn shipped_names_tell_the_architectures_apart() {
        assert_eq!(TARGETS.map(shipped_name), ["stillcore-x86_64-linux", "stillcore-aarch64-linux"]);
    }
}
