//! The journal of a call that touches the machine: `journal/PID-START.jsonl` in the state
//! directory.
//!
//! Each change writes an `intent`, synced with its directory before the machine is touched, then a
//! `done`, and when it is undone an `undone`.

use super::change::Change;
use super::{DIRECTORY, append, boot_id, directory, remove, sync_directory, trust};
use crate::decoded::Entry;
use crate::phase::Phase;
use rustix::fs::{Mode, OFlags, openat};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sys::Error;
use sys::process::Owner;

/// The journal of this process.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    torn: bool,
    boot_id: String,
    next: u64,
    open: BTreeMap<u64, Entry>,
}

impl Journal {
    /// Where that of the calling process is, or will be.
    pub fn place(state: &Path) -> Result<PathBuf, Error> {
        Ok(directory(state).join(format!("{}.jsonl", Owner::of_this_process()?)))
    }

    /// Starts a journal for the calling process.
    pub fn create(state: &Path) -> Result<Self, Error> {
        let dir = trust::make_directory(state, DIRECTORY)?;
        let path = Self::place(state)?;
        let name = path.file_name().unwrap_or_default();
        let boot_id = boot_id()?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&dir, name, flags, Mode::RUSR | Mode::WUSR);
        let file = file.map_err(|error| Error::os("create the journal", path.display(), error))?.into();
        let mut journal = Self { path, file, torn: false, boot_id, next: 0, open: BTreeMap::new() };
        if let Err(error) = journal.append(&[]) {
            // Nothing is open in it, and nobody else would take it away.
            let _ = remove(&journal.path);
            return Err(error);
        }
        Ok(journal)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes down a change that is about to be made; gives its number. Only after this may the
    /// machine be touched.
    pub fn intent(&mut self, change: Arc<dyn Change>) -> Result<u64, Error> {
        let seq = self.next;
        let entry = Entry { seq, boot_id: self.boot_id.clone(), phase: Phase::Intent, change };
        self.append(std::slice::from_ref(&entry))?;
        self.next += 1;
        self.open.insert(seq, entry);
        Ok(seq)
    }

    /// Writes down that the change was made.
    pub fn done(&mut self, seq: u64) -> Result<(), Error> {
        self.follow(seq, Phase::Done)
    }

    /// Writes down that the change is undone.
    pub fn undone(&mut self, seq: u64) -> Result<(), Error> {
        let written = self.follow(seq, Phase::Undone);
        self.open.remove(&seq);
        written
    }

    /// The change of this number, unless it is undone.
    pub fn get(&self, seq: u64) -> Option<&Entry> {
        self.open.get(&seq)
    }

    /// Changes not yet undone, oldest first.
    pub fn open(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.open.values()
    }

    /// Ends the journal: the file goes when nothing in it is open.
    pub fn close(self) -> Result<(), Error> {
        if self.open.is_empty() { remove(&self.path) } else { Ok(()) }
    }

    fn follow(&mut self, seq: u64, phase: Phase) -> Result<(), Error> {
        let Some(entry) = self.open.get(&seq) else { return Ok(()) };
        self.append(&[Entry { phase, ..entry.clone() }])
    }

    fn append(&mut self, entries: &[Entry]) -> Result<(), Error> {
        append(&mut self.file, &self.path, &mut self.torn, entries)?;
        sync_directory(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Contents, read};
    use super::*;
    use crate::session::changes::{self, Directory};
    use std::fs;

    fn directory(path: &str) -> Arc<dyn Change> {
        Arc::new(Directory { path: path.into() })
    }

    fn open(path: &Path) -> Contents {
        read(path, changes::OWNERS).unwrap()
    }

    #[test]
    fn open_changes_survive_their_process() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(state.path()).unwrap();
        let first = journal.intent(directory("/a")).unwrap();
        let second = journal.intent(directory("/b")).unwrap();
        journal.done(second).unwrap();
        journal.undone(first).unwrap();
        let open = open(journal.path()).open;
        assert_eq!(open.len(), 1);
        assert_eq!((open[0].change.target().as_str(), open[0].phase), ("/b", Phase::Done));
    }

    #[test]
    fn a_journal_cut_at_any_byte_never_invents_a_change() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(state.path()).unwrap();
        let first = journal.intent(directory("/one")).unwrap();
        journal.done(first).unwrap();
        journal.undone(first).unwrap();
        journal.intent(directory("/two")).unwrap();
        let bytes = fs::read(journal.path()).unwrap();
        let cut = state.path().join("cut");
        for length in 0..=bytes.len() {
            fs::write(&cut, &bytes[..length]).unwrap();
            let Contents { open, refused, .. } = open(&cut);
            assert!(open.len() <= 1 && refused.is_empty(), "{length}: {refused:?}");
            assert!(open.iter().all(|entry| ["/one", "/two"].contains(&entry.change.target().as_str())));
        }
    }

    /// A disk that was full for a moment leaves a line that breaks off; the next one is whole.
    #[test]
    fn what_follows_a_torn_line_is_read() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(state.path()).unwrap();
        let first = journal.intent(directory("/one")).unwrap();
        let mut text = fs::read_to_string(journal.path()).unwrap();
        text.push_str("{\"schema\":\"stillcore.journal/2\",\"seq\":1,\"bo");
        fs::write(journal.path(), text).unwrap();
        journal.torn = true;
        journal.undone(first).unwrap();
        let Contents { open, refused, .. } = open(journal.path());
        assert!(open.is_empty() && refused.is_empty(), "{refused:?}");
    }

    #[test]
    fn closing_removes_the_file_only_when_nothing_is_open() {
        let state = tempfile::tempdir().unwrap();
        let mut first = Journal::create(state.path()).unwrap();
        let path = first.path().to_owned();
        let seq = first.intent(directory("/one")).unwrap();
        first.undone(seq).unwrap();
        first.close().unwrap();
        assert!(!path.exists());
    }
}
