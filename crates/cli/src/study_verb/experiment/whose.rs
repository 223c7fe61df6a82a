//! Which machine a cell has changed: several may see the directory of a study, as nodes of a
//! cluster do, and `isolate undo` on another one than that would undo nothing and forget the rest.

use journal::boot_id;
use machine::Root;
use model::{Error, store};
use std::fs;
use std::path::Path;
use study::digest;

/// In a cell's directory while it runs.
const MARK: &str = "undo-due-on";
/// Bytes of it, at most.
const MOST: u64 = 4096;

/// A machine, and which of its boots. A container has a name of its own, and the boot of its node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Host {
    boot_id: String,
    name: String,
    /// [`number`] of it.
    number: Option<String>,
}

/// Identifies a machine in a directory that others may read: a digest of its firmware's number and
/// that of its installation, which are both confidential (machine-id(5)). Boards without a number
/// of their own share one, and so do containers of one image. `None` where neither can be read.
fn number(firmware: Option<&str>, installation: Option<&str>) -> Option<String> {
    let known = [firmware, installation].map(Option::unwrap_or_default);
    known.iter().any(|one| !one.is_empty()).then(|| digest(&[MARK, known[0], "\n", known[1]], 16))
}

impl Host {
    fn here() -> anyhow::Result<Self> {
        let root = Root::live();
        let read = |path: &str| {
            let text = root.maybe(path)?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let name = read("proc/sys/kernel/hostname").unwrap_or_else(|| "a machine without a name".to_owned());
        let [firmware, installation] = ["sys/class/dmi/id/product_uuid", "etc/machine-id"].map(read);
        let number = number(firmware.as_deref(), installation.as_deref());
        Ok(Self { boot_id: boot_id()?, name, number })
    }

    fn of(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::to_owned);
        let (boot_id, name) = (lines.next()?, lines.next()?);
        Some(Self { boot_id, name, number: lines.next().filter(|number| !number.is_empty()) })
    }

    /// Whether its changes are this machine's, or have gone with a boot of it. A name alone shows
    /// nothing: many machines have the same, and a pod keeps its own on another node.
    fn is(&self, here: &Self) -> bool {
        let same = self.name == here.name && self.number.is_some() && self.number == here.number;
        self.boot_id == here.boot_id || same
    }
}

/// Writes down that this machine is about to be changed.
pub(super) fn note(dir: &Path) -> anyhow::Result<()> {
    let Host { boot_id, name, number } = Host::here()?;
    let text = format!("{boot_id}\n{name}\n{}\n", number.unwrap_or_default());
    Ok(store::write_whole(&dir.join(MARK), text.as_bytes())?)
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
    let found = if there.name == here.name {
        format!(
            "a killed study has changed settings in another boot of {} or on another machine of that name",
            there.name
        )
    } else {
        format!("a killed study has changed settings of {}, and this is {}", there.name, here.name)
    };
    let expected = format!(
        "`stillcore study stop` or `study run --resume` there; or {} removed, where a boot has undone them",
        path.display()
    );
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
        let host = |text: &str| Host::of(text).unwrap();
        let here = host("b1\nn1\nu1\n");
        assert!(host("b1\npod-7\n\n").is(&here), "a container of this node");
        assert!(host("b0\nn1\nu1\n").is(&here), "before it was booted again");
        assert!(!host("b2\nn2\nu1\n").is(&here));
        assert!(!host("b2\nn1\nu2\n").is(&here), "a pod on another node, or one more localhost");
        assert!(!host("b2\nn1\n").is(&host("b1\nn1\n")), "nothing shows that they are one");
        assert_eq!(Host::of("b2"), None);
    }

    #[test]
    fn a_machine_is_known_by_both_of_its_numbers_and_neither_is_written_down() {
        let both = number(Some("u1"), Some("m1"));
        assert!(both.as_ref().is_some_and(|text| !text.contains("u1") && !text.contains("m1")));
        let others =
            [(Some("u1"), None), (None, Some("m1")), (Some("u2"), Some("m1")), (Some("u1"), Some("m2"))];
        assert!(others.into_iter().all(|(firmware, installation)| number(firmware, installation) != both));
        assert_eq!((number(None, None), number(Some("u1"), Some("m1"))), (None, both));
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
