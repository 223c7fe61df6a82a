//! Task sets in a table of integers, Parquet or Arrow: a row a task, the rows of a set one behind
//! the other. Memory is bounded by the rows that the file has in one piece, and by one set.

use super::sets::RowsOf;
use model::Error;
use model::integers::{IntegerTable, Piece};
use sched::MAX_TASKS;
use sched::asked::Unit;
use sched::simple::{Column, Key, TaskColumns};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A table that is open.
pub(super) struct Table {
    integers: IntegerTable,
    path: PathBuf,
    unit: Unit,
    /// What each column holds.
    keys: Vec<Key>,
    /// Rows that are not answered yet, by column.
    held: Vec<Piece>,
    /// The name of the last set, where there was one.
    last: Option<i64>,
    /// Sets before those that are held.
    before: usize,
}

impl Table {
    /// Opens a table; none where the file is none.
    pub(super) fn open(path: &Path, unit: Unit) -> Result<Option<Self>, Error> {
        let Some(integers) = IntegerTable::open(path)? else { return Ok(None) };
        let keys = keys(&integers.names(), path)?;
        let held = vec![Piece::default(); keys.len()];
        Ok(Some(Self { integers, path: path.to_owned(), unit, keys, held, last: None, before: 0 }))
    }

    /// Calls `each` with all sets, at most `most` at a time.
    pub(super) fn for_each(
        mut self,
        most: usize,
        mut each: impl FnMut(&RowsOf<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut pieces = Vec::new();
        loop {
            let more = self.integers.next(&mut pieces)?;
            for (held, piece) in self.held.iter_mut().zip(&mut pieces) {
                append(held, piece);
            }
            let sets = self.sets(more)?;
            let columns = self.columns()?;
            for (at, some) in sets.chunks(most).enumerate() {
                let first = self.before + at * most + 1;
                each(&RowsOf { file: &self.path, columns, sets: some, first })?;
            }
            if !more {
                return Ok(());
            }
            let answered = sets.last().map_or(0, |rows| rows.end);
            self.before += sets.len();
            for held in &mut self.held {
                held.values.drain(..answered);
                if let Some(present) = &mut held.present {
                    present.drain(..answered);
                }
            }
        }
    }

    fn columns(&self) -> Result<TaskColumns<'_>, Error> {
        let rows = self.held.first().map_or(0, |piece| piece.values.len());
        let mut columns = TaskColumns::new(rows, self.unit);
        for (key, piece) in self.keys.iter().zip(&self.held) {
            if !columns.add(*key, Column { values: &piece.values, present: piece.present.as_deref() }) {
                let what = format!("column {} has another number of rows", key.name());
                return Err(Error::invalid(self.path.display(), what, "columns of one length"));
            }
        }
        Ok(columns)
    }

    /// The rows of each set that is held whole: all but the last, if more rows may follow.
    fn sets(&mut self, more: bool) -> Result<Vec<Range<usize>>, Error> {
        let columns = self.columns()?;
        let (mut from, mut last, mut sets) = (0, self.last, Vec::new());
        while from < columns.rows() {
            let (rows, Some(name)) = columns.set_from(from) else { break };
            if more && rows.end == columns.rows() {
                if rows.len() > MAX_TASKS {
                    let place = format!("{}, set {name}", self.path.display());
                    let expected = format!("at most {MAX_TASKS}");
                    return Err(Error::invalid(place, format!("more than {MAX_TASKS} tasks"), expected));
                }
                break;
            }
            if let Some(last) = last.filter(|&last| last >= name) {
                let place = format!("{}, column set", self.path.display());
                let what = format!("set {name} after set {last}");
                return Err(Error::invalid(place, what, "rows in ascending order of the set"));
            }
            last = Some(name);
            from = rows.end;
            sets.push(rows);
        }
        let absent = self.keys.iter().zip(&self.held).find(|(key, _)| **key == Key::Set);
        if absent.is_some_and(|(_, piece)| piece.present.is_some()) {
            let place = format!("{}, column set", self.path.display());
            return Err(Error::invalid(place, "a row without a value", "a set for every row"));
        }
        self.last = last;
        Ok(sets)
    }
}

/// What the columns hold, by their names.
fn keys(names: &[&str], path: &Path) -> Result<Vec<Key>, Error> {
    let known = Key::ALL.map(|(name, _)| name).join(", ");
    let mut keys = Vec::with_capacity(names.len());
    for name in names {
        let key = Key::by_name(name).filter(|key| !keys.contains(key));
        let wrong = || {
            let twice = if Key::by_name(name).is_some() { " twice" } else { "" };
            let what = format!("column \"{}\"{twice}", name.escape_debug());
            Error::invalid(path.display(), what, format!("some of {known}, each once"))
        };
        keys.push(key.ok_or_else(wrong)?);
    }
    match [Key::Set, Key::Period, Key::Cost].into_iter().find(|key| !keys.contains(key)) {
        None => Ok(keys),
        Some(absent) => {
            let what = format!("no column {}", absent.name());
            Err(Error::invalid(path.display(), what, "set, period and cost, and any of the other keys"))
        }
    }
}

/// Puts rows behind others, and leaves the piece empty.
fn append(held: &mut Piece, piece: &mut Piece) {
    let before = held.values.len();
    held.values.append(&mut piece.values);
    let rows = held.values.len();
    if let Some(present) = piece.present.take() {
        held.present.get_or_insert_with(|| vec![true; before]).extend(present);
    } else if let Some(present) = &mut held.present {
        present.resize(rows, true);
    }
}
