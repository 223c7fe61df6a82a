//! The RPM: the files and scripts of the Debian package at the places where Fedora and SUSE have
//! them.

use anyhow::Result;
use rpm::{BuildConfig, CompressionType, FileOptions, PackageBuilder, Scriptlet};

use crate::archive::Entry;
use crate::contents::{Arch, DESCRIPTION, Release, SUMMARY, Sources};

pub(crate) fn name(release: &Release, arch: Arch) -> String {
    format!("stillcore-{}-1.{}.rpm", release.version, arch.name())
}

/// The package.
pub(crate) fn package(sources: &Sources, release: &Release, arch: Arch, program: &[u8]) -> Result<Vec<u8>> {
    let config = BuildConfig::v4().compression(CompressionType::Gzip).source_date(release.epoch);
    let mut builder =
        PackageBuilder::new("stillcore", &release.version, "Apache-2.0 OR MIT", arch.name(), SUMMARY);
    builder
        .using_config(config)
        .release("1")
        .build_host("localhost")
        .packager(release.maintainer.clone())
        .description(DESCRIPTION.join("\n"))
        .post_install_script(Scriptlet::new(sources.reload.clone()))
        .pre_uninstall_script(Scriptlet::new(before_removal(sources)))
        .post_uninstall_script(Scriptlet::new(after_removal(sources)));
    for folder in ["/etc/stillcore", "/usr/share/doc/stillcore", "/usr/share/licenses/stillcore"] {
        builder.with_dir_entry(FileOptions::dir(folder).permissions(0o755))?;
    }
    for Entry { path, mode, data } in sources.installed(program, "usr/share/zsh/site-functions")? {
        let options = FileOptions::new(format!("/{path}")).permissions(mode as u16);
        let is_doc = path.starts_with("usr/share/doc/") || path.starts_with("usr/share/man/");
        builder.with_file_contents(data, if is_doc { options.doc() } else { options })?;
    }
    let plain = |path: &str| FileOptions::new(path).permissions(0o644);
    builder
        .with_file_contents(sources.config.clone(), plain("/etc/stillcore/config.toml").config().noreplace())?
        .with_file_contents(sources.unit.clone(), plain("/usr/lib/systemd/system/stillcore-isolate.service"))?
        .with_file_contents(sources.changelog.clone(), plain("/usr/share/doc/stillcore/CHANGELOG.md").doc())?
        .with_file_contents(
            sources.apache.clone(),
            plain("/usr/share/licenses/stillcore/LICENSE-APACHE").license(),
        )?
        .with_file_contents(
            sources.mit.clone(),
            plain("/usr/share/licenses/stillcore/LICENSE-MIT").license(),
        )?;
    let mut bytes = Vec::new();
    builder.build()?.write(&mut bytes)?;
    Ok(bytes)
}

/// An upgrade undoes nothing: rpm gives the number of packages that will be left.
fn before_removal(sources: &Sources) -> String {
    format!("[ \"$1\" = 0 ] || exit 0\n{}", sources.undo)
}

fn after_removal(sources: &Sources) -> String {
    format!("{}[ \"$1\" = 0 ] || exit 0\n{}", sources.reload, sources.forget)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::tests::{release, sources};

    #[test]
    fn a_package_is_the_same_each_time_and_names_its_files() {
        let make = || package(&sources(), &release(), Arch::Aarch64, b"program").unwrap();
        let made = make();
        assert!(made == make());
        let read = rpm::Package::parse(&mut &made[..]).unwrap();
        assert_eq!(read.metadata.get_arch().unwrap(), "aarch64");
        let paths = read.metadata.get_file_paths().unwrap();
        for path in ["/usr/bin/stillcore", "/etc/stillcore/config.toml", "/usr/share/man/man1/stillcore.1.gz"]
        {
            assert!(paths.iter().any(|one| one.to_string_lossy() == path), "{path}: {paths:?}");
        }
    }
}
