//! Name → package → unpacked, checked kernel. The network is used only where the cache has no
//! answer.
//!
//! Mirrors drop a security version as soon as the next one is out, while lists (and their mirrors)
//! lag behind; so a name that the lists still show may be gone from the pool, and then the next
//! older one is taken.

use super::names::{self, KernelName};
use super::store::{self, Kernel, Manifest};
use crate::apt::Apt;
use crate::arch::Arch;
use crate::cache::Lock;
use crate::error::{Error, IoContext, Result};
use crate::program::DPKG_DEB;
use crate::stop::Stop;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Receives what the user should know while waiting.
pub type NoteSink<'a> = dyn FnMut(&str) + 'a;

/// How many versions are tried before giving up. A list may lag several security releases behind
/// the pool, and each release has two packages.
const MAX_TRIES: usize = 16;

/// The newest kernel of this name: from the cache, else by package.
pub fn fetch(
    cache: &Path,
    etc_apt: &Path,
    name: KernelName,
    arch: Arch,
    stop: &Stop,
    note: &mut NoteSink<'_>,
) -> Result<Kernel> {
    let _lock = Lock::acquire(cache, stop)?;
    if let Some(kernel) = store::find(cache, &name.to_string(), arch) {
        return Ok(kernel);
    }
    let apt = Apt::prepare(cache, etc_apt, name.suite, arch, stop)?;
    note(&format!("looking for kernel {name} ({}) in suite {}", arch.debian(), name.suite));
    let fresh = !apt.has_lists();
    if fresh {
        apt.update()?;
    }
    match try_candidates(cache, &apt, name, arch, stop, note) {
        // Old lists name versions that are long gone.
        Err(Error::NoPackage { .. }) if !fresh => {
            apt.update()?;
            try_candidates(cache, &apt, name, arch, stop, note)
        }
        other => other,
    }
}

fn try_candidates(
    cache: &Path,
    apt: &Apt,
    name: KernelName,
    arch: Arch,
    stop: &Stop,
    note: &mut NoteSink<'_>,
) -> Result<Kernel> {
    let names = apt.package_names(&format!("linux-image-{}", name.series))?;
    let mut gone = Vec::new();
    for package in names::candidates(&names, name, arch) {
        for version in apt.versions(&package)? {
            if gone.len() == MAX_TRIES {
                break;
            }
            note(&format!("fetching {package} {version}"));
            match download(cache, apt, name, arch, (&package, &version), stop) {
                Err(Error::ProgramFailed { message, .. }) if is_gone(&message) => {
                    note(&format!("{package} {version} is gone from the mirror, trying the next older one"));
                    gone.push(format!("{package}={version}"));
                }
                // A mirror that does not answer will not answer for the next version either.
                other => return other,
            }
        }
    }
    let reason = match (gone.first(), gone.last()) {
        (Some(first), Some(last)) => format!("all of {first} to {last} are gone from the mirror"),
        _ => "its lists name none".into(),
    };
    Err(Error::NoPackage {
        name: name.to_string(),
        arch: arch.debian().into(),
        suite: apt.suite().into(),
        reason,
    })
}

/// apt's words for a file that the lists name and the mirror lacks (HTTP status, or the `file:`
/// method).
fn is_gone(message: &str) -> bool {
    message.contains("404") || message.contains("410") || message.contains("File not found")
}

fn download(
    cache: &Path,
    apt: &Apt,
    name: KernelName,
    arch: Arch,
    (package, version): (&str, &str),
    stop: &Stop,
) -> Result<Kernel> {
    // One fixed name: what a killed run left there is cleared away by the next, under the lock.
    let work = cache.join("kernels").join("incoming");
    if work.exists() {
        fs::remove_dir_all(&work).context("remove", &work)?;
    }
    let unpacked = work.join("unpacked");
    fs::create_dir_all(&unpacked).context("create", &unpacked)?;
    let deb = apt.download(package, version, &work)?;
    DPKG_DEB.run(DPKG_DEB.command(["-x"]).arg(&deb).arg(&unpacked), stop)?;
    let manifest = Manifest {
        schema: String::new(),
        suite: apt.suite().into(),
        name: name.to_string(),
        arch,
        package: package.into(),
        version: version.into(),
        release: String::new(),
        files: BTreeMap::new(),
    };
    let kernel = store::install(cache, &unpacked, manifest)?;
    fs::remove_dir_all(&work).context("remove", &work)?;
    Ok(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_file_sends_us_to_the_next_version() {
        assert!(is_gone("E: Failed to fetch http://mirror.example/x.deb  404  Not Found"));
        assert!(!is_gone(
            "E: Failed to fetch http://mirror.example/x.deb  Could not connect to mirror.example:80"
        ));
        assert!(!is_gone(
            "E: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?"
        ));
    }
}
