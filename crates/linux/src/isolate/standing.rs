//! The journal of standing isolation: one file that outlives the call that wrote it, until the isolation is undone.
//!
//! Its first entry says what was asked. Changes come in batches: the intents of a batch are appended and synced together, file and
//! directory, before the first of its writes; every write to the machine thus comes after its own intent.

use super::journal::{self, Damaged, Entry, Phase};
use super::keep::Keep;
use super::placed::{self, Placed};
use super::placement;
use super::purpose::Purpose;
use super::trust;
use super::watch::Watched;
use crate::error::Error;
use model::Cpus;
use model::plan::{Placement, Plan, Step, StepKind};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The id of the first entry.
const HEAD: &str = "isolation";

/// The id of entries that change nothing.
const NOTE: &str = "note";

/// The id of the entry that says what was right when applying ended; the last one counts.
const WATCH: &str = "watch";

/// The id of the entry that says what is kept; the last one counts.
const KEEP: &str = "keep";

/// What stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The CPUs that are to be still.
    pub cpus: Cpus,
    /// They and, unless cores were split, their siblings.
    pub isolated: Cpus,
    /// Those for everything else.
    pub housekeeping: Cpus,
    /// How the scheduler was to be kept off; [`Found::placement`] says how it is.
    pub placement: Placement,
    /// The name of the deployment, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// When it was begun, in clock ticks since boot: tasks that started later were never touched.
    pub started_ticks: u64,
}

impl Head {
    /// The head of a plan that is about to be carried out.
    pub fn of(plan: &Plan, deployment: Option<&str>) -> Self {
        Self {
            cpus: plan.cpus.clone(),
            isolated: plan.isolated.clone(),
            housekeeping: plan.housekeeping.clone(),
            placement: plan.placement,
            deployment: deployment.map(str::to_owned),
            started_ticks: crate::sys::process::Owner::of_this_process().map_or(0, |owner| owner.start),
        }
    }
}

/// The journal, held by one process at a time.
#[derive(Debug)]
pub struct Standing {
    path: PathBuf,
    /// None on a file system that is read-only now.
    file: Option<File>,
    /// Whether the file ends in the middle of a line.
    torn: bool,
    /// Lines that are whole and wrong.
    damaged: Vec<Damaged>,
    _lock: File,
    boot_id: String,
    entries: Vec<Entry>,
    next: u64,
}

/// What is found under a state directory, without holding it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What was asked.
    pub head: Head,
    /// Changes that stand, oldest first.
    pub open: Vec<Entry>,
    /// What was right when applying ended; `None` where it never did.
    pub watched: Option<Watched>,
    /// Who is on the isolated CPUs on purpose.
    pub purpose: Purpose,
    /// Whether they were made in this boot; those of another went with it.
    pub this_boot: bool,
}

impl Found {
    /// How the scheduler is kept off: as was asked, or by affinities where the kernel has refused that.
    pub fn placement(&self) -> Placement {
        let made = |entry: &Entry| {
            let changes = entry.kind.is_some_and(|kind| !kind.remembers());
            changes && placement::IDS.contains(&entry.id.as_str())
        };
        match self.head.placement {
            Placement::Partition | Placement::Cpuset if !self.open.iter().any(made) => Placement::Affinity,
            asked => asked,
        }
    }
}

/// The journal under a state directory.
pub fn path(state: &Path) -> PathBuf {
    state.join("isolation.jsonl")
}

/// Whether there is a journal, readable or not.
pub fn exists(state: &Path) -> bool {
    path(state).exists()
}

/// Reads what stands; `None` where nothing does.
pub fn find(state: &Path) -> Result<Option<Found>, Error> {
    found(&path(state), &journal::boot_id()?)
}

/// Reads what stands under the first of these directories that has a journal; gives that directory as well. Error: a journal that may
/// not be read, so that nobody takes what another directory says for the whole.
pub fn find_first(states: &[PathBuf]) -> Result<Option<(PathBuf, Found)>, Error> {
    for state in states {
        if let Some(found) = find(state)? {
            return Ok(Some((state.clone(), found)));
        }
    }
    Ok(None)
}

fn found(path: &Path, boot_id: &str) -> Result<Option<Found>, Error> {
    let mut open = journal::read_open(path)?;
    let Some(at) = open.iter().position(|entry| entry.id == HEAD) else {
        // Without a whole first line nothing was changed.
        return Ok(None);
    };
    let head = open.remove(at);
    let text = head.new.as_deref().unwrap_or_default();
    let bad = |error| Error::failed(format!("the journal {}", path.display()), error);
    let parsed = serde_json::from_str(text).map_err(bad)?;
    let (watches, open): (Vec<_>, Vec<_>) = open.into_iter().partition(|entry| entry.id == WATCH);
    let watched = watches.last().and_then(|entry| serde_json::from_str(entry.new.as_deref()?).ok());
    let (keeps, open): (Vec<_>, Vec<_>) = open.into_iter().partition(|entry| entry.id == KEEP);
    let purpose = purpose(path, kept_by(&keeps))?;
    Ok(Some(Found { head: parsed, open, watched, purpose, this_boot: head.boot_id == boot_id }))
}

/// As the last of these entries says it.
fn kept_by<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<String> {
    let last = entries.into_iter().filter(|entry| entry.id == KEEP).last();
    last.and_then(|entry| serde_json::from_str(entry.new.as_deref()?).ok()).unwrap_or_default()
}

fn purpose(path: &Path, keep: Vec<String>) -> Result<Purpose, Error> {
    let placed = path.parent().map(Placed::read).unwrap_or_default();
    let keep: Result<Vec<Keep>, model::Error> = keep.iter().map(|text| text.parse()).collect();
    let bad = |error| Error::failed(format!("the journal {}", path.display()), error);
    Ok(Purpose { placed, keep: keep.map_err(bad)? })
}

impl Standing {
    /// Opens the journal for writing, a new one or the one that stands. Error: another process holds it.
    pub fn open(state: &Path) -> Result<Self, Error> {
        trust::make_state(state)?;
        let lock = lock(state)?;
        let path = path(state);
        let boot_id = journal::boot_id()?;
        let (entries, damaged) = journal::read(&path)?;
        let file = match trust::open_file(&path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE) {
            // What stands can be undone all the same.
            Err(error) if read_only(&error) && !entries.is_empty() => None,
            file => file?,
        };
        let torn = fs::read(&path).unwrap_or_default().last().is_some_and(|byte| *byte != b'\n');
        let next = entries.iter().map(|entry| entry.seq + 1).max().unwrap_or(0).max(lines(&path));
        Ok(Self { path, file, torn, damaged, _lock: lock, boot_id, entries, next })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lines that are whole and wrong.
    pub fn damaged(&self) -> &[Damaged] {
        &self.damaged
    }

    /// What stands.
    pub fn found(&self) -> Result<Option<Found>, Error> {
        found(&self.path, &self.boot_id)
    }

    /// Writes down what was asked, first of all.
    pub fn begin(&mut self, head: &Head) -> Result<(), Error> {
        let text = serde_json::to_string(head).map_err(|error| Error::failed("the journal", error))?;
        let entry = self.entry(HEAD, None, "cpus", None, &text);
        self.append(&[entry])
    }

    /// Writes down what was found to be immovable, so that it is known later.
    pub fn note(&mut self, target: &str) -> Result<(), Error> {
        let entry = self.entry(NOTE, None, target, None, "immovable");
        self.append(&[entry])
    }

    /// Writes down what is right now that everything is made.
    pub fn watch(&mut self, watched: &Watched) -> Result<(), Error> {
        let text = serde_json::to_string(watched).map_err(|error| Error::failed("the journal", error))?;
        let entry = self.entry(WATCH, None, "right", None, &text);
        self.append(&[entry])
    }

    /// Writes down what is kept, which replaces what was.
    pub fn keep(&mut self, keep: &[String]) -> Result<(), Error> {
        let text = serde_json::to_string(keep).map_err(|error| Error::failed("the journal", error))?;
        let entry = self.entry(KEEP, None, "purpose", None, &text);
        self.append(&[entry])
    }

    /// What is kept.
    pub fn keeps(&self) -> Vec<String> {
        kept_by(&self.entries)
    }

    /// Writes down changes that are about to be made; gives their numbers. Only after this may the machine be touched.
    pub fn intend(&mut self, changes: &[(&Step, Option<String>)]) -> Result<Vec<u64>, Error> {
        let mut entries = Vec::new();
        for (step, old) in changes {
            let entry = self.entry(&step.mechanism, Some(step.kind), &step.target, old.as_deref(), &step.new);
            entries.push(entry);
        }
        let numbers = entries.iter().map(|entry| entry.seq).collect();
        self.append(&entries)?;
        Ok(numbers)
    }

    /// Writes down what became of changes. A journal that cannot say so says too much, never too little.
    pub fn settle(&mut self, ends: &[(u64, Phase, Option<String>)]) -> Result<(), Error> {
        let mut lines = Vec::new();
        for (seq, phase, read_back) in ends {
            let Some(at) = self.entries.iter().position(|entry| entry.seq == *seq) else { continue };
            let entry = &mut self.entries[at];
            entry.phase = *phase;
            entry.read_back.clone_from(read_back);
            lines.push(entry.clone());
            if *phase == Phase::Undone {
                self.entries.remove(at);
            }
        }
        self.write(&lines)
    }

    /// Changes that stand, oldest first, without the head.
    pub fn changes(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.kind.is_some())
    }

    /// Removes the journal.
    pub fn end(self) -> Result<(), Error> {
        self.path.parent().inspect(|state| placed::tidy(state));
        journal::remove(&self.path)
    }

    /// Puts the journal aside under a name that no call looks for, and gives that.
    pub fn forget(self) -> Result<PathBuf, Error> {
        let name = |number: u32| self.path.with_file_name(format!("isolation.forgotten-{number}.jsonl"));
        let free = (1..10_000).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0));
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let renamed = fs::rename(&self.path, &free).and_then(|()| File::open(dir)?.sync_all());
        renamed.map_err(|source| Error::os("keep the journal as", free.display(), source))?;
        Ok(free)
    }

    fn entry(
        &mut self,
        id: &str,
        kind: Option<StepKind>,
        target: &str,
        old: Option<&str>,
        new: &str,
    ) -> Entry {
        let seq = self.next;
        self.next += 1;
        Entry {
            seq,
            boot_id: self.boot_id.clone(),
            id: id.to_owned(),
            target: target.to_owned(),
            old: old.map(str::to_owned),
            new: Some(new.to_owned()),
            kind,
            read_back: None,
            phase: Phase::Intent,
            crc: 0,
        }
    }

    fn append(&mut self, entries: &[Entry]) -> Result<(), Error> {
        self.write(entries)?;
        self.entries.extend(entries.iter().cloned());
        Ok(())
    }

    fn write(&mut self, entries: &[Entry]) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let failed = |source| Error::os("write the journal", self.path.display(), source);
        let mut text = String::new();
        for entry in entries {
            text.push_str(&journal::line(entry.clone()).map_err(failed)?);
        }
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let Some(file) = &mut self.file else { return Err(failed(ErrorKind::ReadOnlyFilesystem.into())) };
        // A torn line, of a killed call or a full disk, would swallow the next one.
        let begin = if self.torn { "\n" } else { "" };
        self.torn = true;
        file.write_all(format!("{begin}{text}").as_bytes()).map_err(failed)?;
        self.torn = false;
        file.sync_all().and_then(|()| File::open(dir)?.sync_all()).map_err(failed)
    }

    /// Who is on the isolated CPUs on purpose.
    pub fn purpose(&self) -> Result<Purpose, Error> {
        purpose(&self.path, self.keeps())
    }

    /// The number of the next change: what this call makes has this one or a later one.
    pub fn next(&self) -> u64 {
        self.next
    }
}

fn read_only(error: &Error) -> bool {
    matches!(error, Error::Os { source, .. } if source.kind() == ErrorKind::ReadOnlyFilesystem)
}

/// Numbers of entries that were undone are not used again.
fn lines(path: &Path) -> u64 {
    fs::read_to_string(path).map_or(0, |text| text.lines().count() as u64)
}

fn lock(state: &Path) -> Result<File, Error> {
    let path = state.join("isolation.lock");
    let file = match trust::open_file(&path, OFlags::WRONLY | OFlags::CREATE) {
        Err(error) if read_only(&error) => trust::open_file(&path, OFlags::RDONLY),
        file => file,
    };
    let file = file?.ok_or_else(|| Error::os("open", path.display(), Errno::NOENT))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(error) if std::io::Error::from(error).kind() == ErrorKind::WouldBlock => Err(Error::failed(
            "isolating",
            format!("another stillcore is at work on {}; try again when it has ended", state.display()),
        )),
        Err(error) => Err(Error::os("lock", path.display(), error)),
    }
}
