//! The builds of the tests, each named by what it is for. Tests, the command that they start and
//! the program that x86-64 guests run are one build: static, for the musl target of this machine,
//! with the profile `ci`. Beside it there are only the program for arm64 guests, and the wheel,
//! which is another kind of library.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::output::Output;
use crate::repo::{self, Repo};
use crate::shipped;

/// What every command of the one build is given, so that it hits the same build.
const COMMON: [&str; 3] = ["--locked", "--profile", "ci"];

/// The package without tests of its own: they are in Python, and run on the wheel.
pub(super) const WHEEL: &str = "stillcore-py";

/// The programs under `tests/` of the packages, by name. `boot` of the lab and `ros2_interop` of
/// the graphs belong to the slow tier.
const TEST_PROGRAMS: [&str; 4] = ["it", "guests", "disturb", "processes"];

/// The target of this machine.
pub(super) fn musl() -> String {
    on(std::env::consts::ARCH)
}

/// That of machines of the other architecture.
pub(super) fn other_musl() -> String {
    on(if std::env::consts::ARCH == "aarch64" { "x86_64" } else { "aarch64" })
}

fn on(arch: &str) -> String {
    format!("{arch}-unknown-linux-musl")
}

/// A test program of the one build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// Of the package: `stillcore-ftrace`.
    pub package: String,
    /// `it`, or the library's or command's own name.
    pub name: String,
    pub path: PathBuf,
    /// The package's folder, in which its tests run.
    pub folder: PathBuf,
}

/// Everything that the tests need, and the list of test programs.
pub(crate) fn tests(root: &Path, output: &mut Output) -> Result<Vec<Program>> {
    let mut what = vec!["--workspace", "--exclude", WHEEL, "--bins", "--lib"];
    what.extend(TEST_PROGRAMS.iter().flat_map(|name| ["--test", name]));
    let mut programs = test_programs(root, &what, output)?;
    programs.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    is_static(&repo::target_dir(root)?.join(musl()).join("ci/stillcore"), output)?;
    Ok(programs)
}

/// One test program that is not among those.
pub(crate) fn one(root: &Path, package: &str, name: &str, output: &mut Output) -> Result<Program> {
    let programs = test_programs(root, &["--package", package, "--test", name], output)?;
    programs.into_iter().next().with_context(|| format!("{package} has no test program {name}"))
}

/// The test programs of a package with features that the shipped command is without: a build of its
/// own, for whatever this machine's compiler builds for.
pub(crate) fn with_features(
    root: &Path,
    package: &str,
    features: &str,
    output: &mut Output,
) -> Result<Vec<Program>> {
    no_run(root, &["--locked", "--package", package, "--features", features], &[], output)
}

/// Test programs of packages in which the compiler's address sanitizer watches every access to
/// memory. It is not stable yet, and enabled by a variable; and it needs the target with a dynamic
/// C library.
pub(crate) fn with_sanitizer(root: &Path, packages: &[&str], output: &mut Output) -> Result<Vec<Program>> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut what = vec!["--locked", "--target", &target];
    what.extend(packages.iter().flat_map(|package| ["--package", package]));
    let variables = [("RUSTC_BOOTSTRAP", "1"), ("RUSTFLAGS", "-Zsanitizer=address")];
    no_run(root, &what, &variables, output)
}

fn test_programs(root: &Path, what: &[&str], output: &mut Output) -> Result<Vec<Program>> {
    let target = musl();
    no_run(root, &[&["--target", &target], &COMMON[..], what].concat(), &[], output)
}

fn no_run(
    root: &Path,
    what: &[&str],
    variables: &[(&str, &str)],
    output: &mut Output,
) -> Result<Vec<Program>> {
    let mut args = vec!["test", "--no-run"];
    args.extend(what);
    args.extend(["--message-format", "json-render-diagnostics"]);
    let mut typed: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    typed.push(format!("cargo {}", args.join(" ")));
    output.line(&format!("$ {}", typed.join(" ")))?;
    let built = Command::new("cargo")
        .args(&args)
        .envs(variables.iter().copied())
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(output.stdio()?)
        .output()
        .context("run cargo")?;
    ensure!(built.status.success(), "cargo test --no-run: {}", built.status);
    let programs = programs(&String::from_utf8_lossy(&built.stdout))?;
    ensure!(!programs.is_empty(), "cargo built no test program");
    Ok(programs)
}

/// Whether the command is what a guest can run.
fn is_static(path: &Path, output: &mut Output) -> Result<()> {
    let bytes = shipped::read_static(path)?;
    output.line(&format!("the command is static, {} KiB with symbols", bytes.len() / 1024))
}

/// The program of arm64 guests.
pub(crate) fn arm64(root: &Path, output: &mut Output) -> Result<()> {
    let what = ["build", "--package", "stillcore", "--bin", "stillcore", "--target", &on("aarch64")];
    output.run(root, "cargo", &[&what[..], &COMMON].concat())
}

/// Lints, which need no code: nothing here is compiled to run. `chrt --idle` keeps them off CPUs
/// that the tests beside them want.
pub(crate) fn clippy(root: &Path, what: &[&str], output: &mut Output) -> Result<()> {
    let mut args = vec!["--idle", "0", "cargo", "clippy", "--workspace"];
    args.extend(what);
    args.extend(COMMON);
    args.extend(["--", "-D", "warnings"]);
    output.run(root, "chrt", &args)
}

/// The examples in the documentation of those packages that have some. The command and this driver
/// are named for the features of their dependencies: with others, those would be built again.
pub(crate) fn doc_tests(root: &Path, output: &mut Output) -> Result<()> {
    let target = musl();
    let mut args = vec!["--idle", "0", "cargo", "test", "--doc", "--target", &target];
    args.extend(COMMON);
    let packages = with_examples(&Repo::read(root)?);
    for package in packages.iter().map(String::as_str).chain(["stillcore", "xtask"]) {
        args.extend(["--package", package]);
    }
    if packages.is_empty() {
        return output.line("no package has examples in its documentation");
    }
    output.run(root, "chrt", &args)
}

/// Packages with a code block in a comment that is not marked as text.
fn with_examples(repo: &Repo) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in repo.rust() {
        let Some(krate) = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/")) else {
            continue;
        };
        let blocks = text.lines().filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("//! ```").or_else(|| line.strip_prefix("/// ```"))
        });
        // Each block has two such lines; the second has no word.
        if blocks.step_by(2).any(|word| word != "text") {
            found.insert(format!("stillcore-{}", krate.0));
        }
    }
    found
}

/// One line of cargo's account, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The test programs in cargo's account, in the order of their packages and names.
fn programs(account: &str) -> Result<Vec<Program>> {
    let mut found = Vec::new();
    for line in account.lines() {
        let message: Message =
            serde_json::from_str(line).with_context(|| format!("cargo printed {line:?}"))?;
        let is_test = message.reason == "compiler-artifact" && message.profile.is_some_and(|it| it.test);
        let (true, Some(path)) = (is_test, message.executable) else { continue };
        let (Some(id), Some(manifest), Some(target)) =
            (message.package_id, message.manifest_path, message.target)
        else {
            bail!("cargo printed an artefact without a package: {line:?}");
        };
        let Some(folder) = manifest.parent() else { bail!("{} has no folder", manifest.display()) };
        found.push(Program { package: package(&id), name: target.name, path, folder: folder.to_owned() });
    }
    found.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    Ok(found)
}

/// The name in a package id: `path+file:///x/crates/ftrace#stillcore-ftrace@0.1.0`, where the
/// folder may stand for the name.
fn package(id: &str) -> String {
    let (place, rest) = id.rsplit_once('#').unwrap_or(("", id));
    match rest.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => place.rsplit('/').next().unwrap_or(place).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_and_other_artefacts_are_not() {
        let account = r#"{"reason":"compiler-artifact","package_id":"path+file:///w/crates/ftrace#stillcore-ftrace@0.1.0","manifest_path":"/w/crates/ftrace/Cargo.toml","target":{"name":"it","kind":["test"]},"profile":{"test":true},"executable":"/t/it-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/xtask#0.1.0","manifest_path":"/w/xtask/Cargo.toml","target":{"name":"xtask"},"profile":{"test":true},"executable":"/t/xtask-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/cli#stillcore@0.1.0","manifest_path":"/w/crates/cli/Cargo.toml","target":{"name":"stillcore"},"profile":{"test":false},"executable":"/t/stillcore"}
{"reason":"build-finished","success":true}"#;
        let found = programs(account).unwrap();
        let names: Vec<_> = found.iter().map(|one| (one.package.as_str(), one.name.as_str())).collect();
        assert_eq!(names, [("stillcore-ftrace", "it"), ("xtask", "xtask")]);
        assert_eq!(found[0].folder, Path::new("/w/crates/ftrace"));
        assert!(programs("warning: x").is_err());
    }

    #[test]
    fn only_packages_with_code_to_run_are_documented_by_examples() {
        let repo = Repo::of(&[
            ("crates/a/src/lib.rs", "//! ```\n//! a::b();\n//! ```\n"),
            ("crates/b/src/lib.rs", "//! ```text\n//! picture\n//! ```\n"),
            ("crates/c/src/x.rs", "    /// ```no_run\n    /// c();\n    /// ```\n"),
            ("crates/d/src/lib.rs", "//! None.\n"),
        ]);
        assert_eq!(with_examples(&repo), ["stillcore-a", "stillcore-c"].map(str::to_owned).into());
    }
}
