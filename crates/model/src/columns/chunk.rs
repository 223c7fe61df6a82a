//! A column of a row group, as a footer describes it.

/// Type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int32,
    Int64,
    /// One that no file of ours has, by its number.
    Other(i64),
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int32 => f.write_str("INT32"),
            Self::Int64 => f.write_str("INT64"),
            Self::Other(number) => write!(f, "type {number}"),
        }
    }
}

/// The piece of a column in one row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// First byte, counted from the beginning of the file.
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) codec: i64,
    pub(crate) kind: Kind,
    pub(crate) values: u64,
}

impl Chunk {
    /// As [`super::index`] says it: what this program writes is compressed with snappy.
    pub(crate) fn written(piece: &Piece, column: &Column, rows: usize) -> Self {
        let (start, length) = (piece.start, piece.length);
        Self { start, length, codec: SNAPPY, kind: column.kind, values: rows as u64 }
    }
}

/// Rows that a row group has at the most: what other writers make by default. Memory is bounded by
/// it.
pub(crate) const LARGEST_GROUP: usize = 1 << 20;

/// Where a piece of a column lies, and its sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) sum: u32,
}

pub(crate) const SNAPPY: i64 = 1;

/// One column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether values may be missing.
    pub(crate) optional: bool,
    /// What its integers are.
    pub(crate) meaning: Meaning,
}

/// What the integers of a column are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Numbers, perhaps negative.
    #[default]
    Signed,
    /// Numbers from 0 on, in the same bits.
    Unsigned,
    /// Anything else: decimals, times of day, dates.
    Other,
}
