//! The program that ships: its cargo profile, its build, its path, its hash. The one place that
//! names the profile.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::output::Output;
use crate::{elf, repo};

/// The cargo profile of what `make dist` and `make assess` build, and of every program that a bench
/// measures.
pub(crate) const PROFILE: &str = "release";

/// The static target of this machine.
pub(crate) fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// Builds the program for one target; its path.
pub(crate) fn build(root: &Path, target: &str, output: &mut Output) -> Result<PathBuf> {
    let args = ["build", "--locked", "--profile", PROFILE, "--package", "stillcore", "--target", target];
    output.run(root, "cargo", &args)?;
    // Cargo calls the folder of the profile `dev` by another name; no other profile has one.
    let folder = if PROFILE == "dev" { "debug" } else { PROFILE };
    let path = repo::target_dir(root)?.join(target).join(folder).join("stillcore");
    let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    ensure!(
        !elf::has_interpreter(&bytes)?,
        "{} is linked dynamically; expected a static program",
        path.display()
    );
    Ok(path)
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn sha256(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    let mut text = String::new();
    for byte in Sha256::digest(&bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
