//! Sets as `sched analyze` takes them, whatever file they come from.

use super::lines::Batch;
use model::Error;
use sched::simple::{SimpleSet, TaskColumns};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// Some sets, to be answered side by side.
pub(super) trait Sets: Sync {
    fn count(&self) -> usize;

    /// The number of a set in its file, from 1.
    fn number(&self, at: usize) -> usize;

    /// Where a set is, for errors.
    fn place(&self, at: usize) -> String;

    /// Takes a simple set; false where it is not.
    fn take(&self, at: usize, set: &mut SimpleSet) -> bool;

    /// The set as a line of JSON, or why there is none.
    fn line(&self, at: usize) -> Result<Cow<'_, [u8]>, Error>;
}

/// Lines of a file.
pub(super) struct LinesOf<'a> {
    pub(super) file: &'a Path,
    pub(super) batch: &'a Batch,
}

impl Sets for LinesOf<'_> {
    fn count(&self) -> usize {
        self.batch.len()
    }

    fn number(&self, at: usize) -> usize {
        self.batch.line(at).map_or(0, |line| line.number)
    }

    fn place(&self, at: usize) -> String {
        format!("{}, line {}", self.file.display(), self.number(at))
    }

    fn take(&self, at: usize, set: &mut SimpleSet) -> bool {
        self.batch.line(at).and_then(|line| line.bytes()).is_some_and(|line| set.read(line))
    }

    fn line(&self, at: usize) -> Result<Cow<'_, [u8]>, Error> {
        self.batch.line(at).map_or(Ok(Cow::default()), |line| line.text(self.file).map(Cow::from))
    }
}

/// Rows of a table.
pub(super) struct RowsOf<'a> {
    pub(super) file: &'a Path,
    pub(super) columns: TaskColumns<'a>,
    /// The rows of each set.
    pub(super) sets: &'a [Range<usize>],
    /// The number of the first of them.
    pub(super) first: usize,
}

impl RowsOf<'_> {
    fn rows(&self, at: usize) -> Range<usize> {
        self.sets.get(at).cloned().unwrap_or_default()
    }
}

impl Sets for RowsOf<'_> {
    fn count(&self) -> usize {
        self.sets.len()
    }

    fn number(&self, at: usize) -> usize {
        self.first + at
    }

    fn place(&self, at: usize) -> String {
        let name = self.columns.set_from(self.rows(at).start).1;
        let name = name.map_or(String::new(), |name| format!(", set {name}"));
        format!("{}{name}", self.file.display())
    }

    fn take(&self, at: usize, set: &mut SimpleSet) -> bool {
        self.columns.take(self.rows(at), set)
    }

    fn line(&self, at: usize) -> Result<Cow<'_, [u8]>, Error> {
        let wrong = |error: sched::question::QuestionError| {
            Error::invalid(format!("{}, {}", self.place(at), error.field), error.found, error.expected)
        };
        self.columns.line(self.rows(at)).map(|line| line.into_bytes().into()).map_err(wrong)
    }
}
