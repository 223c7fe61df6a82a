//! The journal's file at one moment, by which a change of it is seen without reading it.

use isolate::standing;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which file it is, how long, and when it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    length: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    /// Of the journal in a state directory; nothing where there is none.
    pub(super) fn of(state: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(standing::path(state)).ok()?;
        let (changed_s, changed_ns) = (found.mtime(), found.mtime_nsec());
        Some(Self { inode: found.ino(), length: found.size(), changed_s, changed_ns })
    }
}
