//! Taking back what a journal has open: by the call that made the changes, by its guardian, or by
//! the next call.

use super::change::{Change, Owner, Present};
use super::{append, boot_id, directory, read, remove, trust};
use crate::decoded::Entry;
use crate::phase::Phase;
use crate::settings::Settings;
use rustix::fs::OFlags;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use sys::{Error, process};

/// The result of undoing a journal.
#[derive(Debug, Default)]
pub struct Restored {
    /// Changes undone, as their owners describe them.
    pub undone: Vec<String>,
    /// Changes that could not be undone, with the reason.
    pub failed: Vec<String>,
}

/// Undoes one change, unless it is gone or somebody else has set it since. Error: its kind may not
/// make such a change, or it could not be undone.
pub fn undo(change: &dyn Change, settings: &mut dyn Settings) -> Result<(), Error> {
    change.bounds()?;
    match change.check(settings)? {
        Present::Gone | Present::Before | Present::Other(_) => Ok(()),
        Present::Made => change.undo(settings),
    }
}

/// Undoes every open change of a journal, newest first, and removes the journal when none is left
/// and every line was understood.
pub fn undo_journal(path: &Path, owners: &[Owner], settings: &mut dyn Settings) -> Result<Restored, Error> {
    let mut restored = Restored::default();
    let boot_id = boot_id()?;
    let mut contents = read(path, owners)?;
    for entry in contents.open.iter().rev() {
        // Whatever lasts only as long as a boot is gone with it.
        let outlived = entry.boot_id != boot_id && !entry.change.outlives_boot();
        let result = if outlived { Ok(()) } else { undo(&*entry.change, settings) };
        match result {
            Ok(()) => {
                restored.undone.push(entry.change.describe());
                note_undone(path, &mut contents.torn, entry)?;
            }
            Err(error) => restored.failed.push(error.to_string()),
        }
    }
    let refused = contents.refused.iter();
    restored.failed.extend(
        refused.map(|line| format!("{}: {line} cannot be trusted and is not undone", path.display())),
    );
    if restored.failed.is_empty() {
        remove(path)?;
    }
    Ok(restored)
}

/// Adds a line to a journal that another process began.
fn note_undone(path: &Path, torn: &mut bool, entry: &Entry) -> Result<(), Error> {
    // Somebody else, a guardian perhaps, may have been done with it first.
    let Some(mut file) = trust::open_file(path, OFlags::WRONLY | OFlags::APPEND)? else { return Ok(()) };
    append(&mut file, path, torn, &[Entry { phase: Phase::Undone, ..entry.clone() }])
}

/// Undoes the changes that dead stillcore processes left under a state directory.
pub fn recover(state: &Path, owners: &[Owner], settings: &mut dyn Settings) -> Result<Restored, Error> {
    let mut restored = Restored::default();
    for path in abandoned(state, owners)? {
        let one = undo_journal(&path, owners, settings)?;
        restored.undone.extend(one.undone);
        restored.failed.extend(one.failed);
    }
    Ok(restored)
}

/// Journals whose process is gone.
fn abandoned(state: &Path, owners: &[Owner]) -> Result<Vec<PathBuf>, Error> {
    let dir = directory(state);
    if !trust::is_own(&dir)? {
        return Ok(Vec::new());
    }
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::os("read", dir.display(), source)),
    };
    let boot_id = boot_id()?;
    let of_other_boot = |path: &PathBuf| {
        read(path, owners).is_ok_and(|contents| contents.open.iter().any(|entry| entry.boot_id != boot_id))
    };
    let is_abandoned = |path: &PathBuf| {
        let process = path.file_stem().and_then(|name| name.to_str());
        let process = process.and_then(|name| name.parse::<process::Owner>().ok());
        process.is_some_and(|process| !process.alive() || of_other_boot(path))
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).filter(is_abandoned).collect())
}

#[cfg(test)]
mod tests {
    use super::super::Journal;
    use super::*;
    use crate::guardian;
    use crate::session::changes::{self, Directory};
    use std::sync::Arc;

    /// As the journal of a process that is dead: its number is beyond every kernel's limit.
    fn of_a_dead_process(journal: &Journal) -> PathBuf {
        let dead = journal.path().with_file_name("99999999-1.jsonl");
        fs::rename(journal.path(), &dead).unwrap();
        dead
    }

    fn directory(path: &Path) -> Arc<dyn Change> {
        Arc::new(Directory { path: path.to_owned() })
    }

    #[test]
    fn what_a_dead_process_left_is_undone_newest_first() {
        let state = tempfile::tempdir().unwrap();
        let (outer, inner) = (state.path().join("tracefs-1"), state.path().join("tracefs-1/tracefs-2"));
        let mut journal = Journal::create(state.path()).unwrap();
        for dir in [&outer, &inner] {
            let seq = journal.intent(directory(dir)).unwrap();
            fs::create_dir(dir).unwrap();
            journal.done(seq).unwrap();
        }
        assert!(
            guardian::recover(state.path(), changes::OWNERS).unwrap().undone.is_empty(),
            "its process still lives"
        );
        let dead = of_a_dead_process(&journal);
        let restored = guardian::recover(state.path(), changes::OWNERS).unwrap();
        assert_eq!((restored.undone.len(), restored.failed.len()), (2, 0));
        assert!(!outer.exists() && !dead.exists());
    }

    #[test]
    fn a_line_that_this_version_does_not_know_is_named_by_path_and_number() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(state.path()).unwrap();
        journal.intent(directory(Path::new("/proc/self/no/tracefs-1"))).unwrap();
        let dead = of_a_dead_process(&journal);
        let line = fs::read_to_string(&dead).unwrap();
        let newer = "{\"schema\":\"stillcore.journal/3\",\"seq\":1}\n{\"version\":9,\"seq\":1}\n";
        fs::write(&dead, line + newer).unwrap();
        let restored = guardian::recover(state.path(), changes::OWNERS).unwrap();
        assert_eq!((restored.undone.len(), restored.failed.len()), (1, 2), "{restored:?}");
        let schema = "99999999-1.jsonl: line 2 (of schema \"stillcore.journal/3\", which this version";
        assert!(restored.failed[0].contains(schema), "{restored:?}");
        assert!(restored.failed[1].contains("99999999-1.jsonl: line 3 (unreadable)"), "{restored:?}");
        assert!(dead.exists());
    }
}
