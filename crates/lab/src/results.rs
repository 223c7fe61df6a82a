//! The result tar: packed in the guest, unpacked on the host without trusting it.
//!
//! Layout: `root/…` (the command's working directory), `stdout`, `stderr`, `dmesg`, `guest.json`.
//! Only directories and regular files travel. A guest is a stranger to the host: names with `..` or
//! a leading `/` are refused, links are never made, and no file is written through one, because the
//! target directory has to be new or empty.

use crate::error::{Error, IoContext, Result};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// What to pack. Walked once, so that two passes (seal, send) give the same bytes.
#[derive(Debug, Default)]
pub struct Listing {
    /// (name in the tar, path, bytes), directories with `None`, parents first.
    entries: Vec<(PathBuf, PathBuf, Option<u64>)>,
    /// What could not be taken, with the reason.
    pub skipped: Vec<String>,
}

impl Listing {
    /// Lists everything below `dir`, to be packed under `prefix`, in name order.
    pub fn add_tree(&mut self, dir: &Path, prefix: &Path) {
        self.entries.push((prefix.into(), dir.into(), None));
        let Ok(children) = fs::read_dir(dir) else {
            self.skipped.push(format!("{}: unreadable directory", dir.display()));
            return;
        };
        let mut children: Vec<_> = children.flatten().collect();
        children.sort_by_key(fs::DirEntry::file_name);
        for child in children {
            let (path, name) = (child.path(), prefix.join(child.file_name()));
            match child.metadata() {
                Ok(data) if data.is_dir() => self.add_tree(&path, &name),
                Ok(data) if data.is_file() => self.entries.push((name, path, Some(data.len()))),
                Ok(_) => self.skipped.push(format!("{}: neither file nor directory", path.display())),
                Err(error) => self.skipped.push(format!("{}: {error}", path.display())),
            }
        }
    }

    /// Lists one file; an absent one is noted as skipped.
    pub fn add_file(&mut self, path: &Path, name: &str) {
        match fs::metadata(path) {
            Ok(data) => self.entries.push((name.into(), path.into(), Some(data.len()))),
            Err(error) => self.skipped.push(format!("{}: {error}", path.display())),
        }
    }

    /// Writes the tar: the listed entries, then `extra` (name, contents).
    pub fn pack(&self, extra: &[(&str, &[u8])], out: &mut impl Write) -> io::Result<()> {
        let mut tar = Builder::new(out);
        for (name, path, len) in &self.entries {
            match len {
                None => tar.append_data(&mut header(EntryType::Directory, 0o755, 0), name, io::empty())?,
                Some(len) => {
                    tar.append_data(&mut header(EntryType::Regular, 0o644, *len), name, exactly(path, *len))?;
                }
            }
        }
        for (name, data) in extra {
            tar.append_data(&mut header(EntryType::Regular, 0o644, data.len() as u64), name, *data)?;
        }
        tar.into_inner()?.flush()
    }
}

/// The first `len` bytes of a file, zeros where it has become shorter or unreadable: the tar's
/// headers must stay true.
fn exactly(path: &Path, len: u64) -> impl Read {
    let file: Box<dyn Read> =
        File::open(path).map_or_else(|_| Box::new(io::empty()) as Box<dyn Read>, |file| Box::new(file));
    file.chain(io::repeat(0)).take(len)
}

fn header(kind: EntryType, mode: u32, len: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(len);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Unpacks a result tar into the existing directory `dir`. A file that is already there is never
/// overwritten.
pub fn unpack(tar: &[u8], dir: &Path) -> Result<()> {
    let mut archive = tar::Archive::new(tar);
    for entry in archive.entries().context("read", dir)? {
        let mut entry = entry.context("read", dir)?;
        let name = entry.path().context("read", dir)?.into_owned();
        let target = dir.join(safe_name(&name)?);
        match entry.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(&target).context("create", &target)?,
            EntryType::Regular => {
                let mut file = File::create_new(&target).context("create", &target)?;
                io::copy(&mut entry, &mut file).context("write", &target)?;
            }
            _ => return Err(refused(&name, "neither file nor directory")),
        }
    }
    Ok(())
}

fn safe_name(name: &Path) -> Result<&Path> {
    let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && name.components().next().is_some() {
        Ok(name)
    } else {
        Err(refused(name, "leads out of the result directory"))
    }
}

fn refused(name: &Path, reason: &'static str) -> Error {
    Error::UnsafeEntry { name: name.to_string_lossy().into_owned(), reason }
}

/// Makes `dir`, which must be new or empty.
pub fn prepare_dir(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).context("create", dir)?;
    if fs::read_dir(dir).context("read", dir)?.next().is_some() {
        return Err(Error::OutputNotEmpty { path: dir.into() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::SealWriter;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("out/samples")).unwrap();
        fs::create_dir_all(dir.path().join("empty")).unwrap();
        fs::write(dir.path().join("out/run.json"), "{}").unwrap();
        fs::write(dir.path().join("out/samples").join("x".repeat(180)), [7; 3000]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        dir
    }

    #[test]
    fn unpack_undoes_pack_and_says_what_stayed_behind() {
        let (from, to) = (tree(), tempfile::tempdir().unwrap());
        let mut listing = Listing::default();
        listing.add_tree(from.path(), Path::new("root"));
        listing.add_file(Path::new("/nonexistent/stdout"), "stdout");
        let mut tar = Vec::new();
        listing.pack(&[("guest.json", b"{}")], &mut tar).unwrap();
        let mut seal = SealWriter::default();
        listing.pack(&[("guest.json", b"{}")], &mut seal).unwrap();
        assert_eq!(seal.finish().len, tar.len() as u64, "two passes differ");

        unpack(&tar, to.path()).unwrap();
        assert_eq!(fs::read(to.path().join("root/out/run.json")).unwrap(), b"{}");
        assert_eq!(fs::read(to.path().join("root/out/samples").join("x".repeat(180))).unwrap(), [7; 3000]);
        assert!(to.path().join("root/empty").is_dir() && to.path().join("guest.json").exists());
        assert!(!to.path().join("root/link").exists());
        assert_eq!(listing.skipped.len(), 2, "{:?}", listing.skipped);
    }

    fn hostile(kind: EntryType, name: &str) -> Vec<u8> {
        let mut header = header(kind, 0o644, 0);
        // Written raw: the builder itself would refuse such names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..4].copy_from_slice(b"/etc");
        header.set_cksum();
        let mut tar = header.as_bytes().to_vec();
        tar.extend([0; 1024]);
        tar
    }

    #[test]
    fn hostile_entries_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("inner");
        fs::create_dir(&target).unwrap();
        for (kind, name) in [
            (EntryType::Regular, "../evil"),
            (EntryType::Regular, "/tmp/evil"),
            (EntryType::Regular, "root/../../evil"),
            (EntryType::Symlink, "root"),
            (EntryType::Link, "root"),
            (EntryType::Fifo, "root"),
        ] {
            let error = unpack(&hostile(kind, name), &target).unwrap_err();
            assert!(matches!(error, Error::UnsafeEntry { .. }), "{name}: {error}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    }

    #[test]
    fn a_file_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("stdout"), "mine").unwrap();
        assert!(matches!(prepare_dir(dir.path()), Err(Error::OutputNotEmpty { .. })));
        assert!(unpack(&hostile(EntryType::Regular, "stdout"), dir.path()).is_err());
        assert_eq!(fs::read(dir.path().join("stdout")).unwrap(), b"mine");
    }

    #[test]
    fn garbage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(unpack(&[0x55; 1024], dir.path()).is_err());
    }
}
