//! A private apt: own sources, lists, archives and (empty) status; the machine's mirrors, proxies
//! and keys.
//!
//! One directory per suite and architecture, so that no two can be confused. `apt-get` with
//! `-c FILE` reads the machine's configuration first and ours last (apt.conf(5)); ours clears the
//! machine's update hooks, which would run its clean-up jobs on directories that are not ours.

use super::sources;
use crate::arch::Arch;
use crate::error::{Error, IoContext, Result};
use crate::program::{APT_CACHE, APT_GET};
use crate::stop::Stop;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A prepared private apt for one suite and architecture.
#[derive(Debug)]
pub(crate) struct Apt {
    dir: PathBuf,
    suite: String,
    stop: Stop,
}

impl Apt {
    /// Writes the configuration below `cache`; fetches nothing. `etc_apt` is the machine's
    /// (`/etc/apt`); `stop` ends whatever is running later on.
    pub(crate) fn prepare(
        cache: &Path,
        etc_apt: &Path,
        suite: &str,
        arch: Arch,
        stop: &Stop,
    ) -> Result<Self> {
        let text = sources::retarget(&sources::read_machine(etc_apt), suite, arch.debian());
        if text.is_empty() {
            return Err(Error::NoMirror { dir: etc_apt.to_path_buf(), suite: suite.into() });
        }
        let dir = cache.join("apt").join(format!("{suite}-{}", arch.debian()));
        for sub in ["lists/partial", "archives/partial", "sources.list.d"] {
            fs::create_dir_all(dir.join(sub)).context("create", dir.join(sub))?;
        }
        let write = |name: &str, text: &str| fs::write(dir.join(name), text).context("write", dir.join(name));
        write("sources.list.d/debian.sources", &text)?;
        write("status", "")?;
        write("apt.conf", &configuration(&dir, arch))?;
        Ok(Self { dir, suite: suite.into(), stop: stop.clone() })
    }

    /// Whether package lists have ever been fetched.
    pub(crate) fn has_lists(&self) -> bool {
        self.stamp().exists()
    }

    /// Fetches the package lists.
    pub(crate) fn update(&self) -> Result<()> {
        APT_GET.run(&mut self.command_get(["update", "-q"]), &self.stop)?;
        fs::write(self.stamp(), "").context("write", self.stamp())
    }

    /// Names of all packages that begin with `prefix`.
    pub(crate) fn package_names(&self, prefix: &str) -> Result<Vec<String>> {
        let text = APT_CACHE.run(&mut self.command_cache(["pkgnames", prefix]), &self.stop)?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }

    /// Versions of a package that the mirrors claim to have, the newest first.
    pub(crate) fn versions(&self, package: &str) -> Result<Vec<String>> {
        let text = APT_CACHE.run(&mut self.command_cache(["madison", package]), &self.stop)?;
        let mut versions: Vec<String> = text
            .lines()
            .filter_map(|line| line.split('|').nth(1))
            .map(|version| version.trim().to_owned())
            .collect();
        versions.sort_by(|a, b| crate::version::compare(b, a));
        versions.dedup();
        Ok(versions)
    }

    /// Downloads one package into the empty directory `into` and returns the file. apt checks it
    /// against the signed lists.
    pub(crate) fn download(&self, package: &str, version: &str, into: &Path) -> Result<PathBuf> {
        let mut command = self.command_get(["download", "-q", &format!("{package}={version}")]);
        APT_GET.run(command.current_dir(into), &self.stop)?;
        deb_files(into)?.into_iter().next().ok_or_else(|| Error::ProgramFailed {
            program: "apt-get download".into(),
            status: "exit status: 0".into(),
            message: format!("no .deb of {package} in {}", into.display()),
        })
    }

    /// Downloads packages with everything they depend on, and returns the files. Reuses what was
    /// fetched before.
    pub(crate) fn download_with_dependencies(&self, packages: &[String]) -> Result<Vec<PathBuf>> {
        let archives = self.dir.join("archives");
        for old in deb_files(&archives)? {
            // A version from an earlier index would be unpacked beside the new one.
            fs::remove_file(&old).context("remove", &old)?;
        }
        let mut command =
            self.command_get(["install", "-q", "-y", "--download-only", "--no-install-recommends"]);
        APT_GET.run(command.args(packages), &self.stop)?;
        deb_files(&archives)
    }

    /// The suite this apt was prepared for.
    pub(crate) fn suite(&self) -> &str {
        &self.suite
    }

    fn stamp(&self) -> PathBuf {
        self.dir.join("updated")
    }

    fn command_get<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = APT_GET.command(["-c"]);
        command.arg(self.dir.join("apt.conf")).args(args);
        command
    }

    fn command_cache<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = APT_CACHE.command(["-c"]);
        command.arg(self.dir.join("apt.conf")).args(args);
        command
    }
}

/// `Debug::NoLocking` because apt insists on the machine's dpkg lock, which a user may not take and
/// we do not need: the caller holds the lab's own. The sandbox user could not enter a private cache
/// directory.
fn configuration(dir: &Path, arch: Arch) -> String {
    let dir = dir.display();
    let arch = arch.debian();
    format!(
        r#"#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear APT::Architectures;
APT::Architecture "{arch}";
APT::Architectures {{ "{arch}"; }};
APT::Sandbox::User "root";
APT::Keep-Downloaded-Packages "true";
Acquire::Languages "none";
Debug::NoLocking "true";
Dir::State "{dir}";
Dir::State::lists "{dir}/lists";
Dir::State::status "{dir}/status";
Dir::State::extended_states "{dir}/extended_states";
Dir::Cache "{dir}";
Dir::Cache::archives "{dir}/archives";
Dir::Log "{dir}";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{dir}/sources.list.d";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
"#
    )
}

fn deb_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).context("read", dir)?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "deb"))
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_stays_inside_its_directory() {
        let text = configuration(Path::new("/c/apt/trixie-arm64"), Arch::Aarch64);
        let paths =
            text.lines().filter(|line| line.starts_with("Dir::")).filter_map(|line| line.split('"').nth(1));
        for path in paths {
            assert!(path == "/dev/null" || path.starts_with("/c/apt/trixie-arm64"), "{path}");
        }
        assert!(text.contains("APT::Architecture \"arm64\";"));
    }

    #[test]
    fn no_debian_source_is_one_clear_error() {
        let (cache, etc) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let error =
            Apt::prepare(cache.path(), etc.path(), "trixie", Arch::X86_64, &Stop::default()).unwrap_err();
        assert!(error.to_string().contains("no Debian source"), "{error}");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0, "nothing may be written");
    }
}
