//! The Python package: a wheel of it, installed into a virtual environment of its own, and its tests on that.
//!
//! Packages come by name from wherever pip is set up to look. What is there already is not asked for again, so that a second run
//! needs no network; the first can do without, too, where pip is told of a folder (`pip config set global.find-links DIR`).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::steps::run;

/// The oldest Python that the wheel is for.
const OLDEST: &str = "3.10";

/// Builds, installs, tests. `target`: cargo's target directory.
pub(crate) fn test(root: &Path, target: &Path) -> Result<()> {
    let home = target.join("python");
    let python = environment(root, &home.join("venv"))?;
    let wheel = wheel(root, &python, &home.join("wheels"))?;
    let install: [OsString; 9] = [
        "-m".into(),
        "pip".into(),
        "--quiet".into(),
        "--disable-pip-version-check".into(),
        "install".into(),
        "--no-deps".into(),
        "--no-index".into(),
        "--force-reinstall".into(),
        wheel.into(),
    ];
    run(root, &python.to_string_lossy(), &install)?;
    let tests =
        ["-B", "-m", "pytest", "-p", "no:cacheprovider", "-c", "crates/py/pyproject.toml", "crates/py/tests"];
    run(root, &python.to_string_lossy(), &tests)
}

/// The interpreter of an environment that has what the tests need.
fn environment(root: &Path, folder: &Path) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    if !python.exists() {
        let new_enough =
            format!("import sys; sys.exit(sys.version_info < tuple(map(int, '{OLDEST}'.split('.'))))");
        run(root, "python3", &["-c", &new_enough])
            .with_context(|| format!("python3 is needed, {OLDEST} or later"))?;
        let make: [OsString; 4] = ["-m".into(), "venv".into(), "--clear".into(), folder.into()];
        run(root, "python3", &make).context("no virtual environment can be made (Debian: python3-venv)")?;
    }
    let install = [
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
        "-r",
        "crates/py/tests/requirements.txt",
    ];
    run(root, &python.to_string_lossy(), &install).context(
        "the packages of crates/py/tests/requirements.txt cannot be had: pip needs its index, or a folder with them \
         (pip config set global.find-links DIR)",
    )?;
    Ok(python)
}

/// The wheel, built by maturin without optimisation: built anew in a fraction of the time, and with every assertion.
fn wheel(root: &Path, python: &Path, folder: &Path) -> Result<PathBuf> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("remove {}", folder.display()));
        }
        _ => {}
    }
    let build: [OsString; 11] = [
        "-m".into(),
        "maturin".into(),
        "build".into(),
        "--quiet".into(),
        "--locked".into(),
        "--profile".into(),
        "dev".into(),
        "--manifest-path".into(),
        "crates/py/Cargo.toml".into(),
        "--out".into(),
        folder.into(),
    ];
    run(root, &python.to_string_lossy(), &build)?;
    let built = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let built: Vec<PathBuf> = built.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    match &built[..] {
        [wheel] => Ok(wheel.clone()),
        other => bail!("{} files in {}; expected one wheel", other.len(), folder.display()),
    }
}
