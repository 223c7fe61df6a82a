//! What a Parquet file says of itself at its end: names and types of its columns, where the pieces
//! of each lie, texts by key.
//!
//! Source: `parquet.thrift` and "File format" of Apache Parquet. The numbers in the matches are
//! those of the fields there.

use super::thrift::Cursor;
use super::thrift::kind::TRUE;
use super::{Damage, damage};
use crate::columns::chunk::{Chunk, Column, Kind, LARGEST_GROUP, Meaning};

/// Some consecutive rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) rows: usize,
    /// One a column.
    pub(crate) chunks: Vec<Chunk>,
}

/// The whole footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) rows: u64,
    pub(crate) columns: Vec<Column>,
    pub(crate) groups: Vec<Group>,
    pub(crate) texts: Vec<(String, String)>,
}

impl Footer {
    /// Of a file of `length` bytes in which the footer's own begin at `end_of_data`.
    pub(super) fn parse(bytes: &[u8], end_of_data: u64) -> Result<Self, Damage> {
        let (mut rows, mut schema, mut groups, mut texts) = (None, Vec::new(), Vec::new(), Vec::new());
        Cursor::new(bytes).fields(|at, number, _| {
            match number {
                2 => schema = at.structures(element)?,
                3 => rows = u64::try_from(at.integer()?).ok(),
                4 => groups = at.structures(group)?,
                5 => texts = at.structures(key_value)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let footer = Self {
            rows: rows.ok_or_else(|| damage("has no number of rows"))?,
            columns: flat(schema)?,
            groups,
            texts,
        };
        footer.check(end_of_data)?;
        Ok(footer)
    }

    /// The text stored under a key.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.texts.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
    }

    fn check(&self, end_of_data: u64) -> Result<(), Damage> {
        for (number, group) in self.groups.iter().enumerate() {
            if group.chunks.len() != self.columns.len() {
                let (found, of) = (group.chunks.len(), self.columns.len());
                return Err(damage(format!("row group {number} has {found} of {of} columns")));
            }
            for (column, chunk) in self.columns.iter().zip(&group.chunks) {
                let name = &column.name;
                let end = chunk.start.checked_add(chunk.length);
                if end.is_none_or(|end| end > end_of_data) {
                    return Err(damage(format!("column {name} of row group {number} lies outside the file")));
                }
                if chunk.kind != column.kind || chunk.values != group.rows as u64 {
                    return Err(damage(format!(
                        "column {name} of row group {number} is not that of the table"
                    )));
                }
            }
        }
        let rows = self.groups.iter().map(|group| group.rows as u64).sum::<u64>();
        if rows == self.rows {
            Ok(())
        } else {
            Err(damage(format!("{rows} rows in row groups, {} in the footer", self.rows)))
        }
    }
}

/// An element of the schema: a column, or the root that has them.
struct Element {
    column: Column,
    children: i64,
    repeated: bool,
}

fn element(at: &mut Cursor<'_>) -> Result<Element, Damage> {
    let (mut name, mut kind, mut repetition, mut children) = (String::new(), Kind::Other(-1), 0, 0);
    let (mut converted, mut logical) = (None, None);
    at.fields(|at, number, _| {
        match number {
            1 => kind = kind_of(at.integer()?),
            3 => repetition = at.integer()?,
            4 => at.text()?.clone_into(&mut name),
            5 => children = at.integer()?,
            6 => converted = Some(by_converted_type(at.integer()?)),
            10 => logical = Some(by_logical_type(at)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let meaning = logical.or(converted).unwrap_or_default();
    Ok(Element {
        column: Column { name, kind, optional: repetition == 1, meaning },
        children,
        repeated: !matches!(repetition, 0 | 1),
    })
}

/// `ConvertedType`: how earlier writers say what a column holds.
const fn by_converted_type(number: i64) -> Meaning {
    match number {
        11..=14 => Meaning::Unsigned,
        15..=18 => Meaning::Signed,
        _ => Meaning::Other,
    }
}

/// `LogicalType`: the same today, a structure of which one field is there; 10 is that of integers.
fn by_logical_type(at: &mut Cursor<'_>) -> Result<Meaning, Damage> {
    let mut meaning = Meaning::Other;
    at.fields(|at, number, _| {
        if number != 10 {
            return Ok(false);
        }
        at.fields(|_, number, kind| {
            if number == 2 {
                meaning = if kind == TRUE { Meaning::Signed } else { Meaning::Unsigned };
            }
            Ok(false)
        })?;
        Ok(true)
    })?;
    Ok(meaning)
}

const fn kind_of(number: i64) -> Kind {
    match number {
        1 => Kind::Int32,
        2 => Kind::Int64,
        other => Kind::Other(other),
    }
}

/// The columns of a table whose rows are no trees: a root, and everything else directly under it.
fn flat(schema: Vec<Element>) -> Result<Vec<Column>, Damage> {
    let mut elements = schema.into_iter();
    let root = elements.next().ok_or_else(|| damage("has no columns"))?;
    let elements: Vec<_> = elements.collect();
    if root.children != elements.len() as i64 || elements.iter().any(|one| one.children != 0 || one.repeated)
    {
        return Err(damage("has columns inside columns"));
    }
    Ok(elements.into_iter().map(|element| element.column).collect())
}

fn group(at: &mut Cursor<'_>) -> Result<Group, Damage> {
    let (mut chunks, mut rows) = (Vec::new(), None);
    at.fields(|at, number, _| {
        match number {
            1 => chunks = at.structures(chunk)?,
            3 => rows = usize::try_from(at.integer()?).ok(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    match rows {
        Some(rows) if rows <= LARGEST_GROUP => Ok(Group { rows, chunks }),
        Some(rows) => Err(damage(format!("has a row group of {rows} rows, more than {LARGEST_GROUP}"))),
        None => Err(damage("has a row group without a number of rows")),
    }
}

fn chunk(at: &mut Cursor<'_>) -> Result<Chunk, Damage> {
    let mut chunk = None;
    at.fields(|at, number, _| {
        if number == 3 {
            chunk = Some(chunk_metadata(at)?);
        }
        Ok(number == 3)
    })?;
    chunk.ok_or_else(|| damage("has a column that does not say where it lies"))
}

fn chunk_metadata(at: &mut Cursor<'_>) -> Result<Chunk, Damage> {
    let (mut kind, mut codec, mut values, mut length) = (Kind::Other(-1), -1, -1, -1);
    let (mut data, mut dictionary) = (-1, None);
    at.fields(|at, number, _| {
        match number {
            1 => kind = kind_of(at.integer()?),
            4 => codec = at.integer()?,
            5 => values = at.integer()?,
            7 => length = at.integer()?,
            9 => data = at.integer()?,
            11 => dictionary = Some(at.integer()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let natural = |value: i64| u64::try_from(value).map_err(|_| damage("has a column of no length or place"));
    Ok(Chunk {
        start: natural(dictionary.unwrap_or(data))?,
        length: natural(length)?,
        codec,
        kind,
        values: natural(values)?,
    })
}

fn key_value(at: &mut Cursor<'_>) -> Result<(String, String), Damage> {
    let (mut key, mut value) = (String::new(), String::new());
    at.fields(|at, number, _| {
        match number {
            1 => at.text()?.clone_into(&mut key),
            2 => at.text()?.clone_into(&mut value),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((key, value))
}
