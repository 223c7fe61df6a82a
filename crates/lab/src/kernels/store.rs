//! Unpacked kernels in the cache: `kernels/<suite>-<release>/` with the image, its modules and
//! `manifest.json`.
//!
//! A directory appears under its final name only when it is whole (unpacked elsewhere, then
//! renamed). The manifest keeps size and SHA-256 of every file; each file is checked against it
//! when it is read for a guest.

use crate::arch::Arch;
use crate::error::{Error, IoContext, Result};
use crate::frame;
use crate::version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Schema of `manifest.json`.
const SCHEMA: &str = "stillcore.lab-kernel/1";
const MANIFEST: &str = "manifest.json";

/// Size and digest of one file of an unpacked kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Bytes.
    pub len: u64,
    /// Hexadecimal.
    pub sha256: String,
}

/// What is known of an unpacked kernel package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `stillcore.lab-kernel/1`.
    pub schema: String,
    /// Debian suite.
    pub suite: String,
    /// The lab's name, like "6.1-rt".
    pub name: String,
    /// Guest architecture.
    pub arch: Arch,
    /// Package name.
    pub package: String,
    /// Package version.
    pub version: String,
    /// `uname -r`.
    pub release: String,
    /// Path below the directory → size and digest.
    pub files: BTreeMap<String, Stored>,
}

/// A kernel that can be booted.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// `uname -r`; empty where a given image does not say.
    pub release: String,
    /// The kernel image.
    pub image: PathBuf,
    /// The directory that holds `modules.builtin` and the modules, if any was found.
    pub modules: Option<PathBuf>,
    /// The cached kernel that image and modules belong to; `None` for a kernel given by path.
    pub stored: Option<(PathBuf, Manifest)>,
}

impl Kernel {
    /// Reads one of this kernel's files, checked against the manifest where there is one.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let bytes = fs::read(path).context("read", path)?;
        if let Some((dir, manifest)) = &self.stored {
            check(dir, manifest, path, &bytes)?;
        }
        Ok(bytes)
    }
}

fn check(dir: &Path, manifest: &Manifest, path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.strip_prefix(dir).unwrap_or(path).to_string_lossy();
    let expected = manifest.files.get(name.as_ref()).map_or("no such file", |stored| stored.sha256.as_str());
    let (found, _) = frame::digest(&mut { bytes }).context("read", path)?;
    if found == expected {
        return Ok(());
    }
    Err(Error::CacheDamaged { path: path.into(), dir: dir.into(), found, expected: expected.into() })
}

/// The newest stored kernel of this name, unless its image is damaged: then it is to be fetched
/// again.
pub(super) fn find(cache: &Path, name: &str, arch: Arch) -> Option<Kernel> {
    let entries = fs::read_dir(cache.join("kernels")).ok()?;
    let mut found: Vec<(PathBuf, Manifest)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), read_manifest(&entry.path())?)))
        .filter(|(_, manifest)| manifest.name == name && manifest.arch == arch)
        .collect();
    found.sort_by(|a, b| version::compare(&b.1.release, &a.1.release));
    found
        .into_iter()
        .map(|(dir, manifest)| kernel(dir, manifest))
        .next()
        .filter(|kernel| kernel.read(&kernel.image).is_ok())
}

fn read_manifest(dir: &Path) -> Option<Manifest> {
    let manifest: Manifest = serde_json::from_slice(&fs::read(dir.join(MANIFEST)).ok()?).ok()?;
    (manifest.schema == SCHEMA).then_some(manifest)
}

fn kernel(dir: PathBuf, manifest: Manifest) -> Kernel {
    Kernel {
        release: manifest.release.clone(),
        image: dir.join(format!("boot/vmlinuz-{}", manifest.release)),
        modules: Some(modules_dir(&dir, &manifest.release)).filter(|modules| modules.is_dir()),
        stored: Some((dir, manifest)),
    }
}

/// From 6.12 on, Debian keeps modules under `usr/lib`.
fn modules_dir(dir: &Path, release: &str) -> PathBuf {
    let merged = dir.join("usr/lib/modules").join(release);
    if merged.is_dir() { merged } else { dir.join("lib/modules").join(release) }
}

/// Seals a freshly unpacked package in `unpacked` and moves it to its place. Files that no guest
/// needs (debug maps, documentation) are dropped first.
pub(super) fn install(cache: &Path, unpacked: &Path, mut manifest: Manifest) -> Result<Kernel> {
    manifest.schema = SCHEMA.into();
    manifest.release = release_of(unpacked)?;
    for useless in ["usr/share", &format!("boot/System.map-{}", manifest.release)] {
        let path = unpacked.join(useless);
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
    manifest.files = digests(unpacked)?;
    let json =
        serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::other).context("encode", unpacked)?;
    fs::write(unpacked.join(MANIFEST), json).context("write", unpacked.join(MANIFEST))?;
    let dir = cache.join("kernels").join(format!("{}-{}", manifest.suite, manifest.release));
    if dir.exists() {
        // Only a damaged one gets here: a sound one would have been found.
        fs::remove_dir_all(&dir).context("remove", &dir)?;
    }
    fs::rename(unpacked, &dir).context("rename", unpacked)?;
    Ok(kernel(dir, manifest))
}

fn release_of(unpacked: &Path) -> Result<String> {
    let boot = unpacked.join("boot");
    let names = fs::read_dir(&boot).context("read", &boot)?;
    names
        .flatten()
        .find_map(|entry| entry.file_name().to_str()?.strip_prefix("vmlinuz-").map(str::to_owned))
        .ok_or_else(|| Error::Format {
            path: boot,
            format: "kernel package",
            reason: "no boot/vmlinuz-* in it".into(),
        })
}

fn digests(root: &Path) -> Result<BTreeMap<String, Stored>> {
    let mut files = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).context("read", &dir)? {
            let entry = entry.context("read", &dir)?;
            let (path, kind) = (entry.path(), entry.file_type().context("read", &dir)?);
            if kind.is_dir() {
                todo.push(path);
            } else if kind.is_file() {
                let mut file = File::open(&path).context("open", &path)?;
                let (sha256, len) = frame::digest(&mut file).context("read", &path)?;
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                files.insert(name, Stored { len, sha256 });
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(cache: &Path, release: &str) -> Kernel {
        let unpacked = cache.join("kernels/new");
        fs::create_dir_all(unpacked.join("boot")).unwrap();
        fs::create_dir_all(unpacked.join("lib/modules").join(release)).unwrap();
        fs::create_dir_all(unpacked.join("usr/share/doc")).unwrap();
        fs::write(unpacked.join(format!("boot/vmlinuz-{release}")), release).unwrap();
        fs::write(unpacked.join("lib/modules").join(release).join("modules.builtin"), "").unwrap();
        let manifest = Manifest {
            schema: String::new(),
            suite: "bookworm".into(),
            name: "6.1".into(),
            arch: Arch::X86_64,
            package: format!("linux-image-{release}"),
            version: "1".into(),
            release: String::new(),
            files: BTreeMap::new(),
        };
        install(cache, &unpacked, manifest).unwrap()
    }

    #[test]
    fn finds_the_newest_if_it_is_sound() {
        let cache = tempfile::tempdir().unwrap();
        fake(cache.path(), "6.1.0-9-amd64");
        let new = fake(cache.path(), "6.1.0-50-amd64");
        assert_eq!(find(cache.path(), "6.1", Arch::X86_64).unwrap().release, "6.1.0-50-amd64");
        assert!(find(cache.path(), "6.1-rt", Arch::X86_64).is_none());
        assert!(find(cache.path(), "6.1", Arch::Aarch64).is_none());
        fs::write(&new.image, "damaged").unwrap();
        assert!(find(cache.path(), "6.1", Arch::X86_64).is_none());
    }

    #[test]
    fn a_changed_module_is_refused() {
        let cache = tempfile::tempdir().unwrap();
        let kernel = fake(cache.path(), "6.1.0-9-amd64");
        let path = kernel.modules.as_ref().unwrap().join("modules.builtin");
        assert!(kernel.read(&path).is_ok());
        fs::write(&path, "x").unwrap();
        let error = kernel.read(&path).unwrap_err().to_string();
        assert!(error.contains("has changed since it was stored"), "{error}");
    }
}
