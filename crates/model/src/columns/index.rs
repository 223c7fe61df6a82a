//! A row group says behind itself where its columns lie, so that it can be read before the file has
//! its footer: Parquet lets other bytes stand between row groups, and its readers pass over them.
//!
//! A mark is `stillcore group`, then numbers in little-endian order: where the mark before begins
//! (u64, 0 for none), rows (u32), columns (u32), of each column its first byte (u64), length (u64)
//! and CRC-32 (u32), and last the CRC-32 of all that.

use super::{Chunk, Column, Damage, Group, damage, read_at};
use crate::columns::chunk::Piece;
use std::fs::File;
use std::io;

/// How a mark begins.
const BEGIN: &[u8; 15] = b"stillcore group";
/// What stands before the columns, and what each takes.
const HEAD: usize = BEGIN.len() + 16;
const PER_COLUMN: usize = 20;
const SUM: usize = 4;

/// The bytes of a mark.
pub(crate) fn mark(before: u64, rows: u32, pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = BEGIN.to_vec();
    bytes.extend(before.to_le_bytes());
    bytes.extend(rows.to_le_bytes());
    bytes.extend((pieces.len() as u32).to_le_bytes());
    for piece in pieces {
        bytes.extend(piece.start.to_le_bytes());
        bytes.extend(piece.length.to_le_bytes());
        bytes.extend(piece.sum.to_le_bytes());
    }
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Row groups in their order, and the sums of their pieces.
pub(super) type Groups = (Vec<Group>, Vec<u32>);

/// The row groups up to the one whose mark begins at `last`; 0 for none.
pub(super) fn groups(file: &File, last: u64, columns: &[Column]) -> io::Result<Result<Groups, Damage>> {
    let length = file.metadata()?.len();
    let (mut found, mut at) = (Vec::new(), last);
    let mut bytes = vec![0; HEAD + PER_COLUMN * columns.len() + SUM];
    while at > 0 {
        if at.checked_add(bytes.len() as u64).is_none_or(|end| end > length) {
            return Ok(Err(damage("ends before its row groups do")));
        }
        read_at(file, at, &mut bytes)?;
        let Some((before, rows, pieces)) = parse(&bytes, columns.len()).filter(|mark| mark.0 < at) else {
            return Ok(Err(damage(format!("has no mark of a row group at byte {at}"))));
        };
        if pieces.iter().any(|one| one.start.checked_add(one.length).is_none_or(|end| end > at)) {
            return Ok(Err(damage(format!("has a mark at byte {at} of what lies behind it"))));
        }
        found.push((rows, pieces));
        at = before;
    }
    let (mut groups, mut sums) = (Vec::new(), Vec::new());
    for (rows, pieces) in found.into_iter().rev() {
        let chunk = |(piece, column): (&Piece, &Column)| Chunk::written(piece, column, rows);
        groups.push(Group { rows, chunks: pieces.iter().zip(columns).map(chunk).collect() });
        sums.extend(pieces.iter().map(|piece| piece.sum));
    }
    Ok(Ok((groups, sums)))
}

/// Where the mark before begins, rows, pieces.
fn parse(bytes: &[u8], columns: usize) -> Option<(u64, usize, Vec<Piece>)> {
    let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(SUM)?)?;
    if u32::from_le_bytes(sum.try_into().ok()?) != crc32fast::hash(body) {
        return None;
    }
    let mut rest = body.strip_prefix(BEGIN)?;
    let (before, rows, count) = (number(&mut rest)?, small(&mut rest)?, small(&mut rest)?);
    if count as usize != columns || rows as usize > crate::columns::chunk::LARGEST_GROUP {
        return None;
    }
    let piece = |_| {
        let (start, length) = (number(&mut rest)?, number(&mut rest)?);
        Some(Piece { start, length, sum: small(&mut rest)? })
    };
    let pieces: Option<Vec<Piece>> = (0..columns).map(piece).collect();
    Some((before, rows as usize, pieces?))
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

fn small(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_no_changed_bit_is_believed() {
        let pieces = [Piece { start: 4, length: 10, sum: 7 }, Piece { start: 14, length: 3, sum: u32::MAX }];
        let bytes = mark(9, 5, &pieces);
        assert_eq!(parse(&bytes, 2), Some((9, 5, pieces.to_vec())));
        assert_eq!(parse(&bytes, 1), None);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&changed, 2), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(parse(&bytes[..length], 2), None, "{length} bytes");
        }
    }
}
