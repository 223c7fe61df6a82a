//! Where stressors of input and output have their files: nameless ones, in a directory on a disk.
//!
//! A file made with O_TMPFILE has no name, and is gone when its last descriptor is, whatever ended
//! the process (`open(2)`). In a directory that is in memory nothing would ever be written to a
//! device. There, with privilege, the files are in an ext4 file system of their own on a loop
//! device: so a lab guest, which has no disk, has the paths of the block layer too.

use super::Error;
use super::job::Job;
use super::loops::{EXT4, Loop};
use super::mounts::Mounting;
use rustix::fs::{CWD, Mode, OFlags, openat, statfs, statvfs};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where files are made unless somebody says where; it survives restarts by convention (FHS 3.0),
/// so it is hardly ever in memory.
const DIRECTORY: &str = "/var/tmp";
/// `include/uapi/linux/magic.h`.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// A directory on a disk.
#[derive(Debug)]
pub(super) struct Disk {
    dir: PathBuf,
    /// What it may be filled with, bytes: a quarter of what is free.
    pub(super) room: u64,
    /// The device of a file system of our own; it is unbound once nobody holds it and its mount is
    /// gone.
    _device: Option<Loop>,
}

impl Disk {
    /// The requested directory, or a suitable one.
    pub(super) fn of(job: &mut Job<'_>) -> Result<Self, Error> {
        let dir = job.dir.clone().unwrap_or_else(|| PathBuf::from(DIRECTORY));
        let found = statfs(&dir).map_err(|error| Error::io("look at", &dir, error.into()))?;
        if !in_memory(found.f_type as u64) {
            return Self::at(dir, None);
        }
        let lacks = |why: &dyn std::fmt::Display| {
            let what = format!("{} is in memory; expected a directory on a disk, or {why}", dir.display());
            Error::absent(what)
        };
        let device = Loop::bind(&EXT4.file()?).map_err(|error| lacks(&format!("a loop device ({error})")))?;
        let mounting = Mounting::prepare(job, &device.path, "ext4", "")
            .map_err(|error| lacks(&format!("a file system of its own ({error})")))?;
        mounting.mount().map_err(Error::refused("mount a file system"))?;
        job.confined_by.push("ext4 of its own on a loop device in memory".to_owned());
        Self::at(mounting.place().to_owned(), Some(device))
    }

    fn at(dir: PathBuf, device: Option<Loop>) -> Result<Self, Error> {
        let free = statvfs(&dir).map_err(|error| Error::io("look at", &dir, error.into()))?;
        Ok(Self { dir, room: free.f_bavail.saturating_mul(free.f_frsize) / 4, _device: device })
    }

    /// A nameless file for reading and writing.
    pub(super) fn file(&self, flags: OFlags) -> std::io::Result<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | flags;
        Ok(File::from(openat(CWD, &self.dir, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// As [`file`](Self::file), for the first one: what this file system or directory does not
    /// allow is absent.
    pub(super) fn first_file(&self, flags: OFlags) -> Result<File, Error> {
        let dir: &Path = &self.dir;
        self.file(flags).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Error::absent(format!(
                "the file system of {} makes no nameless files (O_TMPFILE) of this kind",
                dir.display()
            )),
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
                Error::absent(format!("no file may be made in {}", dir.display()))
            }
            _ => Error::io("make a file in", dir, error),
        })
    }
}

fn in_memory(kind: u64) -> bool {
    [TMPFS_MAGIC, RAMFS_MAGIC].contains(&(kind & 0xffff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_memory_is_known_by_its_file_system() {
        assert!(!in_memory(statfs("/proc").unwrap().f_type as u64));
        assert!(in_memory(TMPFS_MAGIC) && in_memory(RAMFS_MAGIC | 0xffff_ffff_0000_0000));
    }

    #[test]
    fn a_file_has_no_name_and_a_directory_that_has_none_says_so() {
        let place = tempfile::tempdir_in(".").unwrap();
        let disk = Disk::at(place.path().to_owned(), None).unwrap();
        assert!(disk.room > 0);
        match disk.first_file(OFlags::empty()) {
            Ok(_file) => assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0),
            Err(error) => assert!(matches!(error, Error::Absent { .. }), "{error}"),
        }
        let gone = Disk { dir: place.path().join("gone"), room: 0, _device: None };
        assert!(gone.first_file(OFlags::empty()).unwrap_err().to_string().contains("gone"));
    }
}
