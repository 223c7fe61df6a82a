//! One call of a recording, as a line of text: its name, then `key=value` for each argument.
//!
//! What differs from run to run has a name in its place: a descriptor is the device that it was
//! opened on, a thread is `self` where it names itself, an address is left out and what it points
//! to stands there, field by field.

use std::fmt::Write;

/// A field of a structure of the kernel's side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

/// A line under construction.
#[derive(Debug)]
pub(crate) struct Line(String);

impl Line {
    pub(crate) fn of(name: &str) -> Self {
        Self(name.to_owned())
    }

    pub(crate) fn with(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        write!(self.0, " {key}={value}").expect("a String takes everything");
        self
    }

    /// Every byte of a structure: the fields as `NAME@OFFSET:SIZE=VALUE`, and what no field covers
    /// in hexadecimal.
    pub(crate) fn bytes(mut self, bytes: &[u8], fields: &[Field]) -> Self {
        let mut at = 0;
        for field in fields {
            self = self.gap(bytes, at, field.offset);
            let end = field.offset + field.size;
            let value =
                bytes[field.offset..end].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            let key = format!("{}@{}:{}", field.name, field.offset, field.size);
            self = self.with(&key, value);
            at = end;
        }
        self.gap(bytes, at, bytes.len())
    }

    fn gap(self, bytes: &[u8], from: usize, to: usize) -> Self {
        if from == to {
            return self;
        }
        self.with(&format!("@{from}:{}", to - from), hex(&bytes[from..to]))
    }

    pub(crate) fn text(self) -> String {
        self.0
    }
}

/// Bytes in hexadecimal, in memory's order.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Names of the bits that are set, and the rest as a number.
pub(crate) fn flags(value: u64, names: &[(u64, &str)]) -> String {
    let mut words: Vec<String> =
        names.iter().filter(|(bit, _)| value & bit != 0).map(|(_, name)| (*name).to_owned()).collect();
    let rest = names.iter().fold(value, |rest, (bit, _)| rest & !bit);
    if rest != 0 || words.is_empty() {
        words.push(format!("{rest:#x}"));
    }
    words.join("|")
}
