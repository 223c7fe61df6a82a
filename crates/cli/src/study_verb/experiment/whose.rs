//! Which machine a cell has changed: several may see the directory of a study, as nodes of a cluster
//! do, and `isolate undo` on another one than that would undo nothing and forget the rest.

use linux::journal::boot_id;
use linux::machine::Root;
use model::{Error, store};
use std::fs;
use std::path::Path;

/// In a cell's directory while it runs.
const MARK: &str = "undo-due-on";
/// Bytes of it, at most.
const MOST: u64 = 4096;

/// A machine, and which of its boots. A container has a name of its own, and the boot of its node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Host {
    boot_id: String,
    name: String,
}

impl Host {
    fn here() -> anyhow::Result<Self> {
        let name = Root::live().maybe("proc/sys/kernel/hostname").unwrap_or_default();
        Ok(Self { boot_id: boot_id()?, name })
    }

    fn of(text: &str) -> Option<Self> {
        let (boot_id, name) = text.trim_end().split_once('\n')?;
        Some(Self { boot_id: boot_id.to_owned(), name: name.to_owned() })
    }

    /// Whether its changes are this machine's, or have gone with a boot of it.
    fn is(&self, here: &Self) -> bool {
        self.boot_id == here.boot_id || self.name == here.name
    }
}

/// Writes down that this machine is about to be changed.
pub(super) fn note(dir: &Path) -> anyhow::Result<()> {
    let Host { boot_id, name } = Host::here()?;
    Ok(store::write_whole(&dir.join(MARK), format!("{boot_id}\n{name}\n").as_bytes())?)
}

/// Refuses what another machine has to undo. Nothing is written down by versions before this file.
pub(super) fn check(dir: &Path) -> anyhow::Result<()> {
    let path = dir.join(MARK);
    if !path.exists() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&store::read_whole(&path, MOST)?).into_owned();
    let expected = "a boot's id and a host's name, a line each";
    let there =
        Host::of(&text).ok_or_else(|| Error::invalid(path.display(), format!("{text:?}"), expected))?;
    let here = Host::here()?;
    if there.is(&here) {
        return Ok(());
    }
    let found = format!("a killed study has changed settings of {}, and this is {}", there.name, here.name);
    let expected = format!("`stillcore study stop` or `study run --resume` on {}", there.name);
    Err(Error::invalid(dir.display(), found, expected).into())
}

/// Removes it, where there is one.
pub(super) fn forget(dir: &Path) {
    // Without what is due it says nothing.
    let _ = fs::remove_file(dir.join(MARK));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_neither_of_this_boot_nor_of_this_name() {
        let host = |boot: &str, name: &str| Host { boot_id: boot.to_owned(), name: name.to_owned() };
        let here = host("b1", "n1");
        assert!(host("b1", "pod-7").is(&here), "a container of this node");
        assert!(host("b0", "n1").is(&here), "before it was booted again");
        assert!(!host("b2", "n2").is(&here));
        assert_eq!(Host::of("b2\nn2\n"), Some(host("b2", "n2")));
        assert_eq!(Host::of("b2"), None);
    }

    #[test]
    fn what_is_noted_here_is_undone_here() {
        let dir = tempfile::tempdir().unwrap();
        check(dir.path()).unwrap();
        note(dir.path()).unwrap();
        check(dir.path()).unwrap();
        fs::write(dir.path().join(MARK), "b2\nanother-node\n").unwrap();
        let error = check(dir.path()).unwrap_err().to_string();
        assert!(error.contains("settings of another-node"), "{error}");
        forget(dir.path());
        check(dir.path()).unwrap();
    }
}
