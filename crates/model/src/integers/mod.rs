//! Tables of integers that others have written, in Parquet or in Arrow's file format, piece by
//! piece and without trusting a byte of them.
//!
//! Only flat columns: what a row has in each is an integer or nothing. Parquet is read by
//! [`crate::columns`]; Arrow by [`arrow`].

mod arrow;
mod flat_buffer;
mod parquet;

use crate::Error;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A table that is open.
#[derive(Debug)]
pub struct IntegerTable(Format);

#[derive(Debug)]
enum Format {
    Parquet(parquet::Reader),
    Arrow(Box<arrow::Reader>),
}

/// Rows of one column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    /// The values; any value where there is none.
    pub values: Vec<i64>,
    /// Which of them are there; none where all are.
    pub present: Option<Vec<bool>>,
}

impl Piece {
    fn clear(&mut self) {
        self.values.clear();
        self.present = None;
    }
}

/// What a file should be.
const EXPECTED: &str = "a Parquet or Arrow file of integer columns";

impl IntegerTable {
    /// Opens a file that begins as Parquet or as Arrow's file format; none for any other file, and
    /// for one that cannot be opened, of which its other reader says why.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |source| Error::io("read", path, source);
        let Ok(mut file) = File::open(path) else { return Ok(None) };
        // What is no plain file, a pipe, is not read twice.
        if !file.metadata().map_err(failed)?.is_file() {
            return Ok(None);
        }
        let mut start = Vec::new();
        Read::by_ref(&mut file).take(arrow::MAGIC.len() as u64).read_to_end(&mut start).map_err(failed)?;
        let format = if start.starts_with(b"PAR1") {
            Format::Parquet(parquet::Reader::open(path)?)
        } else if start == arrow::MAGIC {
            Format::Arrow(Box::new(arrow::Reader::open(file, path)?))
        } else {
            return Ok(None);
        };
        Ok(Some(Self(format)))
    }

    /// Names of the columns, in order.
    pub fn names(&self) -> Vec<&str> {
        match &self.0 {
            Format::Parquet(reader) => reader.names(),
            Format::Arrow(reader) => reader.names(),
        }
    }

    /// The next rows, a piece a column, in place of what was in `pieces`; false at the end.
    ///
    /// # Errors
    ///
    /// A column of anything else than integers, a value above 2^63 - 1, a compression other than
    /// snappy (Parquet) and Zstandard, a damaged file.
    pub fn next(&mut self, pieces: &mut Vec<Piece>) -> Result<bool, Error> {
        pieces.resize_with(self.names().len(), Piece::default);
        pieces.iter_mut().for_each(Piece::clear);
        match &mut self.0 {
            Format::Parquet(reader) => reader.next(pieces),
            Format::Arrow(reader) => reader.next(pieces),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/task-tables").join(name)
    }

    /// All rows by column, as text: a value that is not there is `-`.
    fn rows(path: &Path) -> Result<Vec<String>, Error> {
        let mut table = IntegerTable::open(path)?.unwrap();
        let mut columns: Vec<String> = table.names().iter().map(|name| format!("{name}:")).collect();
        let mut pieces = Vec::new();
        while table.next(&mut pieces)? {
            for (column, piece) in columns.iter_mut().zip(&pieces) {
                for (at, value) in piece.values.iter().enumerate() {
                    let there = piece.present.as_ref().is_none_or(|present| present[at]);
                    column.push(' ');
                    column.push_str(&if there { value.to_string() } else { "-".to_owned() });
                }
            }
        }
        Ok(columns)
    }

    #[test]
    fn every_writers_file_has_the_same_rows() {
        let expected = rows(&fixture("pyarrow.parquet")).unwrap();
        assert_eq!(expected.len(), 5);
        assert!(expected[1].starts_with("period: 10000 20000 40000 8000 1000000 "), "{}", expected[1]);
        assert!(expected[3].starts_with("deadline: - 15000 40000 - 900000 "), "{}", expected[3]);
        assert!(expected[0].ends_with(" 9 10 10"), "{}", expected[0]);
        for name in [
            "narrow.parquet",
            "polars.parquet",
            "duckdb.parquet",
            "pyarrow.arrow",
            "narrow.arrow",
            "polars.arrow",
            "zstd.arrow",
        ] {
            assert_eq!(rows(&fixture(name)).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn what_is_not_of_integers_is_refused() {
        for (name, expected) in [
            ("floats.parquet", "has something else than integers in column period"),
            ("decimals.parquet", "has something else than integers in column period"),
            ("lz4.arrow", "is packed with LZ4, not with Zstandard"),
        ] {
            let error = rows(&fixture(name)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(IntegerTable::open(&fixture("sets.jsonl")).unwrap().is_none());
        assert!(IntegerTable::open(&fixture("none.parquet")).unwrap().is_none());
    }

    #[test]
    fn a_file_that_is_cut_off_or_changed_is_read_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table");
        for name in ["narrow.arrow", "zstd.arrow"] {
            let whole = std::fs::read(fixture(name)).unwrap();
            for at in (8..whole.len()).step_by(7) {
                for change in [0xff, 0x80, 1] {
                    let mut bytes = whole.clone();
                    bytes[at] ^= change;
                    std::fs::write(&path, &bytes).unwrap();
                    let _ = IntegerTable::open(&path).map(|_| rows(&path));
                }
            }
            for length in (8..whole.len()).step_by(7) {
                std::fs::write(&path, &whole[..length]).unwrap();
                let _ = IntegerTable::open(&path).map(|_| rows(&path));
            }
        }
    }
}
