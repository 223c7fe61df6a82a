//! A Parquet file, a row group at a time.

use super::{EXPECTED, Piece};
use crate::Error;
use crate::columns::{Column, Kind, Meaning, Table, Value, damage};
use std::path::Path;

#[derive(Debug)]
pub(super) struct Reader {
    table: Table,
    /// Row groups read already.
    group: usize,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { table: Table::open(path, EXPECTED)?, group: 0 })
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.table.footer.columns.iter().map(|column| column.name.as_str()).collect()
    }

    pub(super) fn next(&mut self, pieces: &mut [Piece]) -> Result<bool, Error> {
        if self.group == self.table.footer.groups.len() {
            return Ok(false);
        }
        for (at, piece) in pieces.iter_mut().enumerate() {
            let Some(column) = self.table.footer.columns.get(at) else { continue };
            let refused = |what: &str| {
                self.table.wrong(damage(format!("has {what} in column {}", column.name.escape_debug())))
            };
            match (column.kind, column.meaning) {
                (_, Meaning::Other) | (Kind::Other(_), _) => {
                    return Err(refused("something else than integers"));
                }
                (Kind::Int64, _) => self.read(column, at, piece, |value: i64| value)?,
                (Kind::Int32, Meaning::Unsigned) => {
                    self.read(column, at, piece, |value: i32| i64::from(value as u32))?;
                }
                (Kind::Int32, Meaning::Signed) => self.read(column, at, piece, |value: i32| value.into())?,
            }
            if column.meaning == Meaning::Unsigned && piece.values.iter().any(|&value| value < 0) {
                return Err(refused("a number above 2^63 - 1"));
            }
        }
        self.group += 1;
        Ok(true)
    }

    /// Values of one type as they are, or widened.
    fn read<T: Value + Default>(
        &self,
        column: &Column,
        at: usize,
        piece: &mut Piece,
        widen: impl Fn(T) -> i64,
    ) -> Result<(), Error> {
        if column.optional {
            let read: Vec<Option<T>> = self.table.optional_column(self.group, at)?;
            piece.values.extend(read.iter().map(|value| value.map_or(0, &widen)));
            let absent = read.iter().any(Option::is_none);
            piece.present = absent.then(|| read.iter().map(Option::is_some).collect());
        } else {
            let mut values = Vec::new();
            self.table.column(self.group, at, &mut values)?;
            piece.values.extend(values.into_iter().map(widen));
        }
        Ok(())
    }
}
