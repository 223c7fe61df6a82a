//! A file of a stressor's own that has no name: it goes with its last descriptor, whatever becomes
//! of the process (`O_TMPFILE`, open(2)).

use super::Error;
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;

/// Where files may be kept for a while; the first is meant to be on a disk.
const PLACES: [&str; 2] = ["/var/tmp", "/tmp"];

/// Opens one, for reading and writing; absent where no place has files without a name.
pub(super) fn scratch() -> Result<File, Error> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let opened = PLACES.iter().find_map(|place| open(*place, flags, Mode::RUSR | Mode::WUSR).ok());
    let absent =
        || Error::absent(format!("neither {} takes a file without a name (O_TMPFILE)", PLACES.join(" nor ")));
    opened.map(File::from).ok_or_else(absent)
}
