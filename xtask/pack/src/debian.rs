//! The Debian package (deb(5), deb-control(5), the policy manual's chapters 6, 10 and 12).

use std::fmt::Write as _;

use anyhow::{Context, Result};
use md5::{Digest, Md5};

use crate::archive::{Entry, gzip, tar};
use crate::contents::{Arch, DESCRIPTION, Release, SUMMARY, Sources};

/// Lintian's complaints that are meant so.
const OVERRIDES: &str = "# One file that runs on any target, also where no C library is.\n\
                         stillcore: statically-linked-binary [usr/bin/stillcore]\n";

/// Files that dpkg asks about before it replaces changed ones.
const CONFIGURATION: &str = "/etc/stillcore/config.toml\n";

pub(crate) fn name(release: &Release, arch: Arch) -> String {
    format!("stillcore_{}_{}.deb", release.version, arch.other_name())
}

/// The package.
pub(crate) fn package(sources: &Sources, release: &Release, arch: Arch, program: &[u8]) -> Result<Vec<u8>> {
    let files = files(sources, release, program)?;
    let control = [
        Entry::plain("control", control(release, arch, &files)),
        Entry::plain("conffiles", CONFIGURATION),
        Entry::plain("md5sums", sums(&files)),
        Entry::program("postinst", script("", &sources.reload)),
        Entry::program("prerm", script("[ \"$1\" = remove ] || exit 0\n", &sources.undo)),
        Entry::program("postrm", script("", &after_removal(sources))),
    ];
    let control = gzip(&tar(&control, "./", release.epoch)?)?;
    let data = gzip(&tar(&files, "./", release.epoch)?)?;
    let members = [("debian-binary", &b"2.0\n"[..]), ("control.tar.gz", &control), ("data.tar.gz", &data)];
    let mut archive = ar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        header.set_mtime(release.epoch.into());
        header.set_mode(0o100_644);
        archive.append(&header, bytes).with_context(|| format!("append {name}"))?;
    }
    Ok(archive.into_inner()?)
}

fn files(sources: &Sources, release: &Release, program: &[u8]) -> Result<Vec<Entry>> {
    let mut files = sources.installed(program, "usr/share/zsh/vendor-completions")?;
    files.extend([
        Entry::plain("etc/stillcore/config.toml", sources.config.clone()),
        Entry::plain("lib/systemd/system/stillcore-isolate.service", sources.unit.clone()),
        Entry::plain("usr/share/doc/stillcore/copyright", copyright(sources)?),
        Entry::plain("usr/share/doc/stillcore/changelog.gz", gzip(changelog(release)?.as_bytes())?),
        Entry::plain("usr/share/doc/stillcore/CHANGELOG.md.gz", gzip(&sources.changelog)?),
        Entry::plain("usr/share/lintian/overrides/stillcore", OVERRIDES),
    ]);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn control(release: &Release, arch: Arch, files: &[Entry]) -> String {
    // As dpkg-gencontrol counts: KiB, each file rounded up.
    let size: usize = files.iter().map(|file| file.data.len().div_ceil(1024)).sum();
    let mut text = format!(
        "Package: stillcore\nVersion: {}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {size}\n\
         Suggests: trace-cmd\nSection: admin\nPriority: optional\nDescription: {SUMMARY}\n",
        release.version,
        arch.other_name(),
        release.maintainer
    );
    for line in DESCRIPTION {
        let _ = writeln!(text, " {}", if line.is_empty() { "." } else { line });
    }
    text
}

fn sums(files: &[Entry]) -> String {
    let mut text = String::new();
    for file in files.iter().filter(|file| !file.path.starts_with("etc/")) {
        for byte in Md5::digest(&file.data) {
            let _ = write!(text, "{byte:02x}");
        }
        let _ = writeln!(text, "  {}", file.path);
    }
    text
}

fn script(only: &str, body: &str) -> String {
    format!("#!/bin/sh\nset -e\n{only}{body}")
}

/// A purge takes the journals, too; before, the program has undone what they say.
fn after_removal(sources: &Sources) -> String {
    format!("{}[ \"$1\" = purge ] || exit 0\n{}", sources.reload, sources.forget)
}

/// Machine-readable, version 1.0 of the format.
fn copyright(sources: &Sources) -> Result<String> {
    let mit = String::from_utf8(sources.mit.clone()).context("LICENSE-MIT is not UTF-8")?;
    let mut text = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
                    Upstream-Name: stillcore\n\nFiles: *\nCopyright: 2026 The stillcore contributors\n\
                    License: Apache-2.0 or MIT\n\nLicense: Apache-2.0\n On Debian, the Apache License 2.0 is in\n \
                    /usr/share/common-licenses/Apache-2.0.\n\nLicense: MIT\n"
        .to_owned();
    let body = mit.lines().skip_while(|line| !line.starts_with("Permission"));
    for line in body {
        let _ = writeln!(text, " {}", if line.is_empty() { "." } else { line });
    }
    Ok(text)
}

fn changelog(release: &Release) -> Result<String> {
    let time = jiff::Timestamp::from_second(release.epoch.into())?;
    let date = time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000");
    let Release { version, maintainer, .. } = release;
    Ok(format!(
        "stillcore ({version}) unstable; urgency=medium\n\n  * Version {version}; CHANGELOG.md says what changed.\n\n -- \
         {maintainer}  {date}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::tests::{release, sources};
    use std::io::Read;

    #[test]
    fn a_package_has_its_three_members_and_is_the_same_each_time() {
        let make = || package(&sources(), &release(), Arch::X86_64, b"program").unwrap();
        let made = make();
        assert_eq!(made, make());
        let mut archive = ar::Archive::new(&made[..]);
        let mut members = Vec::new();
        while let Some(entry) = archive.next_entry() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            members.push((String::from_utf8(entry.header().identifier().to_vec()).unwrap(), bytes));
        }
        let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["debian-binary", "control.tar.gz", "data.tar.gz"]);
    }

    #[test]
    fn nothing_is_enabled_or_started_and_an_upgrade_undoes_nothing() {
        let scripts = sources();
        let all = [&scripts.reload, &scripts.undo, &after_removal(&scripts)];
        assert!(
            !all.iter().any(|text| text.contains("systemctl enable") || text.contains("systemctl start"))
        );
        let before = script("[ \"$1\" = remove ] || exit 0\n", &scripts.undo);
        assert!(before.starts_with("#!/bin/sh\nset -e\n[ \"$1\" = remove ] || exit 0\n"));
        let date = changelog(&release()).unwrap();
        assert!(date.ends_with("  Tue, 14 Nov 2023 22:13:20 +0000\n"), "{date}");
    }
}
