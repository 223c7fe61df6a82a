//! FlatBuffers, as far as Arrow's messages need them, read from bytes that may be damaged: every
//! access is checked, and nothing is allocated.
//!
//! Source: "FlatBuffers binary format" (flatbuffers.dev). A table begins with the distance back to
//! the list of the places of its fields; what is not in the list has its default.

/// A table in some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'b> {
    bytes: &'b [u8],
    at: usize,
    fields: usize,
}

/// Elements of a vector, each of the same size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vector<'b> {
    bytes: &'b [u8],
    start: usize,
    pub(super) length: usize,
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Where the distance at a place leads.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(u32::from_le_bytes(bytes_at(bytes, at)?) as usize)
}

impl<'b> Table<'b> {
    /// The outermost table.
    pub(super) fn root(bytes: &'b [u8]) -> Option<Self> {
        Self::at(bytes, follow(bytes, 0)?)
    }

    fn at(bytes: &'b [u8], at: usize) -> Option<Self> {
        let back = i32::from_le_bytes(bytes_at(bytes, at)?);
        let fields = usize::try_from(i64::try_from(at).ok()? - i64::from(back)).ok()?;
        Some(Self { bytes, at, fields })
    }

    /// Where a field is, by its number; none where it has its default.
    fn field(&self, number: usize) -> Option<usize> {
        let length = u16::from_le_bytes(bytes_at(self.bytes, self.fields)?);
        let place = 4 + 2 * number;
        if place + 2 > usize::from(length) {
            return None;
        }
        let distance = u16::from_le_bytes(bytes_at(self.bytes, self.fields.checked_add(place)?)?);
        (distance > 0).then(|| self.at + usize::from(distance))
    }

    fn scalar<const N: usize>(&self, number: usize) -> Option<[u8; N]> {
        bytes_at(self.bytes, self.field(number)?)
    }

    /// An integer of 8 bits, 0 by default; likewise the rest.
    pub(super) fn byte(&self, number: usize) -> u8 {
        self.scalar(number).map_or(0, u8::from_le_bytes)
    }

    pub(super) fn short(&self, number: usize) -> i16 {
        self.scalar(number).map_or(0, i16::from_le_bytes)
    }

    pub(super) fn int(&self, number: usize) -> i32 {
        self.scalar(number).map_or(0, i32::from_le_bytes)
    }

    pub(super) fn long(&self, number: usize) -> i64 {
        self.scalar(number).map_or(0, i64::from_le_bytes)
    }

    pub(super) fn table(&self, number: usize) -> Option<Self> {
        Self::at(self.bytes, follow(self.bytes, self.field(number)?)?)
    }

    /// A vector of elements of `size` bytes that lies within the bytes.
    pub(super) fn vector(&self, number: usize, size: usize) -> Option<Vector<'b>> {
        let at = follow(self.bytes, self.field(number)?)?;
        let length = u32::from_le_bytes(bytes_at(self.bytes, at)?) as usize;
        let start = at + 4;
        let end = length.checked_mul(size)?.checked_add(start)?;
        (end <= self.bytes.len()).then_some(Vector { bytes: self.bytes, start, length })
    }

    pub(super) fn text(&self, number: usize) -> Option<&'b str> {
        let bytes = self.vector(number, 1)?;
        std::str::from_utf8(self.bytes.get(bytes.start..bytes.start + bytes.length)?).ok()
    }
}

impl<'b> Vector<'b> {
    /// An element that is a table.
    pub(super) fn table(&self, at: usize) -> Option<Table<'b>> {
        let at = (at < self.length).then_some(self.start + 4 * at)?;
        Table::at(self.bytes, follow(self.bytes, at)?)
    }

    /// An element that is an integer of 64 bits, one of 32 and another one of 64.
    pub(super) fn place(&self, at: usize) -> Option<[i64; 3]> {
        let at = (at < self.length).then_some(self.start + 24 * at)?;
        let middle = i32::from_le_bytes(bytes_at(self.bytes, at + 8)?);
        let [one, other] =
            [bytes_at(self.bytes, at)?, bytes_at(self.bytes, at + 16)?].map(i64::from_le_bytes);
        Some([one, middle.into(), other])
    }

    /// An element that is two integers of 64 bits.
    pub(super) fn pair(&self, at: usize) -> Option<[i64; 2]> {
        let at = (at < self.length).then_some(self.start + 16 * at)?;
        let [one, other] = [bytes_at(self.bytes, at)?, bytes_at(self.bytes, at + 8)?];
        Some([one, other].map(i64::from_le_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_found_by_their_numbers() {
        // A list of three fields (the second is absent), a table with a byte and a text.
        let bytes = [
            14, 0, 0, 0, // the root is at 14
            10, 0, 12, 0, 4, 0, 0, 0, 8, 0, // 10 bytes of list, 12 of table, places
            10, 0, 0, 0, // 10 back
            7, 0, 0, 0, // field 0
            4, 0, 0, 0, // field 2, a distance
            2, 0, 0, 0, b'h', b'i',
        ];
        let table = Table::root(&bytes).unwrap();
        assert_eq!((table.byte(0), table.int(0), table.int(1), table.int(9)), (7, 7, 0, 0));
        assert_eq!(table.text(2), Some("hi"));
        assert_eq!(Table::root(&bytes[..28]).unwrap().text(2), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80), number in 0usize..6) {
            if let Some(table) = Table::root(&bytes) {
                let _ = (table.long(number), table.text(number), table.table(number));
                if let Some(vector) = table.vector(number, 4) {
                    let _ = (vector.table(vector.length.wrapping_sub(1)), vector.pair(0));
                }
            }
        }
    }
}
