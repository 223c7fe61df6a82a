//! A stillcore call that touches the machine: its journal, its guardian, and the changes it has
//! made so far.

pub mod changes;

use crate::guardian::Guardian;
use crate::settings::Live;
use crate::{Change, Journal, recover};
use changes::{Child, Directory, TracefsMount, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sys::process::{self, is_root};
use sys::{Error, tracefs};

/// Where root keeps its state.
const SYSTEM: &str = "/var/lib/stillcore";

/// The user's home. `None` where HOME is not set, or is a directory that this user may not enter,
/// such as root's after `sudo -u` or `su`: nothing of this user's can be there.
pub fn home() -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let entered = fs::metadata(home.join("."));
    let closed = entered.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    (!closed).then_some(home)
}

/// Where stillcore keeps its state when none is given: `/var/lib/stillcore` for root, else under
/// the user's home.
pub fn default_state(home: Option<&Path>) -> Option<PathBuf> {
    if is_root() { Some(PathBuf::from(SYSTEM)) } else { home.map(own_state) }
}

/// Where to look for an isolation in force, in this order: only root can have isolated anything,
/// and everybody may ask.
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

/// A change that a session has made, until it is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// The changes of one call, each in the journal before it is made, all undone at the end.
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
        // Others, with another working directory, undo the changes recorded there.
        let state =
            std::path::absolute(state).map_err(|source| Error::os("find", state.display(), source))?;
        // The guardian first: killed in between, a call would leave a journal that nobody watches.
        let guardian = Guardian::start(program, &Journal::place(&state)?)?;
        let mut session = Self {
            program: program.to_owned(),
            state,
            journal: None,
            guardian: Some(guardian),
            tracefs: None,
        };
        session.journal = Some(Journal::create(&session.state)?);
        Ok(session)
    }

    /// This very binary.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Where its journal is.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Makes a change with its intent on disk first. The change must have no effect when it returns
    /// an error.
    pub fn change<T>(
        &mut self,
        change: impl Change,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<(T, Ticket), Error> {
        let journal = self.journal_mut()?;
        let seq = journal.intent(Arc::new(change))?;
        match make() {
            Ok(made) => {
                journal.done(seq)?;
                Ok((made, Ticket(seq)))
            }
            Err(error) => {
                journal.undone(seq)?;
                Err(error)
            }
        }
    }

    /// Writes down the value of a file that something is about to change, so that it is restored
    /// whatever happens. A file that cannot be read is taken as absent from this kernel.
    pub fn keep(&mut self, path: &str) -> Result<Option<Ticket>, Error> {
        Value::of(Path::new(path)).map(|value| self.foresee(Arc::new(value))).transpose()
    }

    /// Sets a file's value, the old one written down first, so that it is always restored.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), Error> {
        self.keep(path)?;
        fs::write(path, value).map_err(|source| Error::os("write", path, source))
    }

    /// Writes down what another process of this call is about to change, with the present value, so
    /// that it is undone whatever happens.
    pub fn foresee(&mut self, change: Arc<dyn Change>) -> Result<Ticket, Error> {
        let journal = self.journal_mut()?;
        let seq = journal.intent(change)?;
        journal.done(seq)?;
        Ok(Ticket(seq))
    }

    /// Undoes one change; one that is undone already is fine.
    pub fn take_back(&mut self, ticket: Ticket) -> Result<(), Error> {
        let mut live = Live::new(&self.program);
        let Some(change) = self.journal_mut()?.get(ticket.0).map(|entry| entry.change.clone()) else {
            return Ok(());
        };
        recover::undo(&*change, &mut live)?;
        self.forget(ticket)
    }

    /// Notes that a change is undone.
    pub fn forget(&mut self, ticket: Ticket) -> Result<(), Error> {
        self.journal_mut()?.undone(ticket.0)
    }

    /// Writes down a child process, so that it cannot outlive this one whatever happens.
    pub fn adopt(&mut self, pid: u32) -> Result<Ticket, Error> {
        let pid = pid as i32;
        let start = process::Owner::of(pid).map_or(0, |owner| owner.start);
        self.foresee(Arc::new(Child { pid, start }))
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
        let point = self.state.join(format!("{}{}", tracefs::OWN_POINT, std::process::id()));
        self.change(Directory { path: point.clone() }, || {
            fs::create_dir(&point).map_err(|source| Error::os("create", point.display(), source))
        })?;
        self.change(TracefsMount { path: point.clone() }, || tracefs::mount_at(&point))?;
        Ok(point)
    }

    /// Undoes everything, newest first, and releases the guardian. Returns what remains changed.
    pub fn close(mut self) -> Vec<String> {
        self.restore()
    }

    fn restore(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        if let Some(mut journal) = self.journal.take() {
            let mut live = Live::new(&self.program);
            let open: Vec<_> = journal.open().rev().map(|entry| (entry.seq, entry.change.clone())).collect();
            for (seq, change) in open {
                match recover::undo(&*change, &mut live) {
                    // A journal that cannot be written still says too much, never too little: the
                    // next call finds nothing to undo.
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
