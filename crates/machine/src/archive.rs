//! A captured machine packed as a tar archive: the same tree gives the same bytes.

use super::capture::{Selection, capture};
use super::root::Root;
use model::Error;
use model::new_file::NewFile;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tar::{Builder, Header};

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
    use tar::EntryType;
    use tempfile::TempDir;

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
