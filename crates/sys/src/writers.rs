//! Who writes to files: fanotify(7) with a mark on each file's inode.
//!
//! The kernel queues an event after every write(2) that took something, with the number of the
//! writer, for files of `/proc`, `/sys` and control groups like for any other. Nothing waits for an
//! answer, and nobody but a writer of these files pays for it. It needs CAP_SYS_ADMIN. What the
//! kernel itself computes anew is no write and is not seen here.

use crate::Error;
use rustix::fd::{AsFd, BorrowedFd};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Room for events that are read at once, bytes.
const ROOM: usize = 1 << 12;

/// The bytes of an event (`struct fanotify_event_metadata`, version 3): its length, which may grow,
/// the mask behind eight bytes, then descriptor and process.
const EVENT: usize = 24;

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The file, as the kernel names it now.
    pub path: PathBuf,
    /// The process, as seen from here; 0 for one outside of this PID namespace.
    pub pid: u32,
}

/// What has been written since the last look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writes {
    /// Oldest first.
    pub writes: Vec<Write>,
    /// Whether the kernel has dropped some.
    pub lost: bool,
}

/// Watches writes.
#[derive(Debug)]
pub struct Writers {
    group: File,
}

impl Writers {
    /// Watches nothing yet. Error: the kernel has no fanotify, or the caller may not.
    pub fn new() -> Result<Self, Error> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK;
        let events = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) as libc::c_uint;
        // SAFETY: the call takes numbers only.
        let group = unsafe { libc::fanotify_init(flags, events) };
        if group < 0 {
            return Err(Error::os("watch", "writers of files (fanotify)", io::Error::last_os_error()));
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Self { group: unsafe { File::from_raw_fd(group) } })
    }

    /// Watches a file also.
    pub fn watch(&self, path: &Path) -> Result<(), Error> {
        let failed = |source| Error::os("watch writers of", path.display(), source);
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
        // SAFETY: the path ends with a zero byte and outlives the call.
        let result = unsafe {
            libc::fanotify_mark(
                self.group.as_raw_fd(),
                libc::FAN_MARK_ADD,
                libc::FAN_MODIFY,
                libc::AT_FDCWD,
                name.as_ptr(),
            )
        };
        if result == 0 { Ok(()) } else { Err(failed(io::Error::last_os_error())) }
    }

    /// What has been written since the last call.
    pub fn read(&self) -> Result<Writes, Error> {
        let failed = |source| Error::os("read", "writers of files (fanotify)", source);
        let mut all = Writes::default();
        let mut bytes = [0u8; ROOM];
        loop {
            let length = match (&self.group).read(&mut bytes) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(all),
                Err(error) => return Err(failed(error)),
            };
            let mut rest = &bytes[..length];
            while let Some((event, behind)) = next(rest) {
                rest = behind;
                all.add(&event);
            }
        }
    }
}

impl AsFd for Writers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }
}

impl Writes {
    fn add(&mut self, event: &Event) {
        self.lost |= event.mask & libc::FAN_Q_OVERFLOW != 0;
        let Some(file) = &event.file else { return };
        if let Ok(path) = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())) {
            self.writes.push(Write { path, pid: u32::try_from(event.pid).unwrap_or_default() });
        }
    }
}

struct Event {
    mask: u64,
    file: Option<OwnedFd>,
    pid: i32,
}

/// The first event of what was read, and the rest.
fn next(bytes: &[u8]) -> Option<(Event, &[u8])> {
    let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(i32::from_ne_bytes);
    let length = usize::try_from(word(0)?).ok()?;
    if length < EVENT || length > bytes.len() {
        return None;
    }
    let mask = u64::from_ne_bytes(bytes.get(8..16)?.try_into().ok()?);
    let (fd, pid) = (word(16)?, word(20)?);
    // SAFETY: the kernel has opened it for the reader of this event alone, who now owns it.
    let file = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) });
    Some((Event { mask, file, pid }, &bytes[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn writers_of_a_watched_file_are_seen_and_nobody_else() {
        let Ok(writers) = Writers::new() else { return eprintln!("not root: skipped") };
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).canonicalize().unwrap();
        ["watched", "other"].iter().for_each(|name| fs::write(dir.path().join(name), "0").unwrap());
        writers.watch(&at("watched")).unwrap();
        assert_eq!(writers.read().unwrap(), Writes::default());
        fs::write(at("other"), "1").unwrap();
        fs::read(at("watched")).unwrap();
        let script = format!("echo 1 > {}", at("watched").display());
        let mut child = Command::new("sh").args(["-c", &script]).spawn().unwrap();
        assert!(child.wait().unwrap().success());
        let expected = Write { path: at("watched"), pid: child.id() };
        assert_eq!(writers.read().unwrap(), Writes { writes: vec![expected], lost: false });
        assert!(writers.watch(Path::new("/nowhere/at/all")).is_err());
    }

    #[test]
    fn a_value_of_the_kernel_has_its_writer_too() {
        let path = Path::new("/proc/sys/kernel/core_uses_pid");
        let Ok(writers) = Writers::new() else { return eprintln!("not root: skipped") };
        let Ok(value) = fs::read(path) else { return };
        writers.watch(path).unwrap();
        // What it is already.
        if fs::write(path, &value).is_ok() {
            let pid = std::process::id();
            assert_eq!(writers.read().unwrap().writes, [Write { path: path.to_owned(), pid }]);
        }
    }
}
