//! Writes cpio archives in the "newc" format, the one that the kernel unpacks into its first root file system.
//!
//! Format: Documentation/driver-api/early-userspace/buffer-format.rst. All numbers are eight hexadecimal digits,
//! names end with a NUL, name and data are padded to four bytes. Directories have to come before what is in them.

use std::io::{self, Read, Write};

const TRAILER: &str = "TRAILER!!!";

/// What a name in the archive stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// A directory.
    Dir,
    /// A regular file, its contents to follow.
    File,
    /// A symbolic link, its target to follow as contents.
    Symlink,
    /// A character device.
    CharDev {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

impl Node {
    const fn type_bits(self) -> u32 {
        match self {
            Self::Dir => 0o040_000,
            Self::File => 0o100_000,
            Self::Symlink => 0o120_000,
            Self::CharDev { .. } => 0o020_000,
        }
    }
}

/// An archive under construction.
pub(crate) struct Writer<W: Write> {
    out: W,
    position: u64,
    next_inode: u32,
}

impl<W: Write> Writer<W> {
    /// Starts an archive; nothing is written before the first entry.
    pub(crate) const fn new(out: W) -> Self {
        Self { out, position: 0, next_inode: 1 }
    }

    /// Adds a directory with mode 0755.
    pub(crate) fn dir(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, Node::Dir, 0o755, 0, &mut io::empty())
    }

    /// Adds a file. `mode` holds the permission bits.
    pub(crate) fn file(&mut self, name: &str, mode: u32, data: &[u8]) -> io::Result<()> {
        self.entry(name, Node::File, mode, data.len() as u64, &mut { data })
    }

    /// Adds a file of `len` bytes from a reader; fewer bytes than promised are an error.
    pub(crate) fn file_from(
        &mut self,
        name: &str,
        mode: u32,
        len: u64,
        data: &mut dyn Read,
    ) -> io::Result<()> {
        self.entry(name, Node::File, mode, len, data)
    }

    /// Adds a symbolic link.
    pub(crate) fn symlink(&mut self, name: &str, target: &str) -> io::Result<()> {
        self.entry(name, Node::Symlink, 0o777, target.len() as u64, &mut target.as_bytes())
    }

    /// Adds a character device with mode 0600.
    pub(crate) fn char_dev(&mut self, name: &str, major: u32, minor: u32) -> io::Result<()> {
        self.entry(name, Node::CharDev { major, minor }, 0o600, 0, &mut io::empty())
    }

    /// Ends the archive, and pads it to 512 bytes as every other writer does.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.next_inode = 0;
        self.header(TRAILER, 0, 0, (0, 0))?;
        self.pad(512)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(&mut self, name: &str, node: Node, mode: u32, len: u64, data: &mut dyn Read) -> io::Result<()> {
        let len32 = u32::try_from(len).map_err(|_| {
            io::Error::other(format!("{name}: {len} bytes, the format holds less than 4 GiB"))
        })?;
        let device = if let Node::CharDev { major, minor } = node { (major, minor) } else { (0, 0) };
        self.header(name.trim_start_matches('/'), node.type_bits() | (mode & 0o7777), len32, device)?;
        let copied = io::copy(&mut data.take(len), &mut self.out)?;
        self.position += copied;
        if copied != len {
            return Err(io::Error::other(format!("{name}: {copied} of {len} bytes")));
        }
        self.pad(4)
    }

    /// Owner root, one link, time zero: the same input gives the same bytes on every machine.
    fn header(&mut self, name: &str, mode: u32, len: u32, (major, minor): (u32, u32)) -> io::Result<()> {
        let inode = self.next_inode;
        self.next_inode += 1;
        let name_len = name.len() as u32 + 1;
        let header = format!(
            "070701{inode:08x}{mode:08x}{uid:08x}{gid:08x}{links:08x}{mtime:08x}{len:08x}{zero:08x}{zero:08x}{major:08x}{minor:08x}{name_len:08x}{zero:08x}",
            uid = 0,
            gid = 0,
            links = 1,
            mtime = 0,
            zero = 0,
        );
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(&[0])?;
        self.position += header.len() as u64 + u64::from(name_len);
        self.pad(4)
    }

    fn pad(&mut self, to: u64) -> io::Result<()> {
        let fill = self.position.next_multiple_of(to) - self.position;
        self.position += fill;
        self.out.write_all(&[0; 512][..fill as usize])
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One entry as a reader of the format sees it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) struct Entry {
        pub(crate) name: String,
        pub(crate) mode: u32,
        pub(crate) device: (u32, u32),
        pub(crate) data: Vec<u8>,
    }

    /// An independent reader, after the format document: fixed field positions, trailer ends the archive.
    pub(crate) fn read(archive: &[u8]) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut at = 0;
        loop {
            assert_eq!(&archive[at..at + 6], b"070701", "magic at byte {at}");
            let field = |n: usize| {
                let text = std::str::from_utf8(&archive[at + 6 + 8 * n..at + 14 + 8 * n]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (len, name_len) = (field(6) as usize, field(11) as usize);
            let name = std::str::from_utf8(&archive[at + 110..at + 110 + name_len - 1]).unwrap().to_owned();
            assert_eq!(archive[at + 110 + name_len - 1], 0);
            if name == TRAILER {
                return entries;
            }
            let data = (at + 110 + name_len).next_multiple_of(4);
            entries.push(Entry {
                name,
                mode: field(1),
                device: (field(9), field(10)),
                data: archive[data..data + len].to_vec(),
            });
            at = (data + len).next_multiple_of(4);
        }
    }

    #[test]
    fn kinds_and_modes() {
        let mut cpio = Writer::new(Vec::new());
        cpio.dir("dev").unwrap();
        cpio.char_dev("dev/console", 5, 1).unwrap();
        cpio.symlink("bin", "usr/bin").unwrap();
        cpio.file("/init", 0o755, b"\x7fELF").unwrap();
        let archive = cpio.finish().unwrap();
        assert_eq!(archive.len() % 512, 0);
        let entries = read(&archive);
        let seen: Vec<_> = entries.iter().map(|e| (e.name.as_str(), e.mode, e.device)).collect();
        assert_eq!(
            seen,
            [
                ("dev", 0o040_755, (0, 0)),
                ("dev/console", 0o020_600, (5, 1)),
                ("bin", 0o120_777, (0, 0)),
                ("init", 0o100_755, (0, 0)),
            ]
        );
        assert_eq!(entries[2].data, b"usr/bin");
    }

    #[test]
    fn short_source_is_an_error() {
        let mut cpio = Writer::new(Vec::new());
        assert!(cpio.file_from("x", 0o644, 5, &mut &b"abc"[..]).is_err());
    }

    proptest! {
        #[test]
        fn reader_sees_what_was_written(files in prop::collection::vec(("[a-z/]{1,40}", prop::collection::vec(any::<u8>(), 0..200)), 0..8)) {
            let mut cpio = Writer::new(Vec::new());
            for (name, data) in &files {
                cpio.file(name, 0o644, data).unwrap();
            }
            let read: Vec<_> = read(&cpio.finish().unwrap()).into_iter().map(|e| (e.name, e.data)).collect();
            let expected: Vec<_> = files.into_iter().map(|(name, data)| (name.trim_start_matches('/').to_owned(), data)).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
