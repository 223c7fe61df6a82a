//! The journal: what stillcore is about to change on a machine, on disk before it changes it.
//!
//! One file a stillcore process, append-only JSON lines under `<state>/journal/`. Each change writes an `intent`, synced with its
//! directory before the machine is touched, then a `done`, and when it is taken back an `undone`. A torn last line is an intent that
//! never led to a change, or a note about one whose earlier line is whole; every line carries a checksum.

use super::trust;
use crate::error::Error;
use crate::sys::process::Owner;
use model::plan::StepKind;
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// How far a change has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// About to be made: it may or may not have happened.
    Intent,
    /// Made.
    Done,
    /// Taken back.
    Undone,
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of the change; its lines share it.
    pub seq: u64,
    /// The boot it was made in: most changes end with it.
    pub boot_id: String,
    /// What kind of change: a mechanism's id, or one of [`crate::isolate::undo::Transient`].
    pub id: String,
    /// What is changed: a path, a process.
    pub target: String,
    /// The value before; `None` where the target did not exist.
    pub old: Option<String>,
    /// The value after.
    pub new: Option<String>,
    /// How a standing change is made; none for what lasts only as long as a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<StepKind>,
    /// What read back after the change, where the kernel made something else of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<String>,
    /// How far it got.
    pub phase: Phase,
    /// CRC-32 of the other fields.
    pub crc: u32,
}

impl Entry {
    fn checksum(&self) -> u32 {
        let Self { seq, boot_id, id, target, old, new, kind, read_back, phase, crc: _ } = self;
        let mut text = format!("{seq}\0{boot_id}\0{id}\0{target}\0{old:?}\0{new:?}\0{phase:?}");
        if kind.is_some() || read_back.is_some() {
            let _ = write!(text, "\0{kind:?}\0{read_back:?}");
        }
        crc32fast::hash(text.as_bytes())
    }
}

/// The journal of this process.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    boot_id: String,
    next: u64,
    open: BTreeMap<u64, Entry>,
}

/// Name of the directory of journals.
const DIRECTORY: &str = "journal";

/// The directory of journals under a state directory.
pub fn directory(state: &Path) -> PathBuf {
    state.join(DIRECTORY)
}

impl Journal {
    /// Starts a journal for the calling process.
    pub fn create(state: &Path) -> Result<Self, Error> {
        let dir = trust::make_directory(state, DIRECTORY)?;
        let name = format!("{}.jsonl", Owner::of_this_process()?);
        let path = directory(state).join(&name);
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&dir, &name, flags, Mode::RUSR | Mode::WUSR);
        let file = file.map_err(|error| Error::os("create the journal", path.display(), error))?.into();
        let journal = Self { path, file, boot_id: boot_id()?, next: 0, open: BTreeMap::new() };
        journal.sync()?;
        Ok(journal)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes down a change that is about to be made. Only after this may the machine be touched.
    pub fn intent(
        &mut self,
        id: &str,
        target: &str,
        old: Option<&str>,
        new: Option<&str>,
    ) -> Result<u64, Error> {
        let seq = self.next;
        let entry = Entry {
            seq,
            boot_id: self.boot_id.clone(),
            id: id.to_owned(),
            target: target.to_owned(),
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
            kind: None,
            read_back: None,
            phase: Phase::Intent,
            crc: 0,
        };
        self.append(entry.clone())?;
        self.next += 1;
        self.open.insert(seq, entry);
        Ok(seq)
    }

    /// Writes down that the change was made.
    pub fn done(&mut self, seq: u64) -> Result<(), Error> {
        self.follow(seq, Phase::Done)
    }

    /// Writes down that the change is no more.
    pub fn undone(&mut self, seq: u64) -> Result<(), Error> {
        let written = self.follow(seq, Phase::Undone);
        self.open.remove(&seq);
        written
    }

    /// Changes not yet taken back, oldest first.
    pub fn open(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.open.values()
    }

    /// Ends the journal: the file goes when nothing in it is open.
    pub fn close(self) -> Result<(), Error> {
        if self.open.is_empty() { remove(&self.path) } else { Ok(()) }
    }

    fn follow(&mut self, seq: u64, phase: Phase) -> Result<(), Error> {
        let Some(entry) = self.open.get(&seq) else { return Ok(()) };
        self.append(Entry { phase, ..entry.clone() })
    }

    fn append(&mut self, entry: Entry) -> Result<(), Error> {
        append_line(&mut self.file, &self.path, entry)?;
        self.sync()
    }

    fn sync(&self) -> Result<(), Error> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let sync = || self.file.sync_all().and_then(|()| File::open(dir)?.sync_all());
        sync().map_err(|source| Error::os("sync the journal", self.path.display(), source))
    }
}

/// Adds a line to a journal that another process began, as undoing does.
pub fn append_to(path: &Path, entry: &Entry, phase: Phase) -> Result<(), Error> {
    // Somebody else, a guardian perhaps, may have been done with it first.
    let Some(mut file) = trust::open_file(path, OFlags::WRONLY | OFlags::APPEND)? else { return Ok(()) };
    append_line(&mut file, path, Entry { phase, ..entry.clone() })?;
    file.sync_all().map_err(|source| Error::os("sync the journal", path.display(), source))
}

fn append_line(file: &mut File, path: &Path, entry: Entry) -> Result<(), Error> {
    let failed = |source| Error::os("write the journal", path.display(), source);
    let line = line(entry).map_err(failed)?;
    file.write_all(line.as_bytes()).map_err(failed)
}

/// An entry as a line, with its checksum.
pub(super) fn line(mut entry: Entry) -> Result<String, std::io::Error> {
    entry.crc = entry.checksum();
    let mut line = serde_json::to_string(&entry)?;
    line.push('\n');
    Ok(line)
}

/// Removes a journal that is no longer needed.
pub fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::os("remove the journal", path.display(), source))
        }
        _ => Ok(()),
    }
}

/// The changes of a journal that are still open, oldest first. Lines that are torn or damaged are
/// left out: where something is undone, [`read`] names them.
pub fn read_open(path: &Path) -> Result<Vec<Entry>, Error> {
    read(path).map(|(open, _)| open)
}

/// A line that is whole and wrong: changed since it was written, or of a kind that this program
/// does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// Its number, from 1 on.
    pub line: usize,
    /// What it seems to say, where it can be read at all; any part of it may be the damage.
    pub seems: Option<Entry>,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| match value {
            Some(value) if value.len() > 60 => "a long value".to_owned(),
            Some(value) => format!("{value:?}"),
            None => "nothing".to_owned(),
        };
        match &self.seems {
            Some(Entry { id, target, old, new, .. }) => {
                let id = id.escape_debug();
                write!(
                    f,
                    "line {} (it seems {id} {target:?}, from {} to {})",
                    self.line,
                    value(old),
                    value(new)
                )
            }
            None => write!(f, "line {} (unreadable)", self.line),
        }
    }
}

/// The same, and which lines are damaged. A line that breaks off, of a killed call or a full disk,
/// is none of them: what it was to
/// say was never done.
pub fn read(path: &Path) -> Result<(Vec<Entry>, Vec<Damaged>), Error> {
    // Somebody else, a guardian perhaps, may have been done with it first.
    let Some(mut file) = trust::open_file(path, OFlags::RDONLY)? else {
        return Ok((Vec::new(), Vec::new()));
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(|source| Error::os("read the journal", path.display(), source))?;
    let mut open = BTreeMap::new();
    let mut damaged = Vec::new();
    for (at, line) in String::from_utf8_lossy(&text).lines().enumerate() {
        let entry = match serde_json::from_str::<Entry>(line) {
            Ok(entry) if entry.crc == entry.checksum() => entry,
            Err(error) if error.is_eof() => continue,
            read => {
                damaged.push(Damaged { line: at + 1, seems: read.ok() });
                continue;
            }
        };
        match entry.phase {
            Phase::Undone => drop(open.remove(&entry.seq)),
            Phase::Intent | Phase::Done => drop(open.insert(entry.seq, entry)),
        }
    }
    Ok((open.into_values().collect(), damaged))
}

/// The kernel's id of this boot.
pub fn boot_id() -> Result<String, Error> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    let text = fs::read_to_string(PATH).map_err(|source| Error::os("read", PATH, source))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(state: &Path) -> Journal {
        Journal::create(state).unwrap()
    }

    #[test]
    fn open_changes_survive_their_process() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = journal(state.path());
        let first = journal.intent("trace-instance", "/a", None, None).unwrap();
        let second = journal.intent("tracefs-mount", "/b", None, Some("tracefs")).unwrap();
        journal.done(second).unwrap();
        journal.undone(first).unwrap();
        let open = read_open(journal.path()).unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!((open[0].target.as_str(), open[0].phase), ("/b", Phase::Done));
    }

    #[test]
    fn a_journal_cut_at_any_byte_never_invents_a_change() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = journal(state.path());
        let first = journal.intent("cgroup", "/one", None, None).unwrap();
        journal.done(first).unwrap();
        journal.undone(first).unwrap();
        journal.intent("cgroup", "/two", Some("x"), None).unwrap();
        let bytes = fs::read(journal.path()).unwrap();
        let cut = state.path().join("cut");
        for length in 0..=bytes.len() {
            fs::write(&cut, &bytes[..length]).unwrap();
            let open = read_open(&cut).unwrap();
            assert!(open.len() <= 1, "{length}");
            assert!(open.iter().all(|entry| entry.target == "/one" || entry.target == "/two"));
        }
        fs::write(
            &cut,
            bytes.iter().map(|byte| if *byte == b'1' { b'2' } else { *byte }).collect::<Vec<_>>(),
        )
        .unwrap();
        assert!(read_open(&cut).unwrap().iter().all(|entry| entry.crc == entry.checksum()));
    }

    #[test]
    fn closing_removes_the_file_only_when_nothing_is_open() {
        let state = tempfile::tempdir().unwrap();
        let mut first = journal(state.path());
        let path = first.path().to_owned();
        let seq = first.intent("cgroup", "/one", None, None).unwrap();
        first.undone(seq).unwrap();
        first.close().unwrap();
        assert!(!path.exists());
    }
}
