//! Processes that were put on the isolated CPUs on purpose, written down: `placed/PID-START` in the
//! state directory, with the boot it is of.

use audit::placed::{Placed, Started};
use journal::boot_id;
use machine::{Root, lineage, processes};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use sys::Error;
use sys::process::Owner;

fn directory(state: &Path) -> PathBuf {
    state.join("placed")
}

/// Writes down that a process is there on purpose, and drops what is written of those that are
/// gone.
pub fn record(state: &Path, owner: Owner) -> Result<(), Error> {
    let directory = directory(state);
    let failed = |source| Error::os("write", directory.display(), source);
    fs::create_dir_all(&directory).map_err(failed)?;
    drop_gone(&directory);
    fs::write(directory.join(owner.to_string()), boot_id()?).map_err(failed)
}

/// Drops what is written of processes that are gone, and the directory if nothing is left in it.
pub(crate) fn tidy(state: &Path) {
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

/// Those written down under a state directory; none where it has none.
pub fn read(state: &Path) -> Placed {
    let boot = boot_id().unwrap_or_default();
    let of_this_boot = |file: &Path| fs::read_to_string(file).is_ok_and(|text| text == boot);
    let written = all(&directory(state)).filter(|(_, file)| of_this_boot(file));
    Placed::of(written.map(|(Owner { pid, start }, _)| Started { pid, start }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(Owner { pid, start }: Owner) -> Placed {
        Placed::of(vec![Started { pid, start }])
    }

    #[test]
    fn records_last_as_long_as_their_process_and_boot() {
        let state = tempfile::tempdir().unwrap();
        let this = Owner::of_this_process().unwrap();
        let gone = Owner { pid: i32::MAX, start: 1 };
        record(state.path(), gone).unwrap();
        assert_eq!(read(state.path()), placed(gone));
        record(state.path(), this).unwrap();
        assert_eq!(read(state.path()), placed(this));
        fs::write(directory(state.path()).join(this.to_string()), "another boot").unwrap();
        assert_eq!(read(state.path()), Placed::default());
        tidy(state.path());
        assert!(!directory(state.path()).exists());
    }
}
