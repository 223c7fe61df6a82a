//! What a session itself changes: children, values of files, a mount of tracefs in a directory.

use crate::earlier::{self, transient};
use crate::settings::{Settings, reach};
use crate::{Change, Earlier, Form, Kind, Owner, Present, earlier_entry};
use rustix::fs::statfs;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use sys::tracefs::{OWN_POINT, TRACEFS_MAGIC};
use sys::{Error, clock, process};

/// How these are read from a journal.
pub const OWNERS: &[Owner] =
    &[Owner::of::<Directory>(), Owner::of::<TracefsMount>(), Owner::of::<Child>(), Owner::of::<Value>()];

/// Tries for up to a second: something may still hold on to what is to go.
pub fn patiently(mut action: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    let give_up = clock::now_ns() + clock::SECOND_NS;
    loop {
        match action() {
            Err(_) if clock::now_ns() < give_up => clock::sleep_until(clock::now_ns() + 20_000_000),
            result => return result,
        }
    }
}

/// A directory that is there is as it was made.
pub fn made_if(there: bool) -> Present {
    if there { Present::Made } else { Present::Gone }
}

/// A directory of stillcore's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    /// Where it is.
    pub path: PathBuf,
}

impl Kind for Directory {
    const FORM: Form = Form { kind: "directory", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        Some(Ok(Self { path: earlier::path(entry, "directory")? }))
    }
}

impl Change for Directory {
    fn target(&self) -> String {
        self.path.display().to_string()
    }

    fn bounds(&self) -> Result<(), Error> {
        let may = reach::is_plain(&self.path) && reach::is_named(&self.path, OWN_POINT);
        reach::allow(may, "a directory", &self.target())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        Ok(made_if(fs::symlink_metadata(&self.path).is_ok()))
    }

    fn undo(&self, _: &mut dyn Settings) -> Result<(), Error> {
        match fs::remove_dir(&self.path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(Error::os("remove", self.path.display(), source))
            }
            _ => Ok(()),
        }
    }

    fn outlives_boot(&self) -> bool {
        true
    }
}

/// A mount of tracefs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracefsMount {
    /// The mount point.
    pub path: PathBuf,
}

impl Kind for TracefsMount {
    const FORM: Form = Form { kind: "tracefs-mount", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        Some(Ok(Self { path: earlier::path(entry, "tracefs-mount")? }))
    }
}

impl Change for TracefsMount {
    fn target(&self) -> String {
        self.path.display().to_string()
    }

    fn bounds(&self) -> Result<(), Error> {
        let may = reach::is_plain(&self.path) && reach::is_named(&self.path, OWN_POINT);
        reach::allow(may, "a mount at", &self.target())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        match statfs(&self.path) {
            Ok(found) => Ok(made_if(found.f_type as u64 == TRACEFS_MAGIC)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Present::Gone),
            Err(_) => Ok(Present::Made),
        }
    }

    fn undo(&self, _: &mut dyn Settings) -> Result<(), Error> {
        patiently(|| match unmount(&self.path, UnmountFlags::NOFOLLOW) {
            // Nothing is mounted there.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
            Err(error) => Err(Error::os("unmount", self.path.display(), error)),
        })
    }
}

/// A child process, which must not outlive the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Child {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since boot: numbers are used again.
    pub start: u64,
}

impl Kind for Child {
    const FORM: Form = Form { kind: "child", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        let read = || {
            let process::Owner { pid, start } = entry
                .target
                .parse()
                .map_err(|()| earlier::wrong(format_args!("no process {:?}", entry.target)))?;
            Ok(Self { pid, start })
        };
        transient(entry, "process").then(read)
    }
}

impl Child {
    fn process(&self) -> process::Owner {
        process::Owner { pid: self.pid, start: self.start }
    }
}

impl Change for Child {
    fn target(&self) -> String {
        self.process().to_string()
    }

    /// Number and start say whether it is the one.
    fn bounds(&self) -> Result<(), Error> {
        Ok(())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        Ok(made_if(self.process().alive()))
    }

    /// Waits a second at most for it to let go of what it holds. One in an uninterruptible sleep
    /// is not waited for.
    fn undo(&self, _: &mut dyn Settings) -> Result<(), Error> {
        self.process().kill();
        let give_up = clock::now_ns() + clock::SECOND_NS;
        while self.process().alive() && clock::now_ns() < give_up {
            clock::sleep_until(clock::now_ns() + 5_000_000);
        }
        Ok(())
    }
}

/// The value of a file, which something is about to write for as long as a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// The file.
    pub path: PathBuf,
    /// Its text before, without blanks at its ends.
    pub old: String,
}

impl Value {
    /// The value of now; `None` for a file that cannot be read, and so is none of this kernel's.
    pub fn of(path: &Path) -> Option<Self> {
        let old = fs::read_to_string(path).ok()?.trim().to_owned();
        Some(Self { path: path.to_owned(), old })
    }
}

impl Kind for Value {
    const FORM: Form = Form { kind: "value", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        let path = earlier::path(entry, "value")?;
        // A file that could not be read was not to be restored.
        let old = entry.old.clone().ok_or_else(|| earlier::wrong("it has no value before"));
        Some(old.map(|old| Self { path, old }))
    }
}

impl Change for Value {
    fn target(&self) -> String {
        self.path.display().to_string()
    }

    fn in_full(&self) -> String {
        format!("value {:?}, which was {:?}", self.target(), self.old)
    }

    fn bounds(&self) -> Result<(), Error> {
        reach::allow(reach::is_setting(&self.path), "a value of", &self.target())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        Ok(match fs::read_to_string(&self.path) {
            Ok(now) if now.trim() == self.old => Present::Before,
            Err(error) if error.kind() == ErrorKind::NotFound => Present::Gone,
            _ => Present::Made,
        })
    }

    fn undo(&self, _: &mut dyn Settings) -> Result<(), Error> {
        let written = fs::write(&self.path, &self.old);
        written.map_err(|source| Error::os("write", self.path.display(), source))
    }
}
