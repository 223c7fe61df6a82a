//! `isolation.toml` read, as data or to be acted upon.

use anyhow::Context;
use audit::profile::{MOST_BYTES, Profile};
use audit::{Catalogue, program};
use journal::trust;
use machine::Root;
use std::path::{Path, PathBuf};

/// What a file is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// To plan or to judge: anybody's file.
    AsData,
    /// To change a machine: a file that nobody but root and its user can have written.
    ToActUpon,
}

/// Reads a file; an error names its line.
pub(crate) fn read(path: &Path, reading: Reading, catalogue: &Catalogue) -> anyhow::Result<Profile> {
    let name = path.display().to_string();
    let text = match reading {
        Reading::AsData => {
            let bytes = model::store::read_whole(path, MOST_BYTES)?;
            String::from_utf8(bytes)
                .map_err(|_| model::Error::invalid(&name, "it is not text in UTF-8", "a file of isolation"))?
        }
        Reading::ToActUpon => trust::read_text(path, MOST_BYTES)
            .with_context(|| {
                format!("--profile {name}: install it for root (install -m 0644 {name} /etc/stillcore/isolation.toml)")
            })?
            .with_context(|| format!("--profile {name}: no file is there"))?,
    };
    Ok(Profile::parse(&text, &name, catalogue)?)
}

/// The path of a file that a unit of root's reads at each boot.
pub(crate) fn lasting(root: &Root, path: &Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    program::trusted(root, &path).map_err(|reason| {
        anyhow::anyhow!(
            "--profile {}: root must not act upon it at each boot: {reason}; install it first (install -D -m 0644 {} \
             /etc/stillcore/isolation.toml) and name that",
            path.display(),
            path.display()
        )
    })?;
    Ok(path)
}
