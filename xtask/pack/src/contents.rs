//! What every package holds, and the tarball, which holds it for people who install by hand.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::archive::{Entry, gzip, tar};

/// An architecture of the static program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    pub(crate) fn of(name: &str) -> Result<Self> {
        match name {
            "x86_64" => Ok(Self::X86_64),
            "aarch64" => Ok(Self::Aarch64),
            _ => bail!("no architecture {name}; expected x86_64 or aarch64"),
        }
    }

    /// The name that Linux and RPM have for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The name that Debian and OCI have for it.
    pub(crate) fn other_name(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Whether a program is for it: `e_machine` of the ELF header (System V gABI, chapter 4).
    pub(crate) fn is_of(self, program: &[u8]) -> bool {
        let machine: u16 = match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
        };
        program.starts_with(b"\x7fELF\x02\x01") && program.get(18..20) == Some(&machine.to_le_bytes()[..])
    }
}

/// What is released.
#[derive(Debug, Clone)]
pub(crate) struct Release {
    pub version: String,
    /// Time of every file, seconds since 1970.
    pub epoch: u32,
    pub maintainer: String,
}

/// One line about the program, as lists of packages show it.
pub(crate) const SUMMARY: &str = "find out what disturbs a CPU core, and isolate it";

/// A few lines about it.
pub(crate) const DESCRIPTION: [&str; 6] = [
    "stillcore audits the isolation of CPUs, measures wake-up latency and stolen",
    "time, records what the kernel runs on the measured CPUs and names the source",
    "of each interference event. It isolates CPUs and undoes that, and computes",
    "which deadlines can then be guaranteed.",
    "",
    "For real-time Linux on multicore machines. One static program.",
];

/// Everything but the program.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    /// Name and text of each manual page.
    pub pages: Vec<(String, Vec<u8>)>,
    pub bash: Vec<u8>,
    pub zsh: Vec<u8>,
    pub fish: Vec<u8>,
    pub unit: Vec<u8>,
    pub config: Vec<u8>,
    pub readme: Vec<u8>,
    pub changelog: Vec<u8>,
    pub apache: Vec<u8>,
    pub mit: Vec<u8>,
    /// What scripts of packages do after the files are there.
    pub reload: String,
    /// What they do before the program goes.
    pub undo: String,
    /// What they do once nothing of the package is to remain.
    pub forget: String,
}

impl Sources {
    /// Reads the source tree, and has `program` print its pages.
    pub(crate) fn read(root: &Path, program: &Path, release: &Release) -> Result<Self> {
        let file = |path: &str| {
            let path = root.join(path);
            fs::read(&path).with_context(|| format!("read {}", path.display()))
        };
        let script = |path: &str| Ok::<_, anyhow::Error>(String::from_utf8(file(path)?)?);
        let completions = |shell: &str| print(program, &["completions", shell]);
        Ok(Self {
            pages: pages(program, release)?,
            bash: completions("bash")?,
            zsh: completions("zsh")?,
            fish: completions("fish")?,
            unit: file("deploy/packages/stillcore-isolate.service")?,
            config: file("deploy/packages/config.toml")?,
            readme: file("README.md")?,
            changelog: file("CHANGELOG.md")?,
            apache: file("LICENSE-APACHE")?,
            mit: file("LICENSE-MIT")?,
            reload: script("deploy/packages/reload.sh")?,
            undo: script("deploy/packages/undo.sh")?,
            forget: script("deploy/packages/forget.sh")?,
        })
    }

    /// The files that both kinds of package have at the same places. `zsh` is where the
    /// distribution has completions of zsh.
    pub(crate) fn installed(&self, program: &[u8], zsh: &str) -> Result<Vec<Entry>> {
        let mut files = vec![
            Entry::program("usr/bin/stillcore", program),
            Entry::plain("usr/share/bash-completion/completions/stillcore", self.bash.clone()),
            Entry::plain(format!("{zsh}/_stillcore"), self.zsh.clone()),
            Entry::plain("usr/share/fish/vendor_completions.d/stillcore.fish", self.fish.clone()),
            Entry::plain("usr/share/doc/stillcore/README.md", self.readme.clone()),
        ];
        for (name, page) in &self.pages {
            files.push(Entry::plain(format!("usr/share/man/man1/{name}.gz"), gzip(page)?));
        }
        Ok(files)
    }

    /// The tarball.
    pub(crate) fn tarball(&self, release: &Release, arch: Arch, program: &[u8]) -> Result<Vec<u8>> {
        let mut files = vec![
            Entry::program("stillcore", program),
            Entry::plain("README.md", self.readme.clone()),
            Entry::plain("CHANGELOG.md", self.changelog.clone()),
            Entry::plain("LICENSE-APACHE", self.apache.clone()),
            Entry::plain("LICENSE-MIT", self.mit.clone()),
            Entry::plain("config.toml", self.config.clone()),
            Entry::plain("systemd/stillcore-isolate.service", self.unit.clone()),
            Entry::plain("completions/stillcore.bash", self.bash.clone()),
            Entry::plain("completions/_stillcore", self.zsh.clone()),
            Entry::plain("completions/stillcore.fish", self.fish.clone()),
        ];
        let page = |(name, page): &(String, Vec<u8>)| Entry::plain(format!("man/{name}"), page.clone());
        files.extend(self.pages.iter().map(page));
        let top = tarball_name(release, arch).replace(".tar.gz", "/");
        gzip(&tar(&files, &top, release.epoch)?)
    }
}

pub(crate) fn tarball_name(release: &Release, arch: Arch) -> String {
    format!("stillcore-{}-{}-linux.tar.gz", release.version, arch.name())
}

/// What a program prints.
fn print(program: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program).args(words).output();
    let output = output.with_context(|| format!("run {}", program.display()))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} {}: {}", program.display(), words.join(" "), error.trim());
    Ok(output.stdout)
}

/// The manual pages, by name.
fn pages(program: &Path, release: &Release) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = tempfile::tempdir().context("make a temporary directory")?;
    print(program, &["man", "--out", &folder.path().to_string_lossy()])?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder.path()).context("list the manual pages")? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = fs::read(entry.path()).with_context(|| format!("read {name}"))?;
        ensure!(text.starts_with(b".ie") || text.starts_with(b".TH"), "{name} is no manual page");
        pages.push((name, text));
    }
    pages.sort();
    ensure!(!pages.is_empty(), "stillcore {} prints no manual pages", release.version);
    Ok(pages)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fmt::Write as _;

    pub(crate) fn release() -> Release {
        let maintainer = "A <a@example.org>".to_owned();
        Release { version: "1.2.3".to_owned(), epoch: 1_700_000_000, maintainer }
    }

    /// The source tree's own files, with two pages.
    pub(crate) fn sources() -> Sources {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).unwrap();
        let file = |path: &str| fs::read(root.join(path)).unwrap();
        let page = |name: &str| (name.to_owned(), b".TH x 1\n".to_vec());
        Sources {
            pages: ["stillcore.1", "stillcore-audit.1"].map(page).into(),
            bash: b"bash".to_vec(),
            zsh: b"zsh".to_vec(),
            fish: b"fish".to_vec(),
            unit: file("deploy/packages/stillcore-isolate.service"),
            config: file("deploy/packages/config.toml"),
            readme: b"readme".to_vec(),
            changelog: b"changes".to_vec(),
            apache: b"apache".to_vec(),
            mit: file("LICENSE-MIT"),
            reload: String::from_utf8(file("deploy/packages/reload.sh")).unwrap(),
            undo: String::from_utf8(file("deploy/packages/undo.sh")).unwrap(),
            forget: String::from_utf8(file("deploy/packages/forget.sh")).unwrap(),
        }
    }

    #[test]
    fn the_architecture_is_that_of_the_elf_header() {
        let mut program = b"\x7fELF\x02\x01".to_vec();
        program.resize(64, 0);
        program[18] = 183;
        assert!(Arch::Aarch64.is_of(&program) && !Arch::X86_64.is_of(&program));
        assert!(!Arch::Aarch64.is_of(b"#!/bin/sh"));
        assert!(Arch::of("riscv64").is_err());
    }

    /// The recipes install files of the tarball, and name its version and its licences.
    #[test]
    fn recipes_install_what_the_tarball_holds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let yocto = format!("deploy/yocto/recipes-stillcore/stillcore/stillcore_{version}.bb");
        let buildroot = "deploy/buildroot/package/stillcore/stillcore.mk";
        let made = sources().tarball(&release(), Arch::X86_64, b"program").unwrap();
        let mut archive = ::tar::Archive::new(flate2::read::GzDecoder::new(&made[..]));
        let held: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| String::from_utf8(entry.unwrap().path_bytes().to_vec()).unwrap())
            .map(|path| path.split_once('/').unwrap().1.to_owned())
            .collect();
        for (recipe, top) in [(yocto.as_str(), "${S}/"), (buildroot, "$(@D)/")] {
            let text = fs::read_to_string(root.join(recipe)).unwrap();
            let named: Vec<&str> = text
                .split(top)
                .skip(1)
                .map(|rest| rest.split_whitespace().next().unwrap())
                .map(|path| path.trim_end_matches("*.1"))
                .collect();
            assert!(named.len() >= 3, "{recipe}: {named:?}");
            for path in named {
                assert!(held.iter().any(|one| one.starts_with(path)), "{recipe}: {path}");
            }
        }
        let text = fs::read_to_string(root.join(buildroot)).unwrap();
        assert!(text.contains(&format!("STILLCORE_VERSION = {version}\n")));
        let sums =
            fs::read_to_string(root.join("deploy/buildroot/package/stillcore/stillcore.hash")).unwrap();
        let recipe = fs::read_to_string(root.join(&yocto)).unwrap();
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let licence = fs::read(root.join(name)).unwrap();
            assert!(
                sums.contains(&format!("sha256  {}  {name}\n", crate::sums::hexadecimal(&licence))),
                "{name}"
            );
            let mut md5 = String::new();
            for byte in <md5::Md5 as md5::Digest>::digest(&licence) {
                let _ = write!(md5, "{byte:02x}");
            }
            assert!(recipe.contains(&format!("file://{name};md5={md5}")), "{name}");
        }
    }

    #[test]
    fn a_tarball_is_the_same_each_time_and_has_one_top_directory() {
        let make = || sources().tarball(&release(), Arch::X86_64, b"program").unwrap();
        assert_eq!(make(), make());
        let made = make();
        let mut archive = ::tar::Archive::new(flate2::read::GzDecoder::new(&made[..]));
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| String::from_utf8(entry.unwrap().path_bytes().to_vec()).unwrap())
            .collect();
        assert!(names.iter().all(|name| name.starts_with("stillcore-1.2.3-x86_64-linux/")), "{names:?}");
        assert!(names.iter().any(|name| name.ends_with("/man/stillcore-audit.1")), "{names:?}");
    }
}
