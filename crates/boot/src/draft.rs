//! What is to be written for the next boot.

use crate::edit::Edit;

/// One file as it will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Under the root.
    pub path: String,
    /// Without us; `None` where the file would not be there.
    pub before: Option<Vec<u8>>,
    /// With the new line.
    pub after: Vec<u8>,
}

/// What to write for the next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    /// The boot loader found.
    pub loader: &'static str,
    /// The words, against the line without us.
    pub edits: Vec<Edit>,
    /// Files to write.
    pub files: Vec<NewFile>,
    /// Commands that make it effective on the machine that runs.
    pub commands: Vec<Vec<String>>,
    /// What to do by hand, a line each.
    pub by_hand: Vec<String>,
    /// What to know, a sentence each.
    pub next: Vec<String>,
    /// Whether it is for one boot alone.
    pub once: bool,
}
