//! A file that appears under its name when it is whole, or not at all.
//!
//! It is written without a name ([`nameless`]), or under one of its own beside its place, which
//! nobody can have laid there before (`O_EXCL`), and takes that place by a link or a rename inside
//! the directory that was opened for it ([`crate::place`]). Mode and owner of a file that it
//! replaces are kept.

mod nameless;

use crate::Error;
use crate::place::{Place, is};
use rustix::fs::{self, AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
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
    until: Until,
}

/// What it is until it is kept.
#[derive(Debug)]
enum Until {
    /// A file without a name.
    Nameless,
    /// One with another name in the same directory.
    Named(OsString),
    /// It is in its place: a device or a pipe from the beginning, any other file once it is kept.
    InPlace,
}

impl NewFile {
    /// At `path`. A device or a pipe that is there is written to as it is.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::open(path).map_err(|source| Error::io("write", path, source))
    }

    fn open(path: &Path) -> io::Result<Self> {
        let place = Place::of(path)?;
        let special = place.there.as_ref().is_some_and(|there| !is(there, FileType::RegularFile));
        let (file, until) = if special || place.by_proc {
            (place.open_special()?, Until::InPlace)
        } else if let Some(file) = nameless::create(&place, mode_of_new(&place)) {
            (file, Until::Nameless)
        } else {
            let (file, name) = beside(&place)?;
            (file, Until::Named(name))
        };
        Ok(Self { path: path.to_owned(), place, file, until })
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
        if matches!(self.until, Until::InPlace) {
            return Ok(length);
        }
        if let Some(there) = &self.place.there {
            let ids = (Uid::from_raw(there.st_uid), Gid::from_raw(there.st_gid));
            let own = fs::fstat(&self.file)?;
            if (own.st_uid, own.st_gid) != (there.st_uid, there.st_gid) {
                fs::fchown(&self.file, Some(ids.0), Some(ids.1))?;
            }
            fs::fchmod(&self.file, Mode::from_raw_mode(there.st_mode & 0o777))?;
        }
        self.file.sync_all()?;
        self.name_it()?;
        let directory = &self.place.directory;
        if let Until::Named(name) = &self.until {
            fs::renameat(directory, name, directory, &self.place.name)?;
        }
        self.until = Until::InPlace;
        // A directory that is only walked through cannot be synced.
        let open = fs::openat(directory, ".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        match open.and_then(fs::fsync) {
            // Some file systems sync no directories.
            Ok(()) | Err(Errno::ACCESS | Errno::INVAL) => Ok(length),
            Err(error) => Err(error.into()),
        }
    }
}

impl NewFile {
    /// Names what has no name: in its place where nothing is there, else beside it.
    fn name_it(&mut self) -> io::Result<()> {
        if !matches!(self.until, Until::Nameless) {
            return Ok(());
        }
        if self.place.there.is_none() {
            match nameless::name(&self.file, &self.place, &self.place.name) {
                // It came there meanwhile.
                Err(Errno::EXIST) => {}
                named => {
                    named?;
                    self.until = Until::InPlace;
                    return Ok(());
                }
            }
        }
        let ((), name) = fresh(|name| nameless::name(&self.file, &self.place, name))?;
        self.until = Until::Named(name);
        Ok(())
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
        if let Until::Named(name) = &self.until {
            let _ = fs::unlinkat(&self.place.directory, name, AtFlags::empty());
        }
    }
}

/// A new file in the same directory, under a name that nobody can know before.
fn beside(place: &Place) -> io::Result<(File, OsString)> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (file, name) = fresh(|name| fs::openat(&place.directory, name, flags, mode_of_new(place)))?;
    Ok((File::from(file), name))
}

/// A file that replaces another stays private until it gets that one's mode.
fn mode_of_new(place: &Place) -> Mode {
    Mode::from_raw_mode(if place.there.is_some() { 0o600 } else { 0o666 })
}

/// Makes something under a name that nobody can know before.
fn fresh<T>(make: impl Fn(&OsStr) -> Result<T, Errno>) -> io::Result<(T, OsString)> {
    for _ in 0..TRIES {
        let mut name = OsString::from(".stillcore-");
        name.push(format!("{:016x}", RandomState::new().build_hasher().finish()));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return Ok((made?, name)),
        }
    }
    Err(Errno::EXIST.into())
}

#[cfg(test)]
mod tests;
