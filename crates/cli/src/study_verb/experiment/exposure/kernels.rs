//! What a study keeps of each kernel of the lab: release, package and configuration, so that its
//! table can separate configuration from version.

use lab::kernels::Kernel;
use lab::{Arch, Stop, version};
use model::{Error, store};
use report::MatrixKernel;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Folder in the study's directory, with one JSON file per kernel.
const KERNELS: &str = "kernels";

/// A kernel as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) arch: String,
    pub(super) release: String,
    pub(super) package: Option<String>,
    /// Absent where the kernel does not provide it.
    pub(super) config: Option<BTreeMap<String, String>>,
    /// First line of `qemu-system-… --version`.
    pub(super) qemu: String,
}

impl Kept {
    pub(super) fn realtime(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.contains_key("CONFIG_PREEMPT_RT"))
    }
}

impl From<Kept> for MatrixKernel {
    fn from(Kept { name, arch, release, package, .. }: Kept) -> Self {
        Self { name, release, package, arch }
    }
}

/// Stores what each kernel is.
pub(crate) fn keep(
    out: &Path,
    arch: Arch,
    kernels: &BTreeMap<String, Kernel>,
    stop: &Stop,
) -> anyhow::Result<()> {
    let dir = out.join(KERNELS);
    fs::create_dir_all(&dir).map_err(|source| Error::io("create", &dir, source))?;
    let qemu = lab::qemu_version(arch, stop)?;
    for (name, kernel) in kernels {
        let package = kernel.stored.as_ref();
        let kept = Kept {
            name: name.clone(),
            arch: arch.to_string(),
            release: kernel.release.clone(),
            package: package.map(|(_, manifest)| format!("{} {}", manifest.package, manifest.version)),
            config: kernel.config()?,
            qemu: qemu.clone(),
        };
        store::write_json(&dir.join(format!("{}.json", name.replace('/', "_"))), &kept)?;
    }
    Ok(())
}

/// The kernels that are kept, oldest first, PREEMPT_RT after stock. The name of a kernel given by
/// path is no version: its release decides.
pub(super) fn kept(out: &Path) -> anyhow::Result<Vec<Kept>> {
    let dir = out.join(KERNELS);
    let mut found = Vec::new();
    if !dir.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(&dir).map_err(|source| Error::io("read", &dir, source))? {
        let path = entry.map_err(|source| Error::io("read", &dir, source))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            found.push(store::read_json::<Kept>(&path)?);
        }
    }
    found.sort_by(|a, b| {
        let series = |kept: &Kept| kept.release.split('-').next().unwrap_or_default().to_owned();
        version::compare(&series(a), &series(b)).then_with(|| a.name.cmp(&b.name))
    });
    Ok(found)
}
