//! A file that appears under its name when it is whole, or not at all.
//!
//! It is written under a name of its own beside its place, which nobody can have laid there before
//! (`O_EXCL`), and takes that place by a rename inside the directory that was opened for it
//! ([`crate::place`]). Mode and owner of a file that it replaces are kept.

use crate::Error;
use crate::place::{Place, is};
use rustix::fs::{self, AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How often another name is tried.
const TRIES: usize = 16;

/// A file being made. Dropped before it is kept, it leaves nothing behind.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    place: Place,
    file: File,
    /// Its name until then; `None` where what is written to is no regular file.
    temporary: Option<OsString>,
}

impl NewFile {
    /// At `path`. What is there and no regular file, a device or a pipe, is written to as it is.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::open(path).map_err(|source| Error::io("write", path, source))
    }

    fn open(path: &Path) -> io::Result<Self> {
        let place = Place::of(path)?;
        let special = place.there.as_ref().is_some_and(|there| !is(there, FileType::RegularFile));
        let (file, temporary) = if special || place.by_proc {
            (place.open_special()?, None)
        } else {
            let (file, name) = beside(&place)?;
            (file, Some(name))
        };
        Ok(Self { path: path.to_owned(), place, file, temporary })
    }

    /// The same file once more, for what writes to one of its own.
    pub fn try_clone(&self) -> Result<File, Error> {
        self.file.try_clone().map_err(|source| Error::io("write", &self.path, source))
    }

    /// Puts it in its place, when it is on disk; returns its length in bytes.
    pub fn keep(mut self) -> Result<u64, Error> {
        let kept = self.put();
        kept.map_err(|source| Error::io("write", &self.path, source))
    }

    fn put(&mut self) -> io::Result<u64> {
        let length = self.file.metadata()?.len();
        let Some(name) = &self.temporary else { return Ok(length) };
        if let Some(there) = &self.place.there {
            let ids = (Uid::from_raw(there.st_uid), Gid::from_raw(there.st_gid));
            let own = fs::fstat(&self.file)?;
            if (own.st_uid, own.st_gid) != (there.st_uid, there.st_gid) {
                fs::fchown(&self.file, Some(ids.0), Some(ids.1))?;
            }
            fs::fchmod(&self.file, Mode::from_raw_mode(there.st_mode & 0o777))?;
        }
        self.file.sync_all()?;
        let directory = &self.place.directory;
        fs::renameat(directory, name, directory, &self.place.name)?;
        self.temporary = None;
        // A directory that is only walked through cannot be synced.
        let open = fs::openat(directory, ".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        match open.and_then(fs::fsync) {
            // Some file systems sync no directories.
            Ok(()) | Err(Errno::ACCESS | Errno::INVAL) => Ok(length),
            Err(error) => Err(error.into()),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(name) = &self.temporary {
            let _ = fs::unlinkat(&self.place.directory, name, AtFlags::empty());
        }
    }
}

/// A new file in the same directory, under a name that nobody can know before.
fn beside(place: &Place) -> io::Result<(File, OsString)> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // What others could read of a file that they may not is not shown to them meanwhile.
    let mode = Mode::from_raw_mode(if place.there.is_some() { 0o600 } else { 0o666 });
    for _ in 0..TRIES {
        let mut name = OsString::from(".stillcore-");
        name.push(format!("{:016x}", RandomState::new().build_hasher().finish()));
        match fs::openat(&place.directory, &name, flags, mode) {
            Err(Errno::EXIST) => {}
            made => return Ok((File::from(made?), name)),
        }
    }
    Err(Errno::EXIST.into())
}

#[cfg(test)]
mod tests;
