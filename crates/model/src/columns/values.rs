//! Values of a page: one behind the other, or as numbers into a dictionary, packed into as few bits
//! as they need.
//!
//! Source: "Encodings" of Apache Parquet: PLAIN, RLE_DICTIONARY, and the hybrid of run lengths and
//! packed bits of definition levels.

use super::{Damage, damage};
use crate::columns::chunk::Kind;

/// An integer as columns have them.
pub(crate) trait Value: Copy {
    const KIND: Kind;
    const BYTES: usize;
    /// Values one behind the other, as many as there are whole ones, at the end of `values`.
    fn extend(values: &mut Vec<Self>, bytes: &[u8]);
    /// Of the lower bits of a wider one.
    fn of(value: i64) -> Self;
}

impl Value for i32 {
    const KIND: Kind = Kind::Int32;
    const BYTES: usize = 4;
    // Chunks of a length that the compiler knows become one copy.
    fn extend(values: &mut Vec<Self>, bytes: &[u8]) {
        values.extend(bytes.as_chunks().0.iter().map(|value| Self::from_le_bytes(*value)));
    }
    fn of(value: i64) -> Self {
        value as Self
    }
}

impl Value for i64 {
    const KIND: Kind = Kind::Int64;
    const BYTES: usize = 8;
    fn extend(values: &mut Vec<Self>, bytes: &[u8]) {
        values.extend(bytes.as_chunks().0.iter().map(|value| Self::from_le_bytes(*value)));
    }
    fn of(value: i64) -> Self {
        value
    }
}

/// `count` values one behind the other, at the end of `values`.
pub(super) fn plain<T: Value>(bytes: &[u8], count: usize, values: &mut Vec<T>) -> Result<(), Damage> {
    let wanted = count.checked_mul(T::BYTES).and_then(|length| bytes.get(..length));
    let wanted = wanted.ok_or_else(|| damage("has a page with fewer values than it says"))?;
    T::extend(values, wanted);
    Ok(())
}

/// `count` values by their numbers in a dictionary; the first byte is the bits a number has.
pub(super) fn by_number<T: Value>(
    bytes: &[u8],
    dictionary: &[T],
    count: usize,
    values: &mut Vec<T>,
) -> Result<(), Damage> {
    let (&width, bytes) = bytes.split_first().ok_or_else(|| damage("has an empty page"))?;
    let missing = || damage("has a value that its dictionary lacks");
    hybrid(bytes, u32::from(width), count, |run| {
        match run {
            Run::Same { number, count } => {
                let value = *dictionary.get(number as usize).ok_or_else(missing)?;
                values.resize(values.len() + count, value);
            }
            Run::Packed(numbers) => {
                for &number in numbers {
                    values.push(*dictionary.get(number as usize).ok_or_else(missing)?);
                }
            }
        }
        Ok(())
    })
}

/// `count` levels of 0 or 1: whether a value is there.
pub(super) fn levels(bytes: &[u8], count: usize) -> Result<Vec<bool>, Damage> {
    let mut levels = Vec::with_capacity(count);
    hybrid(bytes, 1, count, |run| {
        match run {
            Run::Same { number, count } => levels.resize(levels.len() + count, number > 0),
            Run::Packed(numbers) => levels.extend(numbers.iter().map(|&number| number > 0)),
        }
        Ok(())
    })?;
    Ok(levels)
}

/// Some numbers in a row.
enum Run<'n> {
    Same { number: u32, count: usize },
    Packed(&'n [u32]),
}

/// Numbers unpacked at once: a multiple of 8, the unit in which they are packed.
const AT_ONCE: usize = 256;

/// Runs of one number, and stretches of numbers packed into `width` bits each, until there were
/// `count` of them.
fn hybrid(
    bytes: &[u8],
    width: u32,
    count: usize,
    mut each: impl FnMut(Run<'_>) -> Result<(), Damage>,
) -> Result<(), Damage> {
    if width > 32 {
        return Err(damage("has numbers of more than 32 bits"));
    }
    let mut at = super::thrift::Cursor::new(bytes);
    let mut numbers = [0; AT_ONCE];
    let mut left = count;
    while left > 0 {
        let head = at.varint()?;
        let length = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        if length == 0 {
            return Err(damage("has a run of nothing"));
        }
        if head & 1 == 0 {
            let number = at.take(width.div_ceil(8) as usize)?;
            let number = number.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
            let count = length.min(left);
            each(Run::Same { number, count })?;
            left -= count;
            continue;
        }
        // Each unit of eight takes as many bytes as a number has bits. The last of all may be cut
        // short where nothing is missing.
        let packed = length.saturating_mul(width as usize).min(at.rest().len());
        let packed = at.take(packed)?;
        let mut stretch = length.saturating_mul(8).min(left);
        if (stretch * width as usize).div_ceil(8) > packed.len() {
            return Err(damage("has a page with fewer values than it says"));
        }
        left -= stretch;
        let mut packed = packed;
        while stretch > 0 {
            let some = stretch.min(AT_ONCE);
            unpack(packed, width, &mut numbers[..some]);
            each(Run::Packed(&numbers[..some]))?;
            packed = packed.get(AT_ONCE / 8 * width as usize..).unwrap_or_default();
            stretch -= some;
        }
    }
    Ok(())
}

/// Numbers of `width` bits, lowest bit first.
fn unpack(bytes: &[u8], width: u32, numbers: &mut [u32]) {
    let mask = (1u64 << width) - 1;
    for (at, number) in numbers.iter_mut().enumerate() {
        let bit = at * width as usize;
        *number = ((word(bytes, bit / 8) >> (bit % 8)) & mask) as u32;
    }
}

/// Eight bytes from a place on; zeros behind the last.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    if let Some(whole) = bytes.get(at..at + 8) {
        whole.try_into().map_or(0, u64::from_le_bytes)
    } else {
        let rest = bytes.get(at..).unwrap_or_default();
        rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_packed_as_the_encoding_says() {
        // The example of "Encodings": 0 to 7 in three bits each.
        let bytes = [0x03, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        let mut found = Vec::new();
        hybrid(&bytes, 3, 8, |run| {
            if let Run::Packed(numbers) = run {
                found.extend_from_slice(numbers);
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(hybrid(&bytes[..3], 3, 8, |_| Ok(())).is_err());
    }

    #[test]
    fn what_the_dictionary_lacks_is_refused() {
        let mut values = Vec::new();
        // Width 8: three times number 1, then number 2.
        let bytes = [8, 0x06, 1, 0x02, 2];
        by_number(&bytes, &[5i64, 6, 7], 4, &mut values).unwrap();
        assert_eq!(values, [6, 6, 6, 7]);
        assert!(by_number(&bytes, &[5i64, 6], 4, &mut values).is_err());
        assert!(by_number(&[40], &[5i64], 1, &mut values).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_give_as_many_values_as_asked_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            count in 0usize..5_000,
        ) {
            let mut values: Vec<i32> = Vec::new();
            if by_number(&bytes, &[1, 2, 3, 4], count, &mut values).is_ok() {
                prop_assert_eq!(values.len(), count);
            }
            if let Ok(levels) = levels(&bytes, count) {
                prop_assert_eq!(levels.len(), count);
            }
        }

        #[test]
        fn packed_numbers_come_back(width in 1u32..33, numbers in proptest::collection::vec(any::<u32>(), 1..600)) {
            let mask = (1u64 << width) - 1;
            let numbers: Vec<u32> = numbers.into_iter().map(|one| (u64::from(one) & mask) as u32).collect();
            let units = numbers.len().div_ceil(8);
            let mut bytes = vec![0u8; units * width as usize];
            for (at, number) in numbers.iter().enumerate() {
                for bit in (0..width as usize).filter(|bit| number >> bit & 1 == 1) {
                    let place = at * width as usize + bit;
                    bytes[place / 8] |= 1 << (place % 8);
                }
            }
            // The head of a stretch of `units` as a number of seven bits a byte.
            let (mut head, mut rest) = (Vec::new(), units << 1 | 1);
            while rest > 0x7f {
                head.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            head.push(rest as u8);
            head.extend(bytes);
            let mut found = Vec::new();
            hybrid(&head, width, numbers.len(), |run| {
                if let Run::Packed(some) = run {
                    found.extend_from_slice(some);
                }
                Ok(())
            }).unwrap();
            prop_assert_eq!(found, numbers);
        }
    }
}
