//! A stillcore call that touches the machine: its journal, its guardian, and the changes it has made so far.

use crate::error::Error;
use crate::guardian::Guardian;
use crate::isolate::journal::Journal;
use crate::isolate::undo::{self, Transient};
use crate::record::tracefs;
use crate::sys::process::Owner;
use crate::sys::process::is_root;
use rustix::mount::{MountFlags, mount};
use std::fs;
use std::path::{Path, PathBuf};

/// Where root keeps its state.
const SYSTEM: &str = "/var/lib/stillcore";

/// Where stillcore keeps its state when none is given: `/var/lib/stillcore` for root, else under the user's home.
pub fn default_state(home: Option<&Path>) -> Option<PathBuf> {
    if is_root() { Some(PathBuf::from(SYSTEM)) } else { home.map(own_state) }
}

/// Where to look for what stands, in this order: only root can have isolated anything, and everybody may ask.
pub fn states_to_read(home: Option<&Path>) -> Vec<PathBuf> {
    to_read(is_root(), home)
}

fn to_read(root: bool, home: Option<&Path>) -> Vec<PathBuf> {
    let own = home.filter(|_| !root).map(own_state);
    std::iter::once(PathBuf::from(SYSTEM)).chain(own).collect()
}

fn own_state(home: &Path) -> PathBuf {
    home.join(".local/state/stillcore")
}

/// The changes of one call, each in the journal before it is made, all taken back at the end.
#[derive(Debug)]
pub struct Session {
    program: PathBuf,
    state: PathBuf,
    journal: Option<Journal>,
    guardian: Option<Guardian>,
    tracefs: Option<PathBuf>,
}

impl Session {
    /// Opens a session; `program` is this very binary, which children run.
    pub fn open(program: &Path, state: &Path) -> Result<Self, Error> {
        let journal = Journal::create(state)?;
        let guardian = Guardian::start(program, journal.path())?;
        Ok(Self {
            program: program.to_owned(),
            state: state.to_owned(),
            journal: Some(journal),
            guardian: Some(guardian),
            tracefs: None,
        })
    }

    /// This very binary.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Where its journal is.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Makes a change with its intent on disk first. The change must have no effect when it returns an error.
    pub fn change<T>(
        &mut self,
        kind: Transient,
        target: &str,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let journal = self.journal_mut()?;
        let seq = journal.intent(kind.id(), target, None, None)?;
        match make() {
            Ok(made) => {
                journal.done(seq)?;
                Ok(made)
            }
            Err(error) => {
                journal.undone(seq)?;
                Err(error)
            }
        }
    }

    /// Writes down the value of a file that something is about to change, to be given back whatever happens. A file that cannot be read
    /// is none of this kernel's.
    pub fn keep(&mut self, path: &str) -> Result<(), Error> {
        if undo::standing(Transient::Value, path).is_none() {
            return Ok(());
        }
        self.foresee(Transient::Value, path)
    }

    /// Gives a file another value, the old one written down first, to be given back whatever happens.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), Error> {
        self.keep(path)?;
        fs::write(path, value).map_err(|source| Error::os("write", path, source))
    }

    /// Writes down what another process of this call is about to change, with what stands now, to be taken back whatever happens.
    pub fn foresee(&mut self, kind: Transient, target: &str) -> Result<(), Error> {
        let old = undo::standing(kind, target);
        let journal = self.journal_mut()?;
        let seq = journal.intent(kind.id(), target, old.as_deref(), None)?;
        journal.done(seq)
    }

    /// Takes one change back.
    pub fn take_back(&mut self, kind: Transient, target: &str) -> Result<(), Error> {
        let journal = self.journal_mut()?;
        let found = journal.open().rev().find(|entry| entry.id == kind.id() && entry.target == target);
        let old = found.and_then(|entry| entry.old.clone());
        undo::undo(kind.id(), target, old.as_deref())?;
        self.forget(kind, target)
    }

    /// Notes that a change is no more.
    pub fn forget(&mut self, kind: Transient, target: &str) -> Result<(), Error> {
        let journal = self.journal_mut()?;
        let found = journal.open().rev().find(|entry| entry.id == kind.id() && entry.target == target);
        match found.map(|entry| entry.seq) {
            Some(seq) => journal.undone(seq),
            None => Ok(()),
        }
    }

    /// Writes down a child process, so that it cannot outlive this one whatever happens.
    pub fn adopt(&mut self, pid: u32) -> Result<String, Error> {
        let target = Owner::of(pid as i32).map_or_else(|| format!("{pid}-0"), |owner| owner.to_string());
        self.change(Transient::Process, &target, || Ok(()))?;
        Ok(target)
    }

    /// The tracefs of this machine: where it is mounted, or a mount of our own.
    pub fn tracefs(&mut self) -> Result<PathBuf, Error> {
        if let Some(path) = &self.tracefs {
            return Ok(path.clone());
        }
        let path = self.find_or_mount_tracefs()?;
        self.tracefs = Some(path.clone());
        Ok(path)
    }

    fn find_or_mount_tracefs(&mut self) -> Result<PathBuf, Error> {
        let mounts = fs::read_to_string("/proc/mounts").map_err(|e| Error::os("read", "/proc/mounts", e))?;
        if let Some(path) = tracefs::mounted_at(&mounts) {
            return Ok(path);
        }
        if !tracefs::supported() {
            return Err(Error::failed("tracing", "this kernel has no tracefs"));
        }
        let point = self.state.join(format!("tracefs-{}", std::process::id()));
        let target = point.display().to_string();
        self.change(Transient::Directory, &target, || {
            fs::create_dir(&point).map_err(|source| Error::os("create", point.display(), source))
        })?;
        self.change(Transient::TracefsMount, &target, || {
            mount(
                "stillcore",
                &point,
                "tracefs",
                MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
                None,
            )
            .map_err(|error| Error::os("mount tracefs at", point.display(), error))
        })?;
        Ok(point)
    }

    /// Takes everything back, newest first, and lets the guardian go. Tells what could not be taken back.
    pub fn close(mut self) -> Vec<String> {
        self.restore()
    }

    fn restore(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        if let Some(mut journal) = self.journal.take() {
            let open: Vec<_> = journal
                .open()
                .rev()
                .map(|entry| (entry.seq, entry.id.clone(), entry.target.clone(), entry.old.clone()))
                .collect();
            for (seq, id, target, old) in open {
                match undo::undo(&id, &target, old.as_deref()) {
                    // A journal that cannot be written still says too much, never too little: the next call finds nothing to undo.
                    Ok(()) => drop(journal.undone(seq)),
                    Err(error) => failed.push(error.to_string()),
                }
            }
            failed.extend(journal.close().err().map(|error| error.to_string()));
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.release();
        }
        failed
    }

    fn journal_mut(&mut self) -> Result<&mut Journal, Error> {
        self.journal.as_mut().ok_or_else(|| Error::failed("the journal", "the session is closed"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_root_has_left_is_looked_for_by_everybody() {
        let home = Some(Path::new("/h"));
        let own = PathBuf::from("/h/.local/state/stillcore");
        assert_eq!(to_read(false, home), [PathBuf::from(SYSTEM), own]);
        assert_eq!(to_read(false, None), [PathBuf::from(SYSTEM)]);
        assert_eq!(to_read(true, home), [PathBuf::from(SYSTEM)], "root's home is nobody's state");
    }
}
