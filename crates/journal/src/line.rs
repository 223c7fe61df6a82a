//! One line of a journal.

use super::change::{Change, Owner};
use super::earlier;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Name and version of the line.
pub const SCHEMA: &str = "stillcore.journal/2";

/// The text before the checksum at the end of a line.
const SUM: &str = ",\"crc\":";

/// How far a change has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// About to be made: it may or may not have happened.
    Intent,
    /// Made.
    Done,
    /// Undone.
    Undone,
}

/// A change, and how far it has got.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Number of the change; its lines share it.
    pub seq: u64,
    /// The boot it was made in.
    pub boot_id: String,
    /// How far it got.
    pub phase: Phase,
    /// What it is.
    pub change: Arc<dyn Change>,
}

/// The line of an entry, without its sum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    schema: String,
    seq: u64,
    boot_id: String,
    phase: Phase,
    kind: String,
    version: u32,
    change: Value,
}

/// A line that is whole and cannot be acted upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its number, from 1 on.
    pub line: usize,
    /// The reason.
    pub why: Why,
}

/// Why a line is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is no line of any journal.
    Unreadable,
    /// Its sum is another; what it seems to say, any part of which may be the damage.
    Changed(Option<String>),
    /// It is of this schema.
    Schema(String),
    /// Nobody here owns changes of this kind and version.
    Kind(String, u32),
    /// Its fields are not those of its kind.
    Fields(String, String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, why } = self;
        let later = "which this version of stillcore does not know";
        match why {
            Why::Unreadable => write!(f, "line {line} (unreadable)"),
            Why::Changed(None) => write!(f, "line {line} (changed since it was written)"),
            Why::Changed(Some(seems)) => write!(f, "line {line} (it seems {seems})"),
            Why::Schema(schema) => write!(f, "line {line} (of schema {schema:?}, {later})"),
            Why::Kind(kind, version) => {
                write!(f, "line {line} (a change {kind:?} of version {version}, {later})")
            }
            Why::Fields(kind, what) => write!(f, "line {line} (a change {kind:?}: {what})"),
        }
    }
}

/// What a text between two line ends is.
pub(super) enum Decoded {
    Entry(Entry),
    /// It breaks off.
    Torn,
    Refused(Why),
}

/// An entry as a line, with its sum and the line's end.
pub fn encode(entry: &Entry) -> Result<String, serde_json::Error> {
    let form = entry.change.form();
    let mut text = serde_json::to_string(&Line {
        schema: SCHEMA.to_owned(),
        seq: entry.seq,
        boot_id: entry.boot_id.clone(),
        phase: entry.phase,
        kind: form.kind.to_owned(),
        version: form.version,
        change: entry.change.fields()?,
    })?;
    text.pop();
    let crc = crc32fast::hash(text.as_bytes());
    Ok(format!("{text}{SUM}{crc}}}\n"))
}

pub(super) fn decode(text: &str, owners: &[Owner]) -> Decoded {
    match serde_json::from_str::<Value>(text) {
        Err(error) if error.is_eof() => return Decoded::Torn,
        Ok(Value::Object(object)) => match object.get("schema") {
            None => return earlier::decode(text, owners),
            Some(schema) if schema == SCHEMA => {}
            Some(schema) => {
                let schema = schema.as_str().map_or_else(|| schema.to_string(), str::to_owned);
                return Decoded::Refused(Why::Schema(schema));
            }
        },
        _ => return Decoded::Refused(Why::Unreadable),
    }
    let Some((body, sum)) = text.trim_end().rsplit_once(SUM) else {
        return Decoded::Refused(Why::Unreadable);
    };
    let whole =
        sum.strip_suffix('}').and_then(|sum| sum.parse().ok()) == Some(crc32fast::hash(body.as_bytes()));
    let line = match serde_json::from_str::<Line>(&format!("{body}}}")) {
        Ok(line) => line,
        Err(_) if !whole => return Decoded::Refused(Why::Changed(None)),
        Err(_) => return Decoded::Refused(Why::Unreadable),
    };
    let Line { seq, boot_id, phase, kind, version, change, .. } = line;
    let owner = owners.iter().find(|owner| owner.form.kind == kind && owner.form.version == version);
    let read = owner.map(|owner| (owner.read)(change));
    match read {
        read if !whole => {
            Decoded::Refused(Why::Changed(read.and_then(Result::ok).map(|change| change.in_full())))
        }
        None => Decoded::Refused(Why::Kind(kind, version)),
        Some(Err(error)) => Decoded::Refused(Why::Fields(kind, error.to_string())),
        Some(Ok(change)) => Decoded::Entry(Entry { seq, boot_id, phase, change }),
    }
}
