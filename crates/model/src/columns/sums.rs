//! Sums over what is written, so that a changed byte is detected and not measured.
//!
//! Parquet has room for a sum in the head of each page, which the library that writes for us leaves
//! empty. The key [`KEY`] holds, in hexadecimal, a CRC-32 of the footer's table description (names
//! of columns, metadata), then one of every piece of every column, row group by row group. The rest
//! of the footer is places and lengths; an error there makes a sum wrong.

use super::footer::Footer;
use super::{Damage, damage, index};
use crate::columns::chunk::Piece;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::writer::SerializedFileWriter;
use std::fs::File;
use std::io::{self, Write};

/// Key of the sums in the file's metadata.
pub(crate) const KEY: &str = "stillcore.crc32";

/// The sums of the pieces of a file; none where it was written without.
pub(super) fn of(footer: &Footer) -> Result<Vec<u32>, Damage> {
    let Some(text) = footer.text(KEY) else { return Ok(Vec::new()) };
    let sums: Option<Vec<u32>> =
        text.split_whitespace().map(|word| u32::from_str_radix(word, 16).ok()).collect();
    let (&first, rest) = sums
        .as_deref()
        .and_then(<[u32]>::split_first)
        .ok_or_else(|| damage("has sums that are no numbers"))?;
    let names = footer.columns.iter().map(|column| column.name.as_str());
    let texts = footer.texts.iter().filter(|(key, _)| key.starts_with("stillcore") && key != KEY);
    if first != described(names, texts.map(|(key, text)| (key.as_str(), text.as_str()))) {
        return Err(damage("has a footer that is not as it was written"));
    }
    if rest.len() != footer.groups.len() * footer.columns.len() {
        return Err(damage("has sums of another number of columns"));
    }
    Ok(rest.to_vec())
}

/// The sum of what a footer says of the table.
fn described<'t>(
    names: impl Iterator<Item = &'t str>,
    texts: impl Iterator<Item = (&'t str, &'t str)>,
) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for text in names.chain(texts.flat_map(|(key, text)| [key, text])) {
        sum.update(text.as_bytes());
        sum.update(b"\n");
    }
    sum.finalize()
}

/// A file that is being written, with what went into its latest row group.
pub(crate) struct Summed {
    file: File,
    recent: Vec<u8>,
    /// Where those bytes begin.
    from: u64,
    sums: Vec<u32>,
    /// Where the mark of the latest row group begins; 0 for none.
    marked: u64,
}

impl Summed {
    pub(crate) fn new(file: File) -> Self {
        Self { file, recent: Vec::new(), from: 0, sums: Vec::new(), marked: 0 }
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Where the mark of the latest row group begins; 0 for none.
    pub(crate) fn marked(&self) -> u64 {
        self.marked
    }

    /// Sums the columns of a row group that was just written.
    fn group(&mut self, group: &RowGroupMetaData) -> Option<()> {
        for column in group.columns() {
            let (start, length) = column.byte_range();
            let start = usize::try_from(start.checked_sub(self.from)?).ok()?;
            let bytes = self.recent.get(start..start.checked_add(length as usize)?)?;
            self.sums.push(crc32fast::hash(bytes));
        }
        self.from += self.recent.len() as u64;
        self.recent.clear();
        Some(())
    }
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.recent.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Sums the row group that was closed last.
pub(crate) fn add(
    writer: &mut SerializedFileWriter<Summed>,
    group: &RowGroupMetaData,
) -> Result<(), ParquetError> {
    writer.flush()?;
    writer.inner_mut().group(group).ok_or_else(|| ParquetError::General("a row group is nowhere".to_owned()))
}

/// The same, and writes behind the row group where its columns lie ([`index`]).
pub(crate) fn add_marked(
    writer: &mut SerializedFileWriter<Summed>,
    group: &RowGroupMetaData,
) -> Result<(), ParquetError> {
    add(writer, group)?;
    let summed = writer.inner();
    let sums = &summed.sums[summed.sums.len() - group.num_columns()..];
    let pieces = group.columns().iter().zip(sums).map(|(column, &sum)| {
        let (start, length) = column.byte_range();
        Piece { start, length, sum }
    });
    let mark = index::mark(summed.marked, group.num_rows() as u32, &pieces.collect::<Vec<_>>());
    let at = writer.bytes_written() as u64;
    writer.write_all(&mark)?;
    writer.flush()?;
    writer.inner_mut().marked = at;
    Ok(())
}

/// The text to store under [`KEY`].
pub(crate) fn text(writer: &SerializedFileWriter<Summed>, texts: &[(&str, &str)]) -> String {
    let columns = writer.schema_descr().columns();
    let first = described(columns.iter().map(|column| column.name()), texts.iter().copied());
    let sums = std::iter::once(first).chain(writer.inner().sums.iter().copied());
    sums.map(|sum| format!("{sum:08x}")).collect::<Vec<_>>().join(" ")
}
