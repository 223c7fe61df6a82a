//! The pages of one column in one row group: a dictionary perhaps, then values.
//!
//! Source: "Data Pages" and `PageHeader` of Apache Parquet. Pages of the first version, compressed
//! with snappy, as this program writes them, with Zstandard or not.

use super::thrift::Cursor;
use super::values::{Value, by_number, levels, plain};
use super::{Damage, damage};
use crate::columns::chunk::{Chunk, LARGEST_GROUP, SNAPPY};
use std::borrow::Cow;
use std::io::Read;

/// Codec numbers of Parquet.
const UNCOMPRESSED: i64 = 0;
const ZSTD: i64 = 6;

/// Types of pages.
const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
/// Encodings.
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE_DICTIONARY: i64 = 8;
/// Snappy's densest element copies 64 bytes by three.
const SNAPPY_AT_BEST: usize = 64;
/// Most memory for what a page of Zstandard refers back to: more than a page has.
const MOST_WINDOW: u64 = 1 << 27;

/// What a page says of itself.
#[derive(Default)]
struct Header {
    kind: i64,
    unpacked: usize,
    packed: usize,
    values: usize,
    encoding: i64,
}

/// All values of a column in a row group of `rows` rows, at the end of `values`; where they may be
/// missing, `present` says which are there.
pub(super) fn read<T: Value>(
    bytes: &[u8],
    chunk: &Chunk,
    rows: usize,
    mut present: Option<&mut Vec<bool>>,
    values: &mut Vec<T>,
) -> Result<(), Damage> {
    let mut at = Cursor::new(bytes);
    let mut dictionary = Vec::new();
    let mut read = 0;
    while read < rows {
        let header = header(&mut at)?;
        let page = unpack(at.take(header.packed)?, chunk.codec, header.unpacked)?;
        match header.kind {
            DICTIONARY => {
                dictionary.clear();
                plain(&page, header.values, &mut dictionary)?;
            }
            DATA if header.values <= rows - read => {
                read += header.values;
                data(&page, &header, &dictionary, present.as_deref_mut(), values)?;
            }
            DATA => return Err(damage("has a page with more values than there are rows")),
            other => return Err(damage(format!("has a page of type {other}"))),
        }
    }
    Ok(())
}

fn data<T: Value>(
    page: &[u8],
    header: &Header,
    dictionary: &[T],
    present: Option<&mut Vec<bool>>,
    values: &mut Vec<T>,
) -> Result<(), Damage> {
    let (page, count) = match present {
        None => (page, header.values),
        Some(present) => {
            let mut at = Cursor::new(page);
            let length = at.take(4)?.try_into().map_or(0, u32::from_le_bytes);
            let found = levels(at.take(length as usize)?, header.values)?;
            let count = found.iter().filter(|&&there| there).count();
            present.extend(found);
            (at.rest(), count)
        }
    };
    match header.encoding {
        PLAIN => plain(page, count, values),
        // Nothing may stand for no values at all.
        PLAIN_DICTIONARY | RLE_DICTIONARY if count > 0 => by_number(page, dictionary, count, values),
        PLAIN_DICTIONARY | RLE_DICTIONARY => Ok(()),
        other => Err(damage(format!("has a page of encoding {other}"))),
    }
}

fn header(at: &mut Cursor<'_>) -> Result<Header, Damage> {
    let mut header = Header { kind: -1, encoding: -1, ..Header::default() };
    at.fields(|at, number, _| {
        match number {
            1 => header.kind = at.integer()?,
            2 => header.unpacked = size(at)?,
            3 => header.packed = size(at)?,
            // Of a data page and of a dictionary: first the number of values, then the encoding.
            5 | 7 => at.fields(|at, number, _| {
                match number {
                    1 => header.values = size(at)?,
                    2 => header.encoding = at.integer()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if header.values > LARGEST_GROUP {
        return Err(damage(format!("has a page of {} values", header.values)));
    }
    Ok(header)
}

fn size(at: &mut Cursor<'_>) -> Result<usize, Damage> {
    usize::try_from(at.integer()?).map_err(|_| damage("has a page of no size"))
}

/// What Zstandard packed, at most one byte more than `length`; what is wrong with it in words.
pub(crate) fn unpack_zstd(bytes: &[u8], length: usize) -> Result<Vec<u8>, String> {
    let mut decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(bytes, MOST_WINDOW)
        .map_err(|error| format!("has a page that cannot be unpacked: {error}"))?;
    let mut page = Vec::new();
    decoder
        .by_ref()
        .take(length as u64 + 1)
        .read_to_end(&mut page)
        .map_err(|error| format!("has a page that cannot be unpacked: {error}"))?;
    Ok(page)
}

fn unpack(bytes: &[u8], codec: i64, length: usize) -> Result<Cow<'_, [u8]>, Damage> {
    match codec {
        UNCOMPRESSED => Ok(bytes.into()),
        SNAPPY => {
            let claimed = snap::raw::decompress_len(bytes).ok();
            if claimed != Some(length) || length / SNAPPY_AT_BEST > bytes.len() {
                return Err(damage("has a page of another length than it says"));
            }
            let page = snap::raw::Decoder::new().decompress_vec(bytes);
            page.map(Cow::from)
                .map_err(|error| damage(format!("has a page that cannot be unpacked: {error}")))
        }
        ZSTD => {
            let page = unpack_zstd(bytes, length).map_err(damage)?;
            (page.len() == length)
                .then_some(page.into())
                .ok_or_else(|| damage("has a page of another length than it says"))
        }
        other => Err(damage(format!("is packed with codec {other}, not with snappy or Zstandard"))),
    }
}
