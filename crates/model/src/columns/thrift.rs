//! Thrift's compact protocol, as far as Parquet's footers and page headers need it: read from bytes
//! that may be damaged.
//!
//! Source: `thrift-compact-protocol.md` of Apache Thrift. Structures are walked field by field;
//! what a reader does not ask for is skipped by its type. Nothing here allocates by a length that
//! the bytes claim.

use super::{Damage, damage};

/// Structures inside structures; Parquet has five levels.
const DEEPEST: u32 = 16;

/// Types of fields and of elements.
pub(super) mod kind {
    pub(in super::super) const TRUE: u8 = 1;
    pub(in super::super) const FALSE: u8 = 2;
    pub(in super::super) const I8: u8 = 3;
    pub(in super::super) const I16: u8 = 4;
    pub(in super::super) const I64: u8 = 6;
    pub(in super::super) const DOUBLE: u8 = 7;
    pub(in super::super) const BINARY: u8 = 8;
    pub(in super::super) const LIST: u8 = 9;
    pub(in super::super) const SET: u8 = 10;
    pub(in super::super) const MAP: u8 = 11;
    pub(in super::super) const STRUCT: u8 = 12;
}

/// What is left of the bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    /// Bytes not read yet.
    pub(super) fn rest(self) -> &'b [u8] {
        self.bytes
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'b [u8], Damage> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(|| damage("ends too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Damage> {
        Ok(self.take(1)?[0])
    }

    /// An unsigned number of seven bits a byte, lowest first.
    pub(super) fn varint(&mut self) -> Result<u64, Damage> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damage("has a number of more than 64 bits"))
    }

    /// An integer of any width: zigzag, so that small negative numbers are short.
    pub(super) fn integer(&mut self) -> Result<i64, Damage> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn binary(&mut self) -> Result<&'b [u8], Damage> {
        let length = self.length()?;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> Result<&'b str, Damage> {
        std::str::from_utf8(self.binary()?).map_err(|_| damage("has a text that is not UTF-8"))
    }

    fn length(&mut self) -> Result<usize, Damage> {
        usize::try_from(self.varint()?).map_err(|_| damage("has a length beyond memory"))
    }

    /// Calls with every field: its number and its type. A field that `each` leaves unread (`false`)
    /// is skipped.
    pub(super) fn fields(
        &mut self,
        mut each: impl FnMut(&mut Self, i16, u8) -> Result<bool, Damage>,
    ) -> Result<(), Damage> {
        let mut number = 0i16;
        while let Some((next, kind)) = self.field(number)? {
            number = next;
            let before = *self;
            if !each(self, number, kind)? {
                *self = before;
                self.skip(kind, 0)?;
            }
        }
        Ok(())
    }

    /// A list of structures, each read by `one`.
    pub(super) fn structures<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, Damage>,
    ) -> Result<Vec<T>, Damage> {
        let (count, kind) = self.list()?;
        if kind != kind::STRUCT && count > 0 {
            return Err(damage("has a list of something else than structures"));
        }
        (0..count).map(|_| one(self)).collect()
    }

    fn field(&mut self, last: i16) -> Result<Option<(i16, u8)>, Damage> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let number = match head >> 4 {
            0 => i16::try_from(self.integer()?).ok(),
            step => last.checked_add(i16::from(step)),
        };
        Ok(Some((number.ok_or_else(|| damage("has a field of no number"))?, head & 0x0f)))
    }

    fn list(&mut self) -> Result<(usize, u8), Damage> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.length()? } else { usize::from(head >> 4) };
        // Every element takes a byte at least.
        if count > self.bytes.len() {
            return Err(damage("has a list longer than itself"));
        }
        Ok((count, head & 0x0f))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), Damage> {
        if depth > DEEPEST {
            return Err(damage("has structures too deep in each other"));
        }
        match kind {
            kind::TRUE | kind::FALSE => {}
            kind::I8 => drop(self.byte()?),
            kind::I16..=kind::I64 => drop(self.varint()?),
            kind::DOUBLE => drop(self.take(8)?),
            kind::BINARY => drop(self.binary()?),
            kind::LIST | kind::SET => {
                let (count, kind) = self.list()?;
                for _ in 0..count {
                    self.skip_element(kind, depth + 1)?;
                }
            }
            kind::MAP => {
                let count = self.length()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                if count > self.bytes.len() {
                    return Err(damage("has a map longer than itself"));
                }
                for _ in 0..count {
                    self.skip_element(kinds >> 4, depth + 1)?;
                    self.skip_element(kinds & 0x0f, depth + 1)?;
                }
            }
            kind::STRUCT => {
                let mut number = 0;
                while let Some((next, kind)) = self.field(number)? {
                    number = next;
                    self.skip(kind, depth + 1)?;
                }
            }
            _ => return Err(damage("has a field of an unknown type")),
        }
        Ok(())
    }

    /// Truth values are a byte in a list, and part of the head in a structure.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Result<(), Damage> {
        match kind {
            kind::TRUE | kind::FALSE => self.byte().map(drop),
            other => self.skip(other, depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_those_of_the_protocol() {
        let read = |bytes: &[u8]| Cursor::new(bytes).integer();
        assert_eq!((read(&[0]).unwrap(), read(&[1]).unwrap(), read(&[2]).unwrap()), (0, -1, 1));
        // The example of the protocol's description: 300 is 0xac 0x02, as zigzag 150.
        assert_eq!(read(&[0xac, 0x02]).unwrap(), 150);
        let least = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read(&least).unwrap(), i64::MIN);
        assert!(read(&[0x80; 11]).is_err() && read(&[0x80]).is_err());
    }

    #[test]
    fn fields_are_numbered_by_steps_and_the_unknown_are_skipped() {
        // 1: i32 = 1, 2: a structure with a list of two truths, 4: "ab", stop.
        let bytes = [0x15, 0x02, 0x1c, 0x19, 0x21, 1, 2, 0x00, 0x28, 2, b'a', b'b', 0x00, 0xee];
        let (mut one, mut text) = (0, "");
        let mut cursor = Cursor::new(&bytes);
        cursor
            .fields(|at, number, _| {
                match number {
                    1 => one = at.integer()?,
                    4 => text = at.text()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })
            .unwrap();
        assert_eq!((one, text, cursor.rest()), (1, "ab", &[0xee][..]));
    }

    #[test]
    fn structures_without_end_are_refused() {
        let bytes = [0x1c; 4096];
        assert!(Cursor::new(&bytes).fields(|_, _, _| Ok(false)).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Cursor::new(&bytes).fields(|_, _, _| Ok(false));
        }
    }
}
