//! Where a file is to be written: its directory, held open, and its name there.
//!
//! A program run as root follows every link on a path, and an ordinary user can place one. So a
//! path is walked one name at a time, and a link is followed only where the kernel itself would
//! trust it: it is ours or root's (Linux Documentation/admin-guide/sysctl/fs.rst,
//! `protected_symlinks`, which holds for shared directories alone, and not for a program that
//! resolves links itself). A rename in between is not followed either: everything happens below the
//! open directory.

use rustix::fs::{self, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The most links on a way, as the kernel has it (`MAXSYMLINKS`, include/linux/namei.h).
const MOST_LINKS: usize = 40;
/// `PROC_SUPER_MAGIC` (include/uapi/linux/magic.h): its links lead where their texts do not.
#[cfg(target_os = "linux")]
const PROC: i128 = 0x9fa0;
/// Who may write, in a mode: everybody; and that only owners remove their files.
const SHARED: u32 = 0o1002;

/// A name in a directory that is held open.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) directory: OwnedFd,
    pub(crate) name: OsString,
    /// What has this name now; no link.
    pub(crate) there: Option<Stat>,
    /// Whether it was reached by a link of procfs, which its name alone leads through.
    pub(crate) by_proc: bool,
}

impl Place {
    /// Walks to a file that may not be there yet.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let mut way = Way::new(path)?;
        loop {
            let Some(name) = way.names.pop_front() else {
                return Err(Error::other("it names no file"));
            };
            let last = way.names.is_empty();
            let Some(found) = way.look(&name)? else {
                if last {
                    return Ok(Self { directory: way.directory, name, there: None, by_proc: false });
                }
                return Err(Errno::NOENT.into());
            };
            match found {
                Found::Link(to) => way.follow(&to)?,
                Found::ByProc(at) if last => {
                    let there = Some(fs::fstat(&at)?);
                    return Ok(Self { directory: way.directory, name, there, by_proc: true });
                }
                Found::There(_, stat) if last && !is(&stat, FileType::Directory) => {
                    return Ok(Self { directory: way.directory, name, there: Some(stat), by_proc: false });
                }
                Found::There(..) if last => return Err(Errno::ISDIR.into()),
                Found::There(at, _) | Found::ByProc(at) => way.directory = at,
            }
        }
    }

    /// Opens what is there and no regular file: a device, a pipe.
    pub(crate) fn open_special(&self) -> Result<File> {
        if let Some(there) = &self.there
            && is(there, FileType::Fifo)
            && !self.by_proc
            && !is_trusted(there)
        {
            return Err(Error::other(format!("it is a pipe of user {}", there.st_uid)));
        }
        // Without a reader a pipe would be waited for, for ever.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let truncate = if self.by_proc { OFlags::TRUNC } else { OFlags::NOFOLLOW };
        let file = fs::openat(&self.directory, &self.name, flags | truncate, Mode::empty())?;
        let flags = fs::fcntl_getfl(&file)?;
        fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
        Ok(File::from(file))
    }
}

pub(crate) fn is(stat: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == kind
}

/// Whether it is ours or root's.
fn is_trusted(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == geteuid().as_raw()
}

/// Opens a directory to walk from, no link of others on the way.
pub fn open_directory(path: &Path) -> Result<OwnedFd> {
    let mut way = Way::new(path)?;
    while let Some(name) = way.names.pop_front() {
        match way.look(&name)?.ok_or(Errno::NOENT)? {
            Found::Link(to) => way.follow(&to)?,
            Found::There(at, stat) if is(&stat, FileType::Directory) => way.directory = at,
            Found::There(..) => return Err(Errno::NOTDIR.into()),
            Found::ByProc(at) => way.directory = at,
        }
    }
    Ok(way.directory)
}

/// What a name is.
enum Found {
    There(OwnedFd, Stat),
    /// Behind a link of procfs.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no procfs"))]
    ByProc(OwnedFd),
    /// A link that may be followed, and where it leads.
    Link(PathBuf),
}

/// A walk.
struct Way {
    directory: OwnedFd,
    names: VecDeque<OsString>,
    links: usize,
}

fn begin(at: &str) -> Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(fs::openat(CWD, at, flags, Mode::empty())?)
}

/// The names of a path that is walked from some directory.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    })
}

impl Way {
    fn new(path: &Path) -> Result<Self> {
        let directory = begin(if path.is_absolute() { "/" } else { "." })?;
        Ok(Self { directory, names: names(path).collect(), links: 0 })
    }

    /// What a name is, and what is behind it, held so that nobody can put something else there
    /// meanwhile.
    #[cfg(target_os = "linux")]
    fn look(&self, name: &OsStr) -> Result<Option<Found>> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let at = match fs::openat(&self.directory, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(at) => at,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let stat = fs::fstat(&at)?;
        if !is(&stat, FileType::Symlink) {
            return Ok(Some(Found::There(at, stat)));
        }
        if i128::from(fs::fstatfs(&self.directory)?.f_type) == PROC {
            let followed = fs::openat(&self.directory, name, flags, Mode::empty())?;
            return Ok(Some(Found::ByProc(followed)));
        }
        let to = fs::readlinkat(&at, "", Vec::new())?;
        self.link(name, &stat, to.as_bytes())
    }

    /// Other kernels cannot hold a name without opening what it names.
    #[cfg(not(target_os = "linux"))]
    fn look(&self, name: &OsStr) -> Result<Option<Found>> {
        let stat = match fs::statat(&self.directory, name, fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if is(&stat, FileType::Symlink) {
            let to = fs::readlinkat(&self.directory, name, Vec::new())?;
            return self.link(name, &stat, to.as_bytes());
        }
        let (name, flags) = if is(&stat, FileType::Directory) {
            (name, OFlags::DIRECTORY | OFlags::NOFOLLOW)
        } else {
            // Of a file its directory is all that is needed.
            (OsStr::new("."), OFlags::DIRECTORY)
        };
        let at = fs::openat(&self.directory, name, flags | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Some(Found::There(at, stat)))
    }

    fn link(&self, name: &OsStr, link: &Stat, to: &[u8]) -> Result<Option<Found>> {
        if !self.may_follow(link)? {
            let what = format!("{} is a link of user {}", Path::new(name).display(), link.st_uid);
            return Err(Error::other(what));
        }
        Ok(Some(Found::Link(PathBuf::from(OsStr::from_bytes(to)))))
    }

    /// Root follows links of its own alone; others do as the kernel does, for which a shared
    /// directory is where links are laid for others.
    fn may_follow(&self, link: &Stat) -> Result<bool> {
        if is_trusted(link) {
            return Ok(true);
        }
        let directory = fs::fstat(&self.directory)?;
        let shared = directory.st_mode & SHARED == SHARED && link.st_uid != directory.st_uid;
        Ok(!geteuid().is_root() && !shared)
    }

    fn follow(&mut self, to: &Path) -> Result<()> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        if to.is_absolute() {
            self.directory = begin("/")?;
        }
        for name in names(to).rev() {
            self.names.push_front(name);
        }
        Ok(())
    }
}
