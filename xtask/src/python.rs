//! The Python package: a wheel of it, installed into a virtual environment of its own, and its
//! tests on that.
//!
//! Packages come by name from wherever pip is set up to look. Installed packages are not fetched
//! again, so a second run needs no network; neither does the first where pip is set up with a
//! folder (`pip config set global.find-links DIR`).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::output::Output;
use crate::steps::Counts;

/// The oldest Python that the wheel is for.
const OLDEST: &str = "3.10";

/// What its tests need.
const REQUIREMENTS: &str = "crates/py/tests/requirements.txt";

/// Builds, installs, tests. `target`: cargo's target directory.
pub(crate) fn test(root: &Path, target: &Path, output: &mut Output, counts: &mut Counts) -> Result<()> {
    let home = target.join("python");
    let python = environment(root, &home.join("venv"), REQUIREMENTS, output)?;
    let wheel = wheel(root, &python, &home.join("wheels"), output)?;
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
    output.run(root, &python.to_string_lossy(), &install)?;
    let account = home.join("tests.xml");
    let junit = format!("--junit-xml={}", account.display());
    let mut tests = vec!["-B", "-m", "pytest", "-p", "no:cacheprovider", &junit];
    tests.extend(["-c", "crates/py/pyproject.toml", "crates/py/tests"]);
    let outcome = output.run(root, &python.to_string_lossy(), &tests);
    let text = fs::read_to_string(&account).with_context(|| format!("read {}", account.display()))?;
    counts.add(counted(&text).with_context(|| format!("{} is no account of tests", account.display()))?);
    outcome
}

/// The wheel that ships, for one architecture, into `folder`. It takes Rust's target and a compiler
/// of that architecture for its C library (`deps.sh release` installs both).
pub(crate) fn release_wheel(
    root: &Path,
    arch: &str,
    folder: &Path,
    epoch: &str,
    output: &mut Output,
) -> Result<()> {
    let home = crate::repo::target_dir(root)?.join("python");
    let python = environment(root, &home.join("venv"), REQUIREMENTS, output)?;
    let linker =
        format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_LINKER={arch}-linux-gnu-gcc", arch.to_uppercase());
    let target = format!("{arch}-unknown-linux-gnu");
    let date = format!("SOURCE_DATE_EPOCH={epoch}");
    let build: [OsString; 16] = [
        date.into(),
        linker.into(),
        python.into(),
        "-m".into(),
        "maturin".into(),
        "build".into(),
        "--quiet".into(),
        "--locked".into(),
        "--profile".into(),
        "wheel".into(),
        "--target".into(),
        target.into(),
        "--manifest-path".into(),
        "crates/py/Cargo.toml".into(),
        "--out".into(),
        folder.into(),
    ];
    output.run(root, "env", &build)
}

/// The counts in a JUnit file, as pytest writes it.
fn counted(xml: &str) -> Option<Counts> {
    let suite = xml.split("<testsuite ").nth(1)?.split('>').next()?;
    let number = |name: &str| -> Option<u32> {
        suite.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
    };
    let failed = number("failures")? + number("errors")?;
    let reasons = xml.split("<skipped ").skip(1).map(|rest| {
        let reason = rest.split("message=\"").nth(1).and_then(|rest| rest.split('"').next());
        format!("Python: {}", reason.unwrap_or("no reason given"))
    });
    let skipped: Vec<String> = reasons.collect();
    // pytest does not count a skipped test as passed; the table does.
    Some(Counts { passed: number("tests")? - failed, failed, skipped, notes: Vec::new() })
}

/// The interpreter of a virtual environment in `folder` with the packages of a file. Made where it
/// is missing.
pub(crate) fn environment(
    root: &Path,
    folder: &Path,
    requirements: &str,
    output: &mut Output,
) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    if !python.exists() {
        let new_enough =
            format!("import sys; sys.exit(sys.version_info < tuple(map(int, '{OLDEST}'.split('.'))))");
        output
            .run(root, "python3", &["-c", &new_enough])
            .with_context(|| format!("python3 is needed, {OLDEST} or later"))?;
        let make: [OsString; 4] = ["-m".into(), "venv".into(), "--clear".into(), folder.into()];
        output
            .run(root, "python3", &make)
            .context("no virtual environment can be made (Debian: python3-venv)")?;
    }
    let install = [
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
        "--no-compile",
        "-r",
        requirements,
    ];
    output.run(root, &python.to_string_lossy(), &install).with_context(|| {
        format!(
            "the packages of {requirements} cannot be installed: pip needs its index, or a folder with them \
             (pip config set global.find-links DIR)"
        )
    })?;
    Ok(python)
}

/// The wheel, built by maturin without optimisation: built anew in a fraction of the time, and with
/// every assertion.
fn wheel(root: &Path, python: &Path, folder: &Path, output: &mut Output) -> Result<PathBuf> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("remove {}", folder.display()));
        }
        _ => {}
    }
    let build: [OsString; 13] = [
        "-m".into(),
        "maturin".into(),
        "build".into(),
        "--quiet".into(),
        "--locked".into(),
        "--jobs".into(),
        "1".into(),
        "--profile".into(),
        "dev".into(),
        "--manifest-path".into(),
        "crates/py/Cargo.toml".into(),
        "--out".into(),
        folder.into(),
    ];
    output.run(root, &python.to_string_lossy(), &build)?;
    let built = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let built: Vec<PathBuf> = built.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    match &built[..] {
        [wheel] => Ok(wheel.clone()),
        other => bail!("{} files in {}; expected one wheel", other.len(), folder.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn what_pytest_wrote_is_counted() {
        let xml = r#"<testsuites><testsuite name="pytest" errors="0" failures="1" skipped="1" tests="5" time="2">
            <testcase name="a"><skipped type="pytest.skip" message="needs dask">x</skipped></testcase></testsuite>"#;
        let counts = counted(xml).unwrap();
        assert_eq!(
            (counts.passed, counts.failed, counts.skipped),
            (4, 1, vec!["Python: needs dask".to_owned()])
        );
        assert!(counted("<html>").is_none());
    }
}
