//! The journal: what stillcore is about to change on a machine, on disk before it changes it, and
//! undone by the next of these: the call itself, its guardian, the next call.
//!
//! A journal is a file of JSON lines, each of them of [`SCHEMA`]:
//!
//! | key | type | what |
//! |---|---|---|
//! | `schema` | string | [`SCHEMA`] |
//! | `seq` | integer | number of the change; its lines share it |
//! | `boot_id` | string | the boot it was made in |
//! | `phase` | `intent`, `done`, `undone` | how far it got: [`Phase`] |
//! | `kind`, `version` | string, integer | whose change it is: [`Form`], a row of the list of owners |
//! | `change` | object | the fields of that kind and version, typed by its owner |
//! | `crc` | integer | CRC-32 of the text of the line before `,"crc":` |
//!
//! Lines of another schema, kind or version, with fields that the kind does not have, or changed
//! since they were written are refused by path and number ([`Refused`]), never passed over. A line
//! that breaks off, of a killed call or a full disk, is none of these: what it was to say was never
//! done. Journals of versions before this schema are read by [`earlier`].
//!
//! Nothing here knows what is changed. Each kind has an owner that implements [`Change`]; the list
//! of owners is the caller's. Files: [`own`] is the journal of a call, [`read`] reads any,
//! [`recover`] undoes, [`trust`] decides whose files are acted upon at all.
//!
//! Around it: [`session`] has the changes of one call, [`guardian`] undoes them when the call is
//! killed, [`settings`] reads and writes what can be set, [`affinities`] restores where tasks and
//! interrupts may run, [`enter`] brings tasks onto CPUs that a partition owns.

#![forbid(unsafe_code)]

pub mod affinities;
pub mod alone;
mod change;
mod decoded;
pub mod directories;
pub mod earlier;
pub mod earlier_entry;
pub mod enter;
pub mod guardian;
mod line;
mod note;
mod own;
mod phase;
mod read;
pub mod recover;
pub mod session;
pub mod settings;
pub mod trust;

pub use crate::decoded::Why;
pub use crate::decoded::{Entry, Refused};
pub use crate::phase::Phase;
pub use change::{Change, Earlier, Form, Kind, Owner, Present, Stored};
pub use line::{SCHEMA, encode};
pub use note::Note;
pub use own::Journal;
pub use read::{Contents, read};

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use sys::Error;

/// Name of the directory of journals.
const DIRECTORY: &str = "journal";

/// The directory of journals under a state directory.
pub fn directory(state: &Path) -> PathBuf {
    state.join(DIRECTORY)
}

/// The kernel's id of this boot.
pub fn boot_id() -> Result<String, Error> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    let text = fs::read_to_string(PATH).map_err(|source| Error::os("read", PATH, source))?;
    Ok(text.trim().to_owned())
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

/// Adds lines to a journal and syncs it. `torn`: whether the file ends in the middle of a line,
/// which would swallow the next one; kept up to date.
pub fn append(file: &mut File, path: &Path, torn: &mut bool, entries: &[Entry]) -> Result<(), Error> {
    let failed = |source| Error::os("write the journal", path.display(), source);
    let mut text = if *torn { "\n".to_owned() } else { String::new() };
    for entry in entries {
        text.push_str(&encode(entry).map_err(|error| failed(error.into()))?);
    }
    *torn = true;
    file.write_all(text.as_bytes()).map_err(failed)?;
    *torn = false;
    file.sync_all().map_err(|source| Error::os("sync the journal", path.display(), source))
}

/// Syncs the directory of a journal.
pub fn sync_directory(path: &Path) -> Result<(), Error> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|source| Error::os("sync the journal", path.display(), source))
}
