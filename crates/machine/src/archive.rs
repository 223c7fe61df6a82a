//! Captured machines as tar archives, plain or gzipped: unpacked into a private directory, packed so that the same tree gives the same
//! bytes.
//!
//! An archive may come from anybody. It holds directories and plain files under itself, nothing else: links, devices and names that
//! lead out are refused, and so is more than a capture could hold.

use super::capture::{Selection, capture};
use super::kconfig::gzip_body;
use super::root::Root;
use model::Error;
use model::new_file::NewFile;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Cursor, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tar::{Archive, Builder, EntryType, Header};
use tempfile::TempDir;

/// What a capture of a large machine holds, with much to spare.
const MAX_BYTES: u64 = 256 << 20;
const MAX_FILES: usize = 250_000;
/// How deep its files lie at most; those of a capture do at 14.
const MAX_DEPTH: usize = 32;

/// Trees that have been unpacked and are in use, for a call that a signal ends.
static UNPACKED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Whether the call ends, so that nothing more may be unpacked.
static ENDING: AtomicBool = AtomicBool::new(false);

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
const TRIES: u32 = 100;

/// Unpacks an archive into a new private directory, which goes when it is dropped.
pub(super) fn unpack(path: &Path) -> Result<TempDir, Error> {
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
    entries(&bytes, place.path()).map_err(bad)?;
    Ok(place)
}

/// In memory where that can be had: a capture is thousands of small files.
fn place() -> std::io::Result<TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

fn entries(bytes: &[u8], place: &Path) -> Result<(), String> {
    let mut archive = Archive::new(Cursor::new(bytes));
    let damaged = |error: std::io::Error| format!("it is no whole tar archive ({error})");
    let mut files = 0;
    let mut folders = BTreeSet::new();
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = entry.path().map_err(damaged)?.into_owned();
        let kind = entry.header().entry_type();
        if name.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(format!("the name {} leads out of it", name.display()));
        }
        if name.components().count() > MAX_DEPTH {
            return Err(format!("a file lies {} directories deep in it", name.components().count()));
        }
        if ENDING.load(Ordering::Acquire) {
            return Err("the call was interrupted".to_owned());
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
            _ => return Err(format!("{} is neither a file nor a directory", name.display())),
        };
        written.map_err(|error| format!("{} cannot be unpacked ({error})", name.display()))?;
        if files > MAX_FILES {
            return Err(format!("it holds more than {MAX_FILES} files"));
        }
    }
    if files == 0 { Err("it holds nothing".to_owned()) } else { Ok(()) }
}

fn write(target: &Path, entry: &mut impl Read) -> std::io::Result<()> {
    let made = File::create(target).or_else(|_| {
        target.parent().map_or(Ok(()), fs::create_dir_all)?;
        File::create(target)
    });
    std::io::copy(entry, &mut made?).map(drop)
}

/// Copies the machine under `root` into a new archive.
pub fn capture_into_archive(root: &Root, archive: &Path, selection: &Selection) -> Result<(), Error> {
    // Not beside the archive: whoever owns that directory could put another one in its place.
    let tree = tempfile::tempdir().map_err(|source| Error::io("create a directory for", archive, source))?;
    capture(root, tree.path(), selection)?;
    pack(tree.path(), archive)
}

/// Packs a tree, files in the order of their names, without times and owners.
fn pack(tree: &Path, archive: &Path) -> Result<(), Error> {
    let failed = |source| Error::io("write", archive, source);
    let mut names = Vec::new();
    list(tree, Path::new(""), &mut names).map_err(|source| Error::io("read", tree, source))?;
    names.sort();
    let out = NewFile::create(archive)?;
    let mut builder = Builder::new(std::io::BufWriter::new(out.try_clone()?));
    for name in names {
        let bytes =
            fs::read(tree.join(&name)).map_err(|source| Error::io("read", &tree.join(&name), source))?;
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        builder.append_data(&mut header, &name, bytes.as_slice()).map_err(failed)?;
    }
    builder.into_inner().and_then(|mut file| file.flush()).map_err(failed)?;
    out.keep().map(drop)
}

fn list(tree: &Path, below: &Path, names: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(tree.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        if entry.file_type()?.is_dir() { list(tree, &name, names)? } else { names.push(name) }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed() -> (TempDir, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("sys/devices/system/cpu")).unwrap();
        fs::write(tree.join("sys/devices/system/cpu/online"), "0-3\n").unwrap();
        fs::create_dir_all(tree.join("proc")).unwrap();
        fs::write(tree.join("proc/cmdline"), "quiet\n").unwrap();
        pack(&tree, &dir.path().join("a.tar")).unwrap();
        let bytes = fs::read(dir.path().join("a.tar")).unwrap();
        (dir, bytes)
    }

    fn opened(bytes: &[u8]) -> Result<Root, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        Root::open(file.path()).map_err(|error| error.to_string())
    }

    /// An archive of one entry.
    fn of(kind: EntryType, name: &[u8]) -> Vec<u8> {
        let mut header = Header::new_old();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend([0; 1024]);
        bytes
    }

    #[test]
    fn an_archive_reads_as_its_tree_and_is_the_same_each_time() {
        let (dir, bytes) = packed();
        let root = opened(&bytes).unwrap();
        assert_eq!(root.maybe("sys/devices/system/cpu/online").as_deref(), Some("0-3"));
        pack(&dir.path().join("tree"), &dir.path().join("b.tar")).unwrap();
        assert_eq!(fs::read(dir.path().join("b.tar")).unwrap(), bytes);
        let mut zipped = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        zipped.extend(miniz_oxide::deflate::compress_to_vec(&bytes, 6));
        zipped.extend([0; 8]);
        assert_eq!(opened(&zipped).unwrap().maybe("proc/cmdline").as_deref(), Some("quiet"));
    }

    #[test]
    fn what_leads_out_or_is_no_file_is_refused() {
        for (kind, name, what) in [
            (EntryType::Regular, &b"../x"[..], "leads out"),
            (EntryType::Regular, b"/etc/x", "leads out"),
            (EntryType::Symlink, b"proc/x", "neither a file"),
            (EntryType::Link, b"x", "neither a file"),
            (EntryType::Char, b"dev/x", "neither a file"),
        ] {
            let error = opened(&of(kind, name)).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        assert!(opened(b"").unwrap_err().contains("holds nothing"));
        assert!(opened(&[7; 3000]).unwrap_err().contains("no whole tar archive"));
    }

    proptest! {
        #[test]
        fn damage_never_panics(at in 0usize..2048, byte: u8, cut in 0usize..4096) {
            let (_dir, mut bytes) = packed();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = opened(&bytes);
            bytes.truncate(cut);
            let _ = opened(&bytes);
        }
    }
}
