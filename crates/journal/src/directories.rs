//! Directories that a call makes for files of its jobs. A killed process cannot remove its own, so
//! each is named after its owner: the guardian removes it, or whoever comes next.

use std::fs;
use std::path::{Path, PathBuf};
use sys::process::Owner;

const PREFIX: &str = "jobs-";

/// A name that is free for a directory of this owner, who may make several.
pub fn unused(place: &Path, owner: Owner) -> PathBuf {
    let names = (0..).map(|number| place.join(format!("{PREFIX}{owner}.{number}")));
    names.into_iter().find(|path| !path.exists()).unwrap_or_default()
}

/// Removes what a process has left in a state directory; it is named by [`Owner`].
pub fn remove_of(state: &Path, owner: &str) {
    let ours = format!("{PREFIX}{owner}.");
    for place in places(state) {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(&ours)) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Removes what processes have left there that were killed together with their guardians.
pub fn remove_left(state: &Path) {
    places(state).iter().for_each(|place| remove_orphans(place));
}

/// Where files of jobs lie in a state directory: those of `measure periodic`, and of graphs.
fn places(state: &Path) -> [PathBuf; 2] {
    [state.to_owned(), state.join("jobs")]
}

/// Removes what killed processes have left.
pub fn remove_orphans(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.rsplit_once('.'));
        let owner = owner.and_then(|(owner, _)| owner.parse::<Owner>().ok());
        if owner.is_some_and(|owner| !owner.alive()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
