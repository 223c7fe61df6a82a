//! Captured machines as tar archives, plain or gzipped, unpacked into private directories.
//!
//! An archive may come from anybody. It holds directories and plain files under itself, nothing
//! else: links, devices and names that lead out are refused, and so is more than a capture could
//! hold.

use crate::kconfig::gzip_body;
use model::Error;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tar::{Archive, EntryType};
use tempfile::TempDir;

/// What a capture of a large machine holds, with much to spare.
pub(crate) const MAX_BYTES: u64 = 256 << 20;

pub(crate) const MAX_FILES: usize = 250_000;

/// How deep its files lie at most; those of a capture do at 14.
pub(crate) const MAX_DEPTH: usize = 32;

/// Trees that have been unpacked and are in use, for a call that a signal ends.
pub(crate) static UNPACKED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Whether the call ends, so that nothing more may be unpacked.
pub(crate) static ENDING: AtomicBool = AtomicBool::new(false);

/// Takes away what was unpacked: before a signal ends the call.
pub fn remove_unpacked() {
    ENDING.store(true, Ordering::Release);
    let places = std::mem::take(&mut *UNPACKED.lock().unwrap_or_else(PoisonError::into_inner));
    for place in places {
        // What was being written when the signal arrived may come once more.
        let _ = (0..TRIES).find(|_| fs::remove_dir_all(&place).is_ok() || !place.exists());
    }
}

/// How often a tree that still grows is removed.
pub(crate) const TRIES: u32 = 100;

/// Unpacks an archive into a new private directory, which goes when it is dropped.
pub(crate) fn unpack(path: &Path) -> Result<TempDir, Error> {
    let file = File::open(path).map_err(|source| Error::io("open", path, source))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|source| Error::io("read", path, source))?;
    let bad = |what: String| {
        Error::invalid(path.display(), what, "a directory, or a tar archive of stillcore snapshot")
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(bad(format!("it has more than {} MiB", MAX_BYTES >> 20)));
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let body = gzip_body(&bytes).ok_or_else(|| bad("its gzip header is damaged".to_owned()))?;
        bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(body, MAX_BYTES as usize)
            .map_err(|error| bad(format!("it cannot be unpacked ({error})")))?;
    }
    let place = place().map_err(|source| Error::io("create a directory for", path, source))?;
    UNPACKED.lock().unwrap_or_else(PoisonError::into_inner).push(place.path().to_owned());
    entries(&bytes, place.path(), bad)?;
    Ok(place)
}

/// In memory where that can be had: a capture is thousands of small files.
pub(crate) fn place() -> std::io::Result<TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

/// `bad` makes the error of what was found.
fn entries(bytes: &[u8], place: &Path, bad: impl Fn(String) -> Error) -> Result<(), Error> {
    let mut archive = Archive::new(Cursor::new(bytes));
    // The reason of the archive's reader would quote the file.
    let damaged = |_: std::io::Error| bad("it is no whole tar archive".to_owned());
    let mut files = 0;
    let mut folders = BTreeSet::new();
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = entry.path().map_err(damaged)?.into_owned();
        let kind = entry.header().entry_type();
        if name.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(bad(format!("the name {} leads out of it", name.display())));
        }
        if name.components().count() > MAX_DEPTH {
            return Err(bad(format!("a file lies {} directories deep in it", name.components().count())));
        }
        if ENDING.load(Ordering::Acquire) {
            return Err(bad("the call was interrupted".to_owned()));
        }
        files += 1;
        // Each directory on the way counts as one more, whichever entry needs it.
        let mut above = name.parent();
        while let Some(folder) = above.filter(|folder| folders.insert(folder.to_path_buf())) {
            files += 1;
            above = folder.parent();
        }
        let target = place.join(&name);
        let written = match kind {
            EntryType::Directory => fs::create_dir_all(&target),
            EntryType::Regular => write(&target, &mut entry),
            _ => return Err(bad(format!("{} is neither a file nor a directory", name.display()))),
        };
        written.map_err(|error| bad(format!("{} cannot be unpacked ({error})", name.display())))?;
        if files > MAX_FILES {
            return Err(bad(format!("it holds more than {MAX_FILES} files")));
        }
    }
    if files == 0 { Err(bad("it holds nothing".to_owned())) } else { Ok(()) }
}

pub(crate) fn write(target: &Path, entry: &mut impl Read) -> std::io::Result<()> {
    let made = File::create(target).or_else(|_| {
        target.parent().map_or(Ok(()), fs::create_dir_all)?;
        File::create(target)
    });
    std::io::copy(entry, &mut made?).map(drop)
}
