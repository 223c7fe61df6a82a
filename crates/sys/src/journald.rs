//! Entries with fields in systemd's journal, by its native protocol (JOURNAL_NATIVE_PROTOCOL of its
//! documentation): a datagram with a line `FIELD=value` for each field, or, for a value of several
//! lines, the name alone, the value's length in eight bytes, little endian, and the value.

use rustix::fs::fstat;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Where the journal takes entries.
const SOCKET: &str = "/run/systemd/journal/socket";

/// The journal.
#[derive(Debug)]
pub struct Journald(UnixDatagram);

impl Journald {
    /// Where `output` goes to the journal anyway, as that of a service does: `stream` is what
    /// `JOURNAL_STREAM` holds, device and inode of what does (systemd.exec(5)).
    pub fn behind(output: impl AsFd, stream: Option<&str>) -> Option<Self> {
        let (device, inode) = stream?.split_once(':')?;
        let is = fstat(output).ok()?;
        let is_it = device.parse() == Ok(is.st_dev) && inode.parse() == Ok(is.st_ino);
        is_it.then(|| Self::at(Path::new(SOCKET)).ok()).flatten()
    }

    fn at(socket: &Path) -> io::Result<Self> {
        let own = UnixDatagram::unbound()?;
        // Who waits for a journal does not watch meanwhile.
        own.set_nonblocking(true)?;
        own.connect(socket)?;
        Ok(Self(own))
    }

    /// Adds an entry. Names have capital letters, digits and underscores, at most 64, and a letter
    /// first; the journal leaves others out.
    ///
    /// # Errors
    ///
    /// The journal does not take it: it has gone, it is busy, or the entry is larger than a
    /// datagram.
    pub fn send(&self, fields: &[(&str, String)]) -> io::Result<()> {
        self.0.send(&datagram(fields)).map(drop)
    }
}

fn datagram(fields: &[(&str, String)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            bytes.push(b'\n');
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            bytes.push(b'=');
        }
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_datagram_and_values_of_several_lines_have_a_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixDatagram::bind(&path).unwrap();
        let journal = Journald::at(&path).unwrap();
        journal.send(&[("MESSAGE", "late: 5 ms".into()), ("WHY", "a\nb=c".into())]).unwrap();
        let mut room = [0; 100];
        let read = listener.recv(&mut room).unwrap();
        assert_eq!(&room[..read], b"MESSAGE=late: 5 ms\nWHY\n\x05\0\0\0\0\0\0\0a\nb=c\n");
        drop(listener);
        assert!(journal.send(&[("MESSAGE", String::new())]).is_err());
    }

    #[test]
    fn only_output_that_goes_to_the_journal_is_taken_for_it() {
        let file = tempfile::tempfile().unwrap();
        let is = fstat(&file).unwrap();
        let stream = |inode| format!("{}:{inode}", is.st_dev);
        // Where a journal listens, it is found by the file's own number alone.
        let there = Path::new(SOCKET).exists();
        assert_eq!(Journald::behind(&file, Some(&stream(is.st_ino))).is_some(), there);
        for other in [None, Some(stream(is.st_ino + 1)), Some(String::new()), Some("1".to_owned())] {
            assert!(Journald::behind(&file, other.as_deref()).is_none());
        }
    }
}
