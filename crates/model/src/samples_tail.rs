//! The end of a samples file that is still being written: the rows that are in no row group yet.
//!
//! Beside `X.parquet` lies `X.parquet.tail-0` or `-1`, its successor. It begins with what is known
//! of the samples ([`Opening`]), and each half second adds the new rows. Where the writer
//! dies, a reader takes the row groups of the one file and the rows of the other. A tail consists
//! of frames: length (u32), CRC-32 (u32), bytes. The first incomplete frame ends it.

use crate::Error;
use crate::run::ProbeRecord;
use crate::sample::{Sample, SampleMeta};
use crate::store::read_whole;
use crate::usage::Stretch;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How a tail begins.
const BEGIN: &[u8; 16] = b"stillcore tail 1";
/// Bytes of a sample without the columns of its probe.
const ROW: usize = 32;
/// The largest tail that is read: some ten times what a probe that fills a row group at once
/// writes.
const MOST_BYTES: u64 = 256 << 20;

/// What is known of a samples file before its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// What its metadata will be.
    pub meta: SampleMeta,
    /// What the run will say of it, with counts of nothing; of busy loops the stretches before this
    /// tail.
    pub record: ProbeRecord,
    /// The columns of the probe's own.
    pub columns: Vec<String>,
    /// Where the mark of the last row group before this tail begins; 0 for none.
    #[serde(default)]
    pub last: u64,
    /// Rows of all row groups before this tail.
    #[serde(default)]
    pub rows: u64,
}

/// What is added at a time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Handover {
    pub(crate) rows: Vec<Sample>,
    /// The columns of the probe's own, row by row.
    pub(crate) more: Vec<i64>,
    /// Stretches of a busy loop that have ended, CLOCK_MONOTONIC ns.
    pub(crate) slices: Vec<Stretch>,
}

impl Handover {
    /// The values of the probe's own columns in one row.
    pub(crate) fn more_of(&self, row: usize) -> &[i64] {
        let own = self.more.len() / self.rows.len().max(1);
        self.more.get(row * own..(row + 1) * own).unwrap_or_default()
    }
}

/// A tail as it was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tail {
    pub(crate) opening: Opening,
    /// All of it, in one.
    pub(crate) rows: Handover,
}

/// The names that tails of a samples file have.
pub(crate) fn names(samples: &Path) -> [PathBuf; 2] {
    ["0", "1"].map(|k| {
        let mut name = OsString::from(samples);
        name.push(".tail-");
        name.push(k);
        PathBuf::from(name)
    })
}

/// Removes the tails of a samples file, where there are any: the run names its samples now.
pub fn remove(samples: &Path) -> Result<(), Error> {
    for path in names(samples) {
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path, source));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Begins a tail, of which there must be no file yet: nothing is written through what somebody has
/// laid there.
pub(crate) fn begin(path: &Path, opening: &Opening, rows: &Handover) -> Result<File, Error> {
    let failed = |source| Error::io("write", path, source);
    let json = serde_json::to_vec(opening)
        .map_err(|error| Error::invalid(path.display(), error, "a value that JSON can hold"))?;
    let mut bytes = BEGIN.to_vec();
    frame(&json, &mut bytes);
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(&bytes).map_err(failed)?;
    add(&mut file, rows).map_err(failed)?;
    Ok(file)
}

/// Adds rows, in one write.
pub(crate) fn add(file: &mut File, add: &Handover) -> io::Result<()> {
    if add.rows.is_empty() && add.slices.is_empty() {
        return Ok(());
    }
    let bytes = add.slices.len() * 16 + add.rows.len() * ROW + add.more.len() * 8;
    let mut payload = Vec::with_capacity(8 + bytes);
    payload.extend((add.slices.len() as u32).to_le_bytes());
    payload.extend((add.rows.len() as u32).to_le_bytes());
    payload.extend(add.slices.iter().flat_map(|one| <[i64; 2]>::from(*one)).flat_map(i64::to_le_bytes));
    for (at, row) in add.rows.iter().enumerate() {
        payload.extend(row.t_ns.to_le_bytes());
        payload.extend(row.value_ns.to_le_bytes());
        payload.extend(row.seq.to_le_bytes());
        payload.extend(row.missed.to_le_bytes());
        payload.extend(row.flags.to_le_bytes());
        payload.extend(add.more_of(at).iter().flat_map(|value| value.to_le_bytes()));
    }
    let mut bytes = Vec::with_capacity(8 + payload.len());
    frame(&payload, &mut bytes);
    file.write_all(&bytes)
}

fn frame(payload: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(crc32fast::hash(payload).to_le_bytes());
    bytes.extend(payload);
}

/// The tail of a samples file that goes furthest; none where it has none.
pub(crate) fn read(samples: &Path) -> Option<Tail> {
    let is_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    let tails = names(samples).into_iter().filter(is_file);
    let tails = tails.filter_map(|path| parse(&read_whole(&path, MOST_BYTES).ok()?));
    tails.max_by_key(|tail| tail.opening.rows)
}

fn parse(bytes: &[u8]) -> Option<Tail> {
    let mut rest = bytes.strip_prefix(BEGIN)?;
    let opening: Opening = serde_json::from_slice(next(&mut rest)?).ok()?;
    let mut rows = Handover::default();
    while next(&mut rest).and_then(|payload| take(payload, opening.columns.len(), &mut rows)).is_some() {}
    Some(Tail { opening, rows })
}

/// The bytes of the next frame, if it is whole.
fn next<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let (sum, after) = after.split_first_chunk()?;
    let (payload, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    (u32::from_le_bytes(*sum) == crc32fast::hash(payload)).then_some(payload)
}

fn take(payload: &[u8], own: usize, rows: &mut Handover) -> Option<()> {
    let (slices, rest) = payload.split_first_chunk()?;
    let (count, rest) = rest.split_first_chunk()?;
    let (slices, count) = (u32::from_le_bytes(*slices) as usize, u32::from_le_bytes(*count) as usize);
    let (slices, rest) = rest.split_at_checked(slices.checked_mul(16)?)?;
    if rest.len() != count.checked_mul(ROW + 8 * own)? {
        return None;
    }
    let number = |bytes: &[u8], at: usize| Some(i64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let small = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    for slice in slices.chunks_exact(16) {
        rows.slices.push(Stretch { t0_ns: number(slice, 0)?, t1_ns: number(slice, 8)? });
    }
    for row in rest.chunks_exact(ROW + 8 * own) {
        let (t_ns, value_ns, seq) = (number(row, 0)?, number(row, 8)?, number(row, 16)? as u64);
        rows.rows.push(Sample { t_ns, value_ns, seq, missed: small(row, 24)?, flags: small(row, 28)? });
        for at in 0..own {
            rows.more.push(number(row, ROW + 8 * at)?);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
