//! A file without a name until it is whole, where the system has such (`O_TMPFILE`, open(2)): who
//! writes it and is killed leaves nothing behind.

use crate::place::Place;
use rustix::fs::Mode;
use rustix::io::Result;
use std::ffi::OsStr;
use std::fs::File;

/// One in the directory of a place; none where its file system or its system has none.
#[cfg(target_os = "linux")]
pub(super) fn create(place: &Place, mode: Mode) -> Option<File> {
    use rustix::fs::{OFlags, openat};
    use std::os::fd::AsRawFd;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(openat(&place.directory, ".", flags, mode).ok()?);
    // It gets its name by way of procfs.
    std::path::Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())).exists().then_some(file)
}

/// Gives it a name in that directory that nothing has.
#[cfg(target_os = "linux")]
pub(super) fn name(file: &File, place: &Place, name: &OsStr) -> Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd;
    let here = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, here, &place.directory, name, AtFlags::SYMLINK_FOLLOW)
}

/// None.
#[cfg(not(target_os = "linux"))]
pub(super) fn create(_: &Place, _: Mode) -> Option<File> {
    None
}

/// Nothing to be named.
#[cfg(not(target_os = "linux"))]
pub(super) fn name(_: &File, _: &Place, _: &OsStr) -> Result<()> {
    Err(rustix::io::Errno::NOTSUP)
}
