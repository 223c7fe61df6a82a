//! Debian packages for the guest (`--packages`): fetched with what they depend on, unpacked, laid
//! into the initial file system.
//!
//! Maintainer scripts do not run: what a package makes at installation (alternatives, users,
//! caches) is not there. The suite is that of the guest's kernel, so that program and kernel are of
//! one release.

use crate::apt::Apt;
use crate::cache::Lock;
use crate::error::{Error, IoContext, Result};
use crate::kernels::{KernelName, NoteSink};
use crate::program::DPKG_DEB;
use crate::spec::Spec;
use crate::stop::Stop;
use std::fs;
use std::path::{Path, PathBuf};

/// Suite for a kernel given by path.
const DEFAULT_SUITE: &str = "bookworm";

/// Fetches and unpacks the packages of a run below `into`; the trees to lay over the guest's root.
pub(crate) fn unpack(
    spec: &Spec,
    etc_apt: &Path,
    into: &Path,
    stop: &Stop,
    note: &mut NoteSink<'_>,
) -> Result<Vec<PathBuf>> {
    if spec.packages.is_empty() {
        return Ok(Vec::new());
    }
    let suite = spec.kernel.parse::<KernelName>().map_or(DEFAULT_SUITE, |name| name.suite);
    let _lock = Lock::acquire(&spec.cache, stop)?;
    let apt = Apt::prepare(&spec.cache, etc_apt, suite, spec.arch, stop)?;
    note(&format!("fetching {} from suite {suite}", spec.packages.join(", ")));
    for deb in fetch(&apt, &spec.packages)? {
        fs::create_dir_all(into).context("create", into)?;
        DPKG_DEB.run(DPKG_DEB.command(["-x"]).arg(&deb).arg(into), stop)?;
    }
    for useless in ["usr/share/doc", "usr/share/man", "usr/share/locale"] {
        // Absent in small packages.
        let _ = fs::remove_dir_all(into.join(useless));
    }
    Ok(vec![into.to_path_buf()])
}

fn fetch(apt: &Apt, packages: &[String]) -> Result<Vec<PathBuf>> {
    let fresh = !apt.has_lists();
    if fresh {
        apt.update()?;
    }
    match apt.download_with_dependencies(packages) {
        // Old lists name versions that are long gone.
        Err(Error::ProgramFailed { .. }) if !fresh => {
            apt.update()?;
            apt.download_with_dependencies(packages)
        }
        other => other,
    }
}

/// Bytes of all files in the trees.
pub(crate) fn size(trees: &[PathBuf]) -> u64 {
    let mut todo = trees.to_vec();
    let mut bytes = 0;
    while let Some(dir) = todo.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            match entry.metadata() {
                Ok(data) if data.is_dir() => todo.push(entry.path()),
                Ok(data) if data.is_file() => bytes += data.len(),
                _ => {}
            }
        }
    }
    bytes
}
