//! Processes that were put on the isolated CPUs on purpose, by `stillcore isolate run`: a later apply leaves them there, and verifying does
//! not take them for strays. Where a partition owns the CPUs the group says so; under cpusets of version 1 and affinities alone nothing
//! on the machine does, so it is written down: `placed/PID-START` in the state directory, with the boot it is of.
//!
//! What a process starts belongs to it: its children, and what its children leave behind in its process group or session, which keep their
//! leader's number when the leader is gone (credentials(7): the number is not used again as long as the group or session exists).

use crate::error::Error;
use crate::journal::boot_id;
use crate::machine::{Root, lineage, processes};
use crate::sys::process::Owner;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How far up a line of parents is followed.
const GENERATIONS: usize = 64;

/// The processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placed {
    owners: Vec<Owner>,
}

fn directory(state: &Path) -> PathBuf {
    state.join("placed")
}

/// Writes down that a process is there on purpose, and drops what is written of those that are gone.
pub fn record(state: &Path, owner: Owner) -> Result<(), Error> {
    let directory = directory(state);
    let failed = |source| Error::os("write", directory.display(), source);
    fs::create_dir_all(&directory).map_err(failed)?;
    drop_gone(&directory);
    fs::write(directory.join(owner.to_string()), boot_id()?).map_err(failed)
}

/// Drops what is written of processes that are gone, and the directory if nothing is left in it.
pub(super) fn tidy(state: &Path) {
    let directory = directory(state);
    if directory.exists() {
        drop_gone(&directory);
        let _ = fs::remove_dir(directory);
    }
}

fn drop_gone(directory: &Path) {
    let root = Root::live();
    let numbers: BTreeSet<i32> = processes(&root)
        .user
        .iter()
        .filter_map(|process| lineage(&root, process.pid))
        .flat_map(|line| [line.pid, line.group, line.session])
        .collect();
    let boot = boot_id().unwrap_or_default();
    for (owner, file) in all(directory) {
        if fs::read_to_string(&file).is_ok_and(|text| text != boot) || !numbers.contains(&owner.pid) {
            // Another call may have been first.
            let _ = fs::remove_file(file);
        }
    }
}

fn all(directory: &Path) -> impl Iterator<Item = (Owner, PathBuf)> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

impl Placed {
    /// Those written down under a state directory; none where it has none.
    pub fn read(state: &Path) -> Self {
        let boot = boot_id().unwrap_or_default();
        let of_this_boot = |file: &Path| fs::read_to_string(file).is_ok_and(|text| text == boot);
        let written = all(&directory(state)).filter(|(_, file)| of_this_boot(file));
        Self { owners: written.map(|(owner, _)| owner).collect() }
    }

    /// Whether a process is one of them, or was started by one.
    pub(super) fn has(&self, root: &Root, pid: u32) -> bool {
        if self.owners.is_empty() {
            return false;
        }
        let mut next = Some(pid);
        for _ in 0..GENERATIONS {
            let Some(line) = next.and_then(|pid| lineage(root, pid)) else { return false };
            let own = |owner: &Owner| (owner.pid, owner.start) == (line.pid, line.start);
            if self
                .owners
                .iter()
                .any(|owner| own(owner) || left_behind(root, owner, line.group, line.session))
            {
                return true;
            }
            next = u32::try_from(line.parent).ok().filter(|parent| *parent > 0);
        }
        false
    }

    /// These processes.
    pub(super) fn of(owners: Vec<Owner>) -> Self {
        Self { owners }
    }
}

/// Whether the group or session is the owner's, who leads it or is gone.
fn left_behind(root: &Root, owner: &Owner, group: i32, session: i32) -> bool {
    let named = owner.pid == group || owner.pid == session;
    let leads = || match u32::try_from(owner.pid).ok().and_then(|pid| lineage(root, pid)) {
        Some(line) => line.start == owner.start,
        None => true,
    };
    named && leads()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tree::tree;

    /// A process by number, parent, group, session and start.
    fn stat(of: [u32; 5]) -> (String, String) {
        let [pid, parent, group, session, start] = of;
        let zeros = "0 ".repeat(15);
        (format!("proc/{pid}/stat"), format!("{pid} (x) S {parent} {group} {session} {zeros}{start} 0 0"))
    }

    fn machine(processes: &[[u32; 5]]) -> (tempfile::TempDir, Root) {
        let files: Vec<_> = processes.iter().map(|of| stat(*of)).collect();
        tree(&files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect::<Vec<_>>())
    }

    #[test]
    fn what_a_placed_process_starts_is_placed() {
        let placed = Placed { owners: vec![Owner { pid: 10, start: 500 }] };
        let init = [1, 0, 1, 1, 1];
        let (_dir, root) = machine(&[
            init,
            [10, 1, 10, 5, 500],
            [11, 10, 11, 5, 510],
            [12, 11, 12, 12, 520],
            [13, 1, 10, 5, 530],
            [14, 1, 14, 5, 540],
        ]);
        let has = |pid| placed.has(&root, pid);
        assert!(has(10) && has(11) && has(12), "itself, a child, a child's child in a session of its own");
        assert!(has(13), "its group");
        assert!(!has(14) && !has(1) && !has(99));
        let (_dir, root) = machine(&[init, [13, 1, 10, 5, 530]]);
        assert!(placed.has(&root, 13), "its leader is gone");
        let (_dir, root) = machine(&[init, [10, 1, 10, 5, 900], [13, 10, 10, 5, 930]]);
        assert!(!placed.has(&root, 10) && !placed.has(&root, 13), "the number was used again");
    }

    #[test]
    fn records_last_as_long_as_their_process_and_boot() {
        let state = tempfile::tempdir().unwrap();
        let this = Owner::of_this_process().unwrap();
        let gone = Owner { pid: i32::MAX, start: 1 };
        record(state.path(), gone).unwrap();
        assert_eq!(Placed::read(state.path()).owners, [gone]);
        record(state.path(), this).unwrap();
        assert_eq!(Placed::read(state.path()).owners, [this]);
        fs::write(directory(state.path()).join(this.to_string()), "another boot").unwrap();
        assert_eq!(Placed::read(state.path()), Placed::default());
        tidy(state.path());
        assert!(!directory(state.path()).exists());
    }
}
