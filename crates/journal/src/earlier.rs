//! Lines as journals had them before their schema had a number (up to November 2026): strings in
//! which each kind kept what it needed. A machine may be updated while something is applied, so
//! they are still read and undone; none is written.

use super::change::Owner;
use crate::decoded::{Decoded, Why};
pub use crate::earlier_entry::Entry;
pub use crate::earlier_entry::Kind;
use std::fmt::Display;
use std::path::PathBuf;

/// Whether a line is of a kind of before that lasted as long as a run: by its id alone.
pub fn transient(entry: &Entry, id: &str) -> bool {
    entry.kind.is_none() && entry.id == id
}

/// The path that such a line of this id is about.
pub fn path(entry: &Entry, id: &str) -> Option<PathBuf> {
    transient(entry, id).then(|| PathBuf::from(&entry.target))
}

/// Why such a line cannot be read.
pub fn wrong(what: impl Display) -> serde_json::Error {
    serde::de::Error::custom(what)
}

pub(super) fn decode(text: &str, owners: &[Owner]) -> Decoded {
    let Ok(entry) = serde_json::from_str::<Entry>(text) else {
        return Decoded::Refused(Why::Unreadable);
    };
    if entry.crc != entry.checksum() {
        return Decoded::Refused(Why::Changed(Some(entry.seems())));
    }
    match owners.iter().find_map(|owner| (owner.earlier)(&entry)) {
        Some(Ok(change)) => {
            let Entry { seq, boot_id, phase, .. } = entry;
            Decoded::Entry(super::Entry { seq, boot_id, phase, change })
        }
        Some(Err(error)) => Decoded::Refused(Why::Fields(entry.id, error.to_string())),
        None => Decoded::Refused(Why::Kind(entry.id, 1)),
    }
}
