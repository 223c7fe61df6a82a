//! A line of a journal of an earlier version.

use crate::phase::Phase;
use serde::Deserialize;
use std::fmt::Write;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Number of the change; its lines share it.
    pub seq: u64,
    /// The boot it was made in.
    pub boot_id: String,
    /// What kind of change that lasts as long as a run, what kind of note, or which mechanism.
    pub id: String,
    /// What is changed.
    pub target: String,
    /// The value before.
    pub old: Option<String>,
    /// The value after.
    pub new: Option<String>,
    /// How a standing change was made; none for all others.
    #[serde(default)]
    pub kind: Option<Kind>,
    /// What read back after the change, where the kernel made something else of the value.
    #[serde(default)]
    pub read_back: Option<String>,
    /// How far it got.
    pub phase: Phase,
    pub(crate) crc: u32,
}

impl Entry {
    pub(crate) fn checksum(&self) -> u32 {
        let Self { seq, boot_id, id, target, old, new, kind, read_back, phase, crc: _ } = self;
        let mut text = format!("{seq}\0{boot_id}\0{id}\0{target}\0{old:?}\0{new:?}\0{phase:?}");
        if kind.is_some() || read_back.is_some() {
            let _ = write!(text, "\0{kind:?}\0{read_back:?}");
        }
        crc32fast::hash(text.as_bytes())
    }

    pub(crate) fn seems(&self) -> String {
        let value = |value: &Option<String>| match value {
            Some(value) if value.len() > 60 => "a long value".to_owned(),
            Some(value) => format!("{value:?}"),
            None => "nothing".to_owned(),
        };
        let Self { id, target, old, new, .. } = self;
        format!("{} {target:?}, from {} to {}", id.escape_debug(), value(old), value(new))
    }
}

/// How a standing change was made. The names are part of the sum: they stay as they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A file with one value.
    File,
    /// One flag of a file with many.
    Flag,
    /// Where a task may run.
    Task,
    /// A systemd unit.
    Service,
    /// A stopped process.
    Process,
    /// A swap area.
    Swap,
    /// A control group.
    Group,
    /// The control group of a process.
    Member,
    /// A controller of a control group.
    Controller,
    /// A value that holds as long as a file is open.
    Held,
    /// Every task's and interrupt's affinity, as JSON in the value.
    Affinities,
    /// A file that the kernel computes anew.
    Kept,
}
