//! What is wrong with an experiment file: one sentence, with line and column.

use std::ops::Range;
use thiserror::Error;

/// A mistake and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {what}")]
pub struct Fault {
    /// Line in the file, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// What, and what was expected.
    pub what: String,
}

impl Fault {
    /// The mistake at these bytes of the file.
    pub(crate) fn at(text: &str, span: &Range<usize>, what: impl Into<String>) -> Self {
        let start = span.start.min(text.len());
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = 1 + before.get(line_start..).unwrap_or_default().chars().count();
        Self { line: 1 + before.matches('\n').count(), column, what: what.into() }
    }
}
