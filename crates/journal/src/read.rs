//! A journal as it stands on disk.

use super::change::Owner;
use super::line::decode;
use super::trust;
use crate::decoded::{Decoded, Entry, Refused};
use crate::phase::Phase;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use sys::Error;

/// What a journal says.
#[derive(Debug, Default)]
pub struct Contents {
    /// Changes not yet undone, oldest first.
    pub open: Vec<Entry>,
    /// Lines that are whole and cannot be acted upon.
    pub refused: Vec<Refused>,
    /// How many lines there are.
    pub lines: u64,
    /// Whether the file ends in the middle of a line.
    pub torn: bool,
}

/// Reads a journal; empty where there is none: somebody else, a guardian perhaps, may have been
/// done with it first.
pub fn read(path: &Path, owners: &[Owner]) -> Result<Contents, Error> {
    let Some(mut file) = trust::open_file(path, OFlags::RDONLY)? else {
        return Ok(Contents::default());
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|source| Error::os("read the journal", path.display(), source))?;
    Ok(parse(&bytes, owners))
}

fn parse(bytes: &[u8], owners: &[Owner]) -> Contents {
    let mut open = BTreeMap::new();
    let mut contents =
        Contents { torn: bytes.last().is_some_and(|byte| *byte != b'\n'), ..Contents::default() };
    for text in String::from_utf8_lossy(bytes).lines() {
        contents.lines += 1;
        match decode(text, owners) {
            Decoded::Torn => {}
            Decoded::Refused(why) => contents.refused.push(Refused { line: contents.lines as usize, why }),
            Decoded::Entry(entry) if entry.phase == Phase::Undone => drop(open.remove(&entry.seq)),
            Decoded::Entry(entry) => drop(open.insert(entry.seq, entry)),
        }
    }
    contents.open = open.into_values().collect();
    contents
}
