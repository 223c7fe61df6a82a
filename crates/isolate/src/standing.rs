//! The journal of standing isolation: one file that outlives the call that wrote it, until the
//! isolation is undone.
//!
//! Its first entry says what was asked. Changes come in batches: the intents of a batch are
//! appended and synced together, file and directory, before the first of its writes; every write to
//! the machine thus comes after its own intent.

use super::notes::{Desired, Immovable, Keeping};
use super::setting::Setting;
use crate::head::Head;
use crate::placed;
use crate::undone;
use crate::watched::Watched;
use audit::Profile;
use audit::keep::Keep;
use audit::placement;
use audit::purpose::Purpose;
use journal::affinities::{Affinities, Affinity};
use journal::{Change, Contents, Entry, Phase, Refused, alone, trust};
use model::plan::{Placement, Step};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::Error;

/// Between two tries to lock it.
const PAUSE: Duration = Duration::from_millis(20);

/// The journal, held by one process at a time.
#[derive(Debug)]
pub struct Standing {
    path: PathBuf,
    /// None on a file system that is read-only now.
    file: Option<File>,
    /// Whether the file ends in the middle of a line.
    torn: bool,
    /// Lines that are whole and cannot be acted upon.
    refused: Vec<Refused>,
    _lock: File,
    boot_id: String,
    entries: Vec<Entry>,
    next: u64,
}

/// What became of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its number in the journal.
    pub seq: u64,
    /// How far it got.
    pub phase: Phase,
    /// What read back, where the kernel made something else of the value.
    pub read_back: Option<String>,
}

/// What is found under a state directory, without holding it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What was asked.
    pub head: Head,
    /// Settings that stand, oldest first.
    pub settings: Vec<Setting>,
    /// Affinities that undoing restores, oldest first.
    pub affinities: Vec<Affinities>,
    /// Settings that the kernel let nobody change.
    pub immovable: Vec<String>,
    /// Lines of the journal that cannot be acted upon, with the reason: what they were to say is
    /// neither known nor undone.
    pub refused: Vec<String>,
    /// What was right when applying ended; `None` where it never did.
    pub watched: Option<Watched>,
    /// Who is on the isolated CPUs on purpose.
    pub purpose: Purpose,
    /// What asked for it; `None` for a deployment, and where an earlier version wrote the journal.
    pub desired: Option<Profile>,
    /// Whether they were made in this boot; those of another went with it.
    pub this_boot: bool,
}

impl Found {
    /// Settings that the machine is to have, oldest first: of those that several calls have set, as
    /// the last one left it.
    pub fn in_force(&self) -> Vec<&Setting> {
        in_force(self.settings.iter())
    }

    /// How the scheduler is kept off: as was asked, or by affinities where the kernel has refused
    /// that.
    pub fn placement(&self) -> Placement {
        let made = |setting: &Setting| {
            !setting.kind.remembers() && placement::IDS.contains(&setting.mechanism.as_str())
        };
        match self.head.placement {
            Placement::Partition | Placement::Cpuset if !self.settings.iter().any(made) => {
                Placement::Affinity
            }
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

/// Reads the isolation in force; `None` where there is none. Error: there is a journal of which not
/// even the request can be read.
pub fn find(state: &Path) -> Result<Option<Found>, Error> {
    let path = path(state);
    let contents = read(&path)?;
    let refused = contents.refused.first().map(|line| {
        let what = "it cannot be trusted, so what stands is not known";
        Error::failed(format!("the journal {}: {line}", path.display()), what)
    });
    match found(&path, &contents.open, &contents.refused, &journal::boot_id()?)? {
        None => refused.map_or(Ok(None), Err),
        found => Ok(found),
    }
}

fn read(path: &Path) -> Result<Contents, Error> {
    journal::read(path, crate::owners())
}

/// Reads the isolation in force under the first of these directories that has a journal; returns
/// that directory as well. Error: a journal that may not be read, so that nobody takes the content
/// of another directory for the whole.
pub fn find_first(states: &[PathBuf]) -> Result<Option<(PathBuf, Found)>, Error> {
    for state in states {
        if let Some(found) = find(state)? {
            return Ok(Some((state.clone(), found)));
        }
    }
    Ok(None)
}

fn found(path: &Path, entries: &[Entry], refused: &[Refused], boot_id: &str) -> Result<Option<Found>, Error> {
    let head = entries.iter().find_map(|entry| Some((entry, entry.change.of::<Head>()?)));
    // Without a whole first line nothing was changed.
    let Some((entry, head)) = head else { return Ok(None) };
    Ok(Some(Found {
        head: head.clone(),
        settings: of::<Setting>(entries).cloned().collect(),
        affinities: of::<Affinities>(entries).cloned().collect(),
        immovable: of::<Immovable>(entries).map(|note| note.target.clone()).collect(),
        refused: refused.iter().map(ToString::to_string).collect(),
        watched: of::<Watched>(entries).last().cloned(),
        purpose: purpose(path, kept_by(entries))?,
        desired: of::<Desired>(entries).last().map(|desired| desired.profile.clone()),
        this_boot: entry.boot_id == boot_id,
    }))
}

/// The last setting of each target, oldest first.
fn in_force<'a>(settings: impl DoubleEndedIterator<Item = &'a Setting>) -> Vec<&'a Setting> {
    let mut seen = BTreeSet::new();
    let made = settings.rev().filter(|setting| !setting.kind.remembers());
    let mut last: Vec<_> = made.filter(|setting| seen.insert((setting.kind, &setting.target))).collect();
    last.reverse();
    last
}

/// The entries of one type, oldest first.
fn of<T: Change>(entries: &[Entry]) -> impl DoubleEndedIterator<Item = &T> {
    entries.iter().filter_map(|entry| entry.change.of::<T>())
}

/// As the last entry of that says.
fn kept_by(entries: &[Entry]) -> Vec<String> {
    of::<Keeping>(entries).last().map(|keeping| keeping.what.clone()).unwrap_or_default()
}

fn purpose(path: &Path, keep: Vec<String>) -> Result<Purpose, Error> {
    let placed = path.parent().map(placed::read).unwrap_or_default();
    let keep: Result<Vec<Keep>, model::Error> = keep.iter().map(|text| text.parse()).collect();
    let bad = |error| Error::failed(format!("the journal {}", path.display()), error);
    Ok(Purpose { placed, keep: keep.map_err(bad)? })
}

impl Standing {
    /// Opens the journal for writing, a new one or the one that stands. Error: another process
    /// holds it.
    pub fn open(state: &Path) -> Result<Self, Error> {
        Self::open_within(state, Duration::ZERO)
    }

    /// The same, waiting so long for another process to end with it: one that holds the isolation
    /// has it for moments only.
    pub fn open_within(state: &Path, most: Duration) -> Result<Self, Error> {
        trust::make_state(state)?;
        let lock = lock(state, most)?;
        let path = path(state);
        let boot_id = journal::boot_id()?;
        let Contents { open: entries, refused, lines, torn } = read(&path)?;
        let file = match trust::open_file(&path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE) {
            // The isolation in force can be undone all the same.
            Err(error) if read_only(&error) && !entries.is_empty() => None,
            file => file?,
        };
        // Numbers of entries that were undone are not used again.
        let next = entries.iter().map(|entry| entry.seq + 1).max().unwrap_or(0).max(lines);
        Ok(Self { path, file, torn, refused, _lock: lock, boot_id, entries, next })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lines that are whole and cannot be acted upon.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// The isolation in force.
    pub fn found(&self) -> Result<Option<Found>, Error> {
        found(&self.path, &self.entries, &self.refused, &self.boot_id)
    }

    /// Writes down what was asked, first of all.
    pub fn begin(&mut self, head: &Head) -> Result<(), Error> {
        self.path.parent().inspect(|state| undone::forget(state));
        self.add(Arc::new(head.clone())).map(drop)
    }

    /// Writes down what was found to be immovable, so that it is known later.
    pub fn note(&mut self, target: &str) -> Result<(), Error> {
        self.add(Arc::new(Immovable { target: target.to_owned() })).map(drop)
    }

    /// Writes down what is right now that everything is made.
    pub fn watch(&mut self, watched: &Watched) -> Result<(), Error> {
        self.add(Arc::new(watched.clone())).map(drop)
    }

    /// Writes down what asked for the isolation, which replaces what did.
    pub fn desire(&mut self, profile: &Profile) -> Result<(), Error> {
        self.add(Arc::new(Desired { profile: profile.clone() })).map(drop)
    }

    /// Writes down what is kept, which replaces what was.
    pub fn keep(&mut self, keep: &[String]) -> Result<(), Error> {
        self.add(Arc::new(Keeping { what: keep.to_vec() })).map(drop)
    }

    /// What is kept.
    pub fn keeps(&self) -> Vec<String> {
        kept_by(&self.entries)
    }

    /// Writes down changes that are about to be made; gives their numbers. Only after this may the
    /// machine be touched.
    pub fn intend(&mut self, changes: &[(&Step, Option<String>)]) -> Result<Vec<u64>, Error> {
        let of = |(step, old): &(&Step, Option<String>)| Arc::new(Setting::of(step, old.as_deref())) as _;
        self.append(changes.iter().map(of).collect())
    }

    /// Writes down the affinities to restore when later changes are undone.
    pub(super) fn remember(&mut self, mechanism: &str, before: Vec<Affinity>) -> Result<(), Error> {
        let mechanism = mechanism.to_owned();
        let seq = self.add(Arc::new(Affinities { mechanism, before, after: None }))?;
        self.settle(&[End { seq, phase: Phase::Done, read_back: None }])
    }

    /// Writes down the present values of the remembered affinities.
    pub(super) fn note_affinities(&mut self, after: &[Affinity]) -> Result<(), Error> {
        let mut lines = Vec::new();
        for entry in &mut self.entries {
            let Some(kept) = entry.change.of::<Affinities>().filter(|kept| kept.after.is_none()) else {
                continue;
            };
            entry.change = Arc::new(Affinities { after: Some(after.to_vec()), ..kept.clone() });
            lines.push(entry.clone());
        }
        self.write(&lines)
    }

    /// Writes down what became of changes. A journal that cannot say so says too much, never too
    /// little.
    pub fn settle(&mut self, ends: &[End]) -> Result<(), Error> {
        let mut lines = Vec::new();
        for End { seq, phase, read_back } in ends {
            let Some(at) = self.entries.iter().position(|entry| entry.seq == *seq) else { continue };
            let entry = &mut self.entries[at];
            entry.phase = *phase;
            if let Some(setting) = entry.change.of::<Setting>() {
                entry.change = Arc::new(Setting { read_back: read_back.clone(), ..setting.clone() });
            } else if let Some(kept) = entry.change.of::<Affinities>() {
                entry.change = Arc::new(Affinities { after: None, ..kept.clone() });
            }
            lines.push(entry.clone());
            if *phase == Phase::Undone {
                self.entries.remove(at);
            }
        }
        self.write(&lines)
    }

    /// Changes that stand, oldest first, without the notes.
    pub fn changes(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        let changes = |entry: &&Entry| {
            entry.change.of::<Setting>().is_some() || entry.change.of::<Affinities>().is_some()
        };
        self.entries.iter().filter(changes)
    }

    /// Settings that stand, oldest first, with their numbers.
    pub fn settings(&self) -> impl DoubleEndedIterator<Item = (u64, &Setting)> {
        self.entries.iter().filter_map(|entry| Some((entry.seq, entry.change.of::<Setting>()?)))
    }

    /// Settings that the machine is to have, as [`Found::in_force`].
    pub fn in_force(&self) -> Vec<&Setting> {
        in_force(of::<Setting>(&self.entries))
    }

    /// Affinities that undoing restores, oldest first.
    pub fn affinities(&self) -> impl DoubleEndedIterator<Item = &Affinities> {
        of(&self.entries)
    }

    /// Removes the journal.
    pub fn end(self) -> Result<(), Error> {
        self.path.parent().inspect(|state| {
            placed::tidy(state);
            alone::tidy(state, alone::Role::Hold);
        });
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

    fn add(&mut self, change: Arc<dyn Change>) -> Result<u64, Error> {
        Ok(self.append(vec![change])?[0])
    }

    /// Writes down what is about to be made, all of it before any is.
    fn append(&mut self, changes: Vec<Arc<dyn Change>>) -> Result<Vec<u64>, Error> {
        let boot_id = &self.boot_id;
        let entry = |(seq, change)| Entry { seq, boot_id: boot_id.clone(), phase: Phase::Intent, change };
        let entries: Vec<_> = (self.next..).zip(changes).map(entry).collect();
        self.write(&entries)?;
        self.next += entries.len() as u64;
        let numbers = entries.iter().map(|entry| entry.seq).collect();
        self.entries.extend(entries);
        Ok(numbers)
    }

    fn write(&mut self, entries: &[Entry]) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let failed = |source: ErrorKind| Error::os("write the journal", self.path.display(), source);
        let Some(file) = &mut self.file else { return Err(failed(ErrorKind::ReadOnlyFilesystem)) };
        journal::append(file, &self.path, &mut self.torn, entries)?;
        journal::sync_directory(&self.path)
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

fn lock(state: &Path, most: Duration) -> Result<File, Error> {
    let until = Instant::now() + most;
    let path = state.join("isolation.lock");
    let file = match trust::open_file(&path, OFlags::WRONLY | OFlags::CREATE) {
        Err(error) if read_only(&error) => trust::open_file(&path, OFlags::RDONLY),
        file => file,
    };
    let file = file?.ok_or_else(|| Error::os("open", path.display(), Errno::NOENT))?;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => {
                let what = format!(
                    "another stillcore is at work on {}; try again when it has ended",
                    state.display()
                );
                return Err(Error::failed("isolating", what));
            }
            Err(error) => return Err(Error::os("lock", path.display(), error)),
        }
    }
}
