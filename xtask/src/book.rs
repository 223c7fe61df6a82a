//! `cargo xtask book`: the pages of docs/ as a book with search, by mdBook. Search runs in the
//! browser; the book needs no server.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The release of mdBook that the configuration is for.
const VERSION: &str = "0.5.4";

/// Builds the book into target/book. mdBook is built into target/tools where it is missing.
pub(crate) fn build(root: &Path) -> Result<bool> {
    let program = installed(root)?;
    let status = Command::new(&program).arg("build").current_dir(root).status();
    let status = status.with_context(|| format!("run {}", program.display()))?;
    ensure!(status.success(), "mdbook build: {status}");
    println!("written: {}", root.join("target/book/index.html").display());
    Ok(true)
}

fn installed(root: &Path) -> Result<PathBuf> {
    let tools = root.join("target/tools");
    let program = tools.join("bin/mdbook");
    let version = Command::new(&program).arg("--version").output();
    if version.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(VERSION)) {
        return Ok(program);
    }
    let status = Command::new("cargo")
        .args(["install", "mdbook", "--version", VERSION, "--locked", "--quiet", "--no-default-features"])
        .args(["--features", "search", "--root"])
        .arg(&tools)
        .status()
        .context("run cargo install mdbook")?;
    ensure!(status.success(), "cargo install mdbook: {status}");
    Ok(program)
}
