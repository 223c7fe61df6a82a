//! Archives that hold nothing but what is in them: owner root, one time, and the order given.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// A file of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its path without a `/` in front.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// Its bytes.
    pub data: Vec<u8>,
}

impl Entry {
    /// A file that everybody may read.
    pub(crate) fn plain(path: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), mode: 0o644, data: data.into() }
    }

    /// A program or a script.
    pub(crate) fn program(path: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o755, ..Self::plain(path, data) }
    }
}

/// A tar archive of files and, before them, of all directories above them. `top` stands before each
/// path.
pub(crate) fn tar(entries: &[Entry], top: &str, epoch: u32) -> Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    let mut add = |kind, path: &str, mode, data: &[u8]| -> Result<()> {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(data.len() as u64);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        header.set_mtime(epoch.into());
        // By bytes, since `Path` drops the `./` that Debian's archives begin with.
        let name = format!("{top}{path}");
        let field = &mut header.as_mut_bytes()[..100];
        anyhow::ensure!(name.len() <= field.len(), "{name} is too long for an archive");
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, data)?;
        Ok(())
    };
    if top.ends_with('/') {
        add(EntryType::Directory, "", 0o755, &[])?;
    }
    for folder in folders(entries) {
        add(EntryType::Directory, &format!("{folder}/"), 0o755, &[])?;
    }
    for entry in entries {
        add(EntryType::Regular, &entry.path, entry.mode, &entry.data)?;
    }
    Ok(builder.into_inner()?)
}

/// The directories above the files, each before those in it.
pub(crate) fn folders(entries: &[Entry]) -> BTreeSet<String> {
    let above = |path: &str| {
        let ends = path.match_indices('/').map(|(end, _)| path[..end].to_owned());
        ends.collect::<Vec<_>>()
    };
    entries.iter().flat_map(|entry| above(&entry.path)).collect()
}

/// Compressed as `gzip -9n` does: without a name, without a time.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    Ok(writer.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_their_files_and_nothing_says_who_made_it() {
        let entries = [Entry::program("usr/bin/x", "x"), Entry::plain("etc/y", "y")];
        let made = tar(&entries, "./", 1_700_000_000).unwrap();
        assert_eq!(made, tar(&entries, "./", 1_700_000_000).unwrap());
        let mut archive = ::tar::Archive::new(&made[..]);
        let listed: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 1_700_000_000));
                (String::from_utf8(entry.path_bytes().to_vec()).unwrap(), header.mode().unwrap())
            })
            .collect();
        let expected = [
            ("./", 0o755),
            ("./etc/", 0o755),
            ("./usr/", 0o755),
            ("./usr/bin/", 0o755),
            ("./usr/bin/x", 0o755),
            ("./etc/y", 0o644),
        ];
        assert_eq!(listed, expected.map(|(path, mode)| (path.to_owned(), mode)));
        assert_eq!(gzip(b"text").unwrap()[4..8], [0; 4], "no time");
    }
}
