//! Mounting and unmounting in a private mount namespace, where the kernel reports each change of
//! the mount table.
//!
//! `mount(2)`; proc(5), `/proc/PID/mountinfo`: polling it reports, once, that the table has changed
//! since the poll before.

use super::job::Job;
use super::{Error, namespaces};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// One file system, and where it is mounted.
#[derive(Debug)]
pub(super) struct Mounting {
    what: PathBuf,
    place: PathBuf,
    kind: &'static str,
    options: CString,
    table: File,
    /// How often the kernel has reported a changed mount table.
    pub(super) changes: u64,
}

impl Mounting {
    /// Enters a mount namespace and mounts and unmounts once; absent where this kernel has no such
    /// file system.
    pub(super) fn prepare(
        job: &mut Job<'_>,
        what: &Path,
        kind: &'static str,
        options: &str,
    ) -> Result<Self, Error> {
        let place = namespaces::own_mounts(job)?;
        let table = Path::new("/proc/self/mountinfo");
        let table = File::open(table).map_err(|error| Error::io("open", table, error))?;
        let options = CString::new(options)
            .map_err(|error| Error::refused("name mount options")(io::Error::from(error)))?;
        let mut made = Self { what: what.to_owned(), place, kind, options, table, changes: 0 };
        match made.mount_and_unmount() {
            Ok(()) => Ok(made),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                Err(Error::absent(format!("this kernel has no {kind}")))
            }
            // Both sum their metadata by a driver that is a module of its own on many kernels, and
            // ask for it by name.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                Err(Error::absent(format!("this kernel has {kind}, but not the crc32c that it needs")))
            }
            Err(error) => Err(Error::refused("mount a file system")(error)),
        }
    }

    pub(super) fn mount_and_unmount(&mut self) -> io::Result<()> {
        self.mount()?;
        self.look()?;
        // Udev and its like look into block devices that come, and hold them for a moment.
        let mut outcome = Err(Errno::BUSY);
        for _ in 0..50 {
            outcome = unmount(&self.place, UnmountFlags::empty());
            if outcome != Err(Errno::BUSY) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        outcome?;
        self.look()
    }

    /// Mounts for good: until the namespace ends.
    pub(super) fn mount(&self) -> io::Result<()> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        Ok(mount(&self.what, &self.place, self.kind, flags, Some(self.options.as_c_str()))?)
    }

    /// Where it is mounted.
    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    fn look(&mut self) -> io::Result<()> {
        let mut polled = [PollFd::new(&self.table, PollFlags::PRI)];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        self.changes += u64::from(polled[0].revents().intersects(PollFlags::PRI | PollFlags::ERR));
        Ok(())
    }
}
