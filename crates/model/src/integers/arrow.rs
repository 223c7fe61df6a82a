//! Arrow's file format (Feather, version 2), some rows of a batch at a time.
//!
//! Source: "Arrow Columnar Format", sections "Serialization and Interprocess Communication" and
//! "IPC File Format"; `File.fbs`, `Message.fbs` and `Schema.fbs`, whose numbers those here are. The
//! file ends with its columns and the places of its batches. Integers of any width, with or without
//! absent values; buffers as they are or packed with Zstandard.

use super::flat_buffer::{Table, Vector};
use super::{EXPECTED, Piece};
use crate::Error;
use crate::columns::pages::unpack_zstd;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// First bytes of a file.
pub(super) const MAGIC: &[u8] = b"ARROW1";
/// The length of the last part, and [`MAGIC`].
const TAIL: u64 = 10;
/// Mark of a message; files of earlier versions have none.
const CONTINUATION: u32 = u32::MAX;
/// Longest description of a batch.
const LONGEST_METADATA: u64 = 1 << 26;
/// Bytes of a place in the list of batches.
const PLACE: usize = 24;
/// Most bytes of a packed buffer once unpacked: memory is bounded by it.
const LARGEST_PACKED: usize = 1 << 30;
const OUTSIDE: &str = "has a batch that lies outside the file";
const UNREADABLE: &str = "has a buffer that cannot be unpacked";
/// Rows read at once.
const AT_ONCE: usize = 1 << 17;

/// The kind of messages that have rows.
const RECORD_BATCH: u8 = 3;
/// The type of integers.
const INT: u8 = 2;
/// Packed with Zstandard.
const ZSTD: u8 = 1;

#[derive(Debug)]
pub(super) struct Reader {
    file: File,
    path: PathBuf,
    length: u64,
    /// Where batches lie: description and buffers; the next one last.
    places: Vec<[Buffer; 2]>,
    columns: Vec<Column>,
    batch: Option<Batch>,
}

#[derive(Debug)]
struct Column {
    name: String,
    /// None for anything else.
    integers: Option<Integers>,
}

#[derive(Debug, Clone, Copy)]
struct Integers {
    bytes: usize,
    signed: bool,
}

/// A batch of which some rows are read.
#[derive(Debug)]
struct Batch {
    rows: usize,
    read: usize,
    packed: bool,
    /// A column each: bits for what is there, values.
    columns: Vec<[Buffer; 2]>,
}

/// A part of the file.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    start: u64,
    length: u64,
}

/// What is wrong with the file: the end of a sentence.
type Damaged<T> = io::Result<Result<T, String>>;

#[expect(clippy::unnecessary_wraps, reason = "stands where a reading that may fail ends")]
fn damaged<T>(what: impl Into<String>) -> Damaged<T> {
    Ok(Err(what.into()))
}

impl Reader {
    pub(super) fn open(file: File, path: &Path) -> Result<Self, Error> {
        let length = file.metadata().map_err(|source| Error::io("read", path, source))?.len();
        let path = path.to_owned();
        let (places, columns) = (Vec::new(), Vec::new());
        let mut reader = Self { file, path, length, places, columns, batch: None };
        let read = reader.footer();
        let (columns, places) = reader.checked(read)?;
        Ok(Self { places, columns, ..reader })
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    pub(super) fn next(&mut self, pieces: &mut [Piece]) -> Result<bool, Error> {
        let read = self.read(pieces);
        self.checked(read)
    }

    fn checked<T>(&self, read: Damaged<T>) -> Result<T, Error> {
        read.map_err(|source| Error::io("read", &self.path, source))?
            .map_err(|what| Error::invalid(self.path.display(), what, EXPECTED))
    }

    /// The columns and the places of the batches, the first last.
    fn footer(&mut self) -> Damaged<(Vec<Column>, Vec<[Buffer; 2]>)> {
        let Some(start) = self.length.checked_sub(TAIL) else { return damaged("ends too early") };
        let mut tail = [0; TAIL as usize];
        self.file.seek(SeekFrom::Start(start))?;
        self.file.read_exact(&mut tail)?;
        let (size, magic) = tail.split_at(4);
        if magic != MAGIC {
            return damaged("does not end as Arrow's files do");
        }
        let size = u64::from(size.try_into().map_or(0, u32::from_le_bytes));
        let Some(start) = start.checked_sub(size).filter(|_| size <= LONGEST_METADATA) else {
            return damaged(format!("has a last part of {size} bytes, more than it is long"));
        };
        let footer = self.bytes(start, size as usize)?;
        let Some(footer) = Table::root(&footer) else { return damaged("has no columns") };
        let columns = match schema_of(footer) {
            Ok(columns) => columns,
            Err(what) => return Ok(Err(what)),
        };
        let Some(list) = footer.vector(3, PLACE) else { return Ok(Ok((columns, Vec::new()))) };
        let place = |at| {
            let [start, metadata, body] = list.place(at)?.map(|one| u64::try_from(one).ok());
            let (start, metadata, body) = (start?, metadata?, body?);
            let middle = start.checked_add(metadata).filter(|_| metadata <= LONGEST_METADATA)?;
            let fits = middle.checked_add(body)? <= self.length;
            fits.then_some([Buffer { start, length: metadata }, Buffer { start: middle, length: body }])
        };
        let places: Option<Vec<_>> = (0..list.length).rev().map(place).collect();
        Ok(places.map(|places| (columns, places)).ok_or_else(|| OUTSIDE.to_owned()))
    }

    fn bytes(&mut self, start: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.seek(SeekFrom::Start(start))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn read(&mut self, pieces: &mut [Piece]) -> Damaged<bool> {
        while self.batch.is_none() {
            let Some([metadata, body]) = self.places.pop() else { return Ok(Ok(false)) };
            let metadata = self.bytes(metadata.start, metadata.length as usize)?;
            match batch_of(&metadata, body, &self.columns) {
                Ok(batch) => self.batch = Some(batch).filter(|batch| batch.rows > 0),
                Err(what) => return Ok(Err(what)),
            }
        }
        let Some(mut batch) = self.batch.take() else { return Ok(Ok(false)) };
        let rows = batch.rows - batch.read;
        // What is packed is unpacked whole.
        let rows = if batch.packed { rows } else { rows.min(AT_ONCE) };
        for ((column, buffers), piece) in self.columns.iter().zip(&batch.columns).zip(pieces) {
            let named = |what: &str| format!("{what} in column {}", column.name.escape_debug());
            let Some(integers) = column.integers else {
                return damaged(named("has something else than integers"));
            };
            let from = batch.read;
            let [there, values] = buffers;
            if there.length > 0 {
                let bits = match part(&self.file, *there, batch.packed, from / 8..(from + rows).div_ceil(8))?
                {
                    Ok(bits) => bits,
                    Err(what) => return damaged(named(what)),
                };
                let bit = |row: usize| bits[row / 8] >> (row % 8) & 1 == 1;
                let present: Vec<bool> = (0..rows).map(|row| bit(from % 8 + row)).collect();
                piece.present = present.contains(&false).then_some(present);
            }
            let width = integers.bytes;
            let bytes = match part(&self.file, *values, batch.packed, from * width..(from + rows) * width)? {
                Ok(bytes) => bytes,
                Err(what) => return damaged(named(what)),
            };
            integers.widen(&bytes, &mut piece.values);
            if !integers.signed && width == 8 && piece.values.iter().any(|&value| value < 0) {
                return damaged(named("has a number above 2^63 - 1"));
            }
        }
        batch.read += rows;
        self.batch = Some(batch).filter(|batch| batch.read < batch.rows);
        Ok(Ok(true))
    }
}

fn schema_of(footer: Table<'_>) -> Result<Vec<Column>, String> {
    let schema = footer.table(1).ok_or("has no columns")?;
    if schema.short(0) != 0 {
        return Err("has its numbers the other way round (big endian)".to_owned());
    }
    let fields = schema.vector(1, 4).ok_or("has no columns")?;
    let column = |at| {
        let field: Table<'_> = fields.table(at)?;
        let name = field.text(0)?.to_owned();
        // A dictionary's numbers are not its values.
        let is_int = field.byte(2) == INT && field.table(4).is_none();
        let integers = field.table(3).filter(|_| is_int).and_then(|kind| {
            let bytes = match kind.int(0) {
                8 => 1,
                16 => 2,
                32 => 4,
                64 => 8,
                _ => return None,
            };
            Some(Integers { bytes, signed: kind.byte(1) != 0 })
        });
        Some(Column { name, integers })
    };
    (0..fields.length)
        .map(column)
        .collect::<Option<_>>()
        .ok_or_else(|| "has a column without a name".to_owned())
}

/// What a message says of its rows, whose buffers lie in `body`.
fn batch_of(metadata: &[u8], body: Buffer, columns: &[Column]) -> Result<Batch, String> {
    if let Some(column) = columns.iter().find(|column| column.integers.is_none()) {
        let name = column.name.escape_debug();
        return Err(format!("has something else than integers in column {name}"));
    }
    // The mark, where there is one, and the length, which the list of places has as well.
    let marked = metadata.starts_with(&CONTINUATION.to_le_bytes());
    let message = metadata.get(if marked { 8 } else { 4 }..).and_then(Table::root);
    let message = message.filter(|message| message.byte(1) == RECORD_BATCH);
    let head = message.and_then(|message| message.table(2)).ok_or("has a batch without rows")?;
    let rows = usize::try_from(head.long(0)).map_err(|_| "has a batch of no length")?;
    let packed = match head.table(3) {
        None => false,
        Some(packed) if packed.byte(0) == ZSTD => true,
        Some(_) => return Err("is packed with LZ4, not with Zstandard, or not at all".to_owned()),
    };
    if packed && rows > LARGEST_PACKED / 8 {
        return Err("has more than 1 GiB packed into one buffer".to_owned());
    }
    let nodes: Option<Vector<'_>> = head.vector(1, 16);
    let buffers: Option<Vector<'_>> = head.vector(2, 16);
    let (Some(nodes), Some(buffers)) = (nodes, buffers) else {
        return Err("has a batch without columns".to_owned());
    };
    if nodes.length != columns.len() || buffers.length != 2 * columns.len() {
        return Err("has a batch of other columns than its own".to_owned());
    }
    let mut found = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let [length, absent] = nodes.pair(at).ok_or("has a batch without columns")?;
        let own = |at: usize| {
            let [start, length] = buffers.pair(at)?.map(|one| u64::try_from(one).ok());
            let (start, length) = (start?, length?);
            let fits = start.checked_add(length)? <= body.length;
            fits.then_some(Buffer { start: body.start + start, length })
        };
        let [there, values] = [2 * at, 2 * at + 1].map(own);
        let (Some(there), Some(values)) = (there, values) else {
            return Err(OUTSIDE.to_owned());
        };
        let width = column.integers.map_or(0, |integers| integers.bytes) as u64;
        let needs = (rows as u64).checked_mul(width);
        let short = !packed
            && (needs.is_none_or(|needs| values.length < needs)
                || (there.length > 0 && there.length < (rows as u64).div_ceil(8)));
        if length != rows as i64 || short || (absent > 0 && there.length == 0) {
            return Err(format!(
                "has a column {} of another length than it says",
                column.name.escape_debug()
            ));
        }
        found.push([there, values]);
    }
    Ok(Batch { rows, read: 0, packed, columns: found })
}

/// Some bytes of a buffer; what is wrong with it.
fn part(
    mut file: &File,
    buffer: Buffer,
    packed: bool,
    wanted: std::ops::Range<usize>,
) -> io::Result<Result<Vec<u8>, &'static str>> {
    if !packed {
        let mut bytes = vec![0; wanted.len()];
        file.seek(SeekFrom::Start(buffer.start + wanted.start as u64))?;
        file.read_exact(&mut bytes)?;
        return Ok(Ok(bytes));
    }
    let mut bytes = vec![0; usize::try_from(buffer.length).unwrap_or(0)];
    file.seek(SeekFrom::Start(buffer.start))?;
    file.read_exact(&mut bytes)?;
    // The length once unpacked, or -1 where the rest is as it is.
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else {
        return Ok(if wanted.is_empty() { Ok(Vec::new()) } else { Err(UNREADABLE) });
    };
    let whole = match i64::from_le_bytes(*head) {
        -1 => rest.to_vec(),
        length if length >= wanted.end as i64 => {
            unpack_zstd(rest, (length as usize).min(LARGEST_PACKED)).unwrap_or_default()
        }
        _ => return Ok(Err(UNREADABLE)),
    };
    Ok(whole.get(wanted).map(<[u8]>::to_vec).ok_or(UNREADABLE))
}

impl Integers {
    /// Appends the numbers that some bytes are, lowest byte first.
    fn widen(self, bytes: &[u8], values: &mut Vec<i64>) {
        match (self.bytes, self.signed) {
            (1, true) => widen(bytes, values, |one| i8::from_le_bytes(one).into()),
            (1, false) => widen(bytes, values, |one| u8::from_le_bytes(one).into()),
            (2, true) => widen(bytes, values, |one| i16::from_le_bytes(one).into()),
            (2, false) => widen(bytes, values, |one| u16::from_le_bytes(one).into()),
            (4, true) => widen(bytes, values, |one| i32::from_le_bytes(one).into()),
            (4, false) => widen(bytes, values, |one| u32::from_le_bytes(one).into()),
            _ => widen(bytes, values, i64::from_le_bytes),
        }
    }
}

fn widen<const N: usize>(bytes: &[u8], values: &mut Vec<i64>, of: impl Fn([u8; N]) -> i64) {
    values.extend(bytes.as_chunks().0.iter().map(|one| of(*one)));
}
