//! A line of a journal, as it reads.

use crate::change::Change;
use crate::phase::Phase;
use std::fmt;
use std::sync::Arc;

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

/// What a text between two line ends is.
pub(crate) enum Decoded {
    Entry(Entry),
    /// It breaks off.
    Torn,
    Refused(Why),
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

/// A line that is whole and cannot be acted upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its number, from 1 on.
    pub line: usize,
    /// The reason.
    pub why: Why,
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
