//! Flat tables of integers in Parquet, read without trusting a byte of them.
//!
//! Source: the format of Apache Parquet (`parquet.thrift`, "File format", "Encodings"). Stored
//! samples outlive the disk and the copy they are on. The common library expects intact files: a
//! damaged page ends the program there, and a changed value goes unnoticed. Here every length is
//! checked against the bytes before use, and the sums of [`sums`] before a value is believed.

mod chunk;
mod footer;
pub(crate) mod index;
pub(crate) mod pages;
pub(crate) mod sums;
mod thrift;
mod values;

use crate::Error;
pub(crate) use crate::columns::chunk::Column;
pub(crate) use crate::columns::chunk::{Chunk, Kind, Meaning};
pub(crate) use footer::{Footer, Group};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
pub(crate) use values::Value;

/// What is wrong with the bytes, as the end of "the file …".
#[derive(Debug)]
pub(crate) struct Damage(Cow<'static, str>);

pub(crate) fn damage(what: impl Into<Cow<'static, str>>) -> Damage {
    Damage(what.into())
}

/// Bytes at both ends of the file.
const MAGIC: &[u8; 4] = b"PAR1";
/// Length of the footer and the magic behind it.
const TAIL: u64 = 8;

/// A table that is open.
#[derive(Debug)]
pub(crate) struct Table {
    file: File,
    path: PathBuf,
    expected: &'static str,
    pub(crate) footer: Footer,
    /// Of every piece of every column, row group by row group; empty where the file has none.
    sums: Vec<u32>,
    /// The last row group of a table that was cut off, column by column: its rows were in none yet.
    loose: Vec<Vec<i64>>,
}

/// What is known of a table without a footer.
pub(crate) struct CutOff {
    pub(crate) columns: Vec<Column>,
    pub(crate) texts: Vec<(String, String)>,
    /// Where the mark of its last row group begins ([`index`]); 0 for none.
    pub(crate) last: u64,
    /// The rows that come behind, column by column.
    pub loose: Vec<Vec<i64>>,
}

impl Table {
    /// Opens a file and reads its footer. `expected` says what it should be: "a whole samples
    /// file".
    pub(crate) fn open(path: &Path, expected: &'static str) -> Result<Self, Error> {
        let failed = |source| Error::io("read", path, source);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let wrong = |Damage(what): Damage| Error::invalid(path.display(), what, expected);
        let (bytes, end_of_data) = footer_bytes(&file, length).map_err(failed)?.map_err(wrong)?;
        let footer = Footer::parse(&bytes, end_of_data).map_err(wrong)?;
        let sums = sums::of(&footer).map_err(wrong)?;
        Ok(Self { file, path: path.to_owned(), expected, footer, sums, loose: Vec::new() })
    }

    /// Opens a file whose writing was cut off before its footer.
    pub(crate) fn open_cut_off(path: &Path, expected: &'static str, known: CutOff) -> Result<Self, Error> {
        let failed = |source| Error::io("read", path, source);
        let CutOff { columns, texts, last, loose } = known;
        let file = File::open(path).map_err(failed)?;
        let found = index::groups(&file, last, &columns).map_err(failed)?;
        let (mut groups, sums) =
            found.map_err(|Damage(what)| Error::invalid(path.display(), what, expected))?;
        groups.push(Group { rows: loose.first().map_or(0, Vec::len), chunks: Vec::new() });
        let rows = groups.iter().map(|group| group.rows as u64).sum();
        let footer = Footer { rows, columns, groups, texts };
        Ok(Self { file, path: path.to_owned(), expected, footer, sums, loose })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the values of a column in one row group.
    pub(crate) fn column<T: Value>(
        &self,
        group: usize,
        column: usize,
        values: &mut Vec<T>,
    ) -> Result<(), Error> {
        self.read(group, column, None, values)
    }

    /// The values of a column whose values may be missing, in one row group.
    pub(crate) fn optional_column<T: Value>(
        &self,
        group: usize,
        column: usize,
    ) -> Result<Vec<Option<T>>, Error> {
        let (mut present, mut values) = (Vec::new(), Vec::new());
        self.read(group, column, Some(&mut present), &mut values)?;
        let mut values = values.into_iter();
        Ok(present.into_iter().map(|there| if there { values.next() } else { None }).collect())
    }

    /// What is wrong with this file, as an error.
    pub(crate) fn wrong(&self, Damage(what): Damage) -> Error {
        Error::invalid(self.path.display(), what, self.expected)
    }

    fn read<T: Value>(
        &self,
        group: usize,
        column: usize,
        present: Option<&mut Vec<bool>>,
        values: &mut Vec<T>,
    ) -> Result<(), Error> {
        let decode = || {
            let (Some(named), Some(rows)) = (self.footer.columns.get(column), self.footer.groups.get(group))
            else {
                return Ok(Err(damage(format!("has no column {column} in row group {group}"))));
            };
            if named.kind != T::KIND || named.optional != present.is_some() {
                let what = format!("column {column} is of {}, not of {}", named.kind, T::KIND);
                return Ok(Err(damage(what)));
            }
            let Some(&chunk) = rows.chunks.get(column) else {
                values.extend(self.loose.get(column).into_iter().flatten().map(|&value| T::of(value)));
                return Ok(Ok(()));
            };
            let mut bytes = vec![0; chunk.length as usize];
            read_at(&self.file, chunk.start, &mut bytes)?;
            let sum = self.sums.get(group * self.footer.columns.len() + column);
            if sum.is_some_and(|&sum| sum != crc32fast::hash(&bytes)) {
                let (name, at) = (&named.name, chunk.start);
                return Ok(Err(damage(format!(
                    "column {name} of row group {group}, from byte {at}, is not as it was written"
                ))));
            }
            Ok(pages::read(&bytes, &chunk, rows.rows, present, values))
        };
        let read: io::Result<Result<(), Damage>> = decode();
        let read = read.map_err(|source| Error::io("read", &self.path, source))?;
        read.map_err(|damage| self.wrong(damage))
    }
}

/// The bytes of the footer, and where they begin.
fn footer_bytes(file: &File, length: u64) -> io::Result<Result<(Vec<u8>, u64), Damage>> {
    let mut tail = [0; TAIL as usize];
    if length < TAIL + MAGIC.len() as u64 {
        return Ok(Err(damage(format!("has {length} bytes"))));
    }
    read_at(file, length - TAIL, &mut tail)?;
    let (size, magic) = tail.split_at(4);
    if magic != MAGIC {
        return Ok(Err(damage("does not end as Parquet does")));
    }
    let size = size.try_into().map_or(0, u32::from_le_bytes);
    let Some(start) = (length - TAIL).checked_sub(u64::from(size)).filter(|&start| start >= 4) else {
        return Ok(Err(damage(format!("has a footer of {size} bytes, more than it is long"))));
    };
    let mut bytes = vec![0; size as usize];
    read_at(file, start, &mut bytes)?;
    Ok(Ok((bytes, start)))
}

fn read_at(mut file: &File, start: u64, bytes: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(bytes)
}
