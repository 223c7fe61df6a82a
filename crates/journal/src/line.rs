//! One line of a journal.

use super::change::Owner;
use super::earlier;
use crate::decoded::{Decoded, Entry, Why};
use crate::phase::Phase;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name and version of the line.
pub const SCHEMA: &str = "stillcore.journal/2";

/// The text before the checksum at the end of a line.
const SUM: &str = ",\"crc\":";

/// The line of an entry, without its sum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    schema: String,
    pub seq: u64,
    pub boot_id: String,
    pub phase: Phase,
    kind: String,
    version: u32,
    change: Value,
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
