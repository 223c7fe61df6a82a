//! The header of every message: enough to find its latency from the intended release, and what was
//! lost before it.
//!
//! iRobot's ros2-performance carries a time stamp, a tracking number, a frequency and a size. This
//! header has the publisher's intended release beside the time of sending, so that a late publisher
//! cannot hide its lateness.

/// Bytes of a header on the wire: five words, little-endian.
pub const HEADER_BYTES: usize = 40;

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Number of the call of `send`, from 0, refused messages included.
    pub sequence: u64,
    /// How many messages the link had taken before this one.
    pub carried: u64,
    /// When the publisher was to release it, CLOCK_MONOTONIC ns.
    pub release_ns: i64,
    /// When `send` was called, CLOCK_MONOTONIC ns.
    pub sent_ns: i64,
    /// Bytes of the payload.
    pub bytes: u64,
}

impl Header {
    /// The bytes on the wire.
    #[inline]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let words = [self.sequence, self.carried, self.release_ns as u64, self.sent_ns as u64, self.bytes];
        let mut bytes = [0; HEADER_BYTES];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// Reads the header at the beginning of a message.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes
            .first_chunk::<HEADER_BYTES>()?
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(std::array::from_fn(|at| word[at])));
        let mut next = || words.next().unwrap_or_default();
        Some(Self {
            sequence: next(),
            carried: next(),
            release_ns: next() as i64,
            sent_ns: next() as i64,
            bytes: next(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_reads_back_as_it_was(
            sequence: u64, carried: u64, release_ns: i64, sent_ns: i64, bytes: u64, tail in 0usize..9,
        ) {
            let header = Header { sequence, carried, release_ns, sent_ns, bytes };
            let mut wire = header.to_bytes().to_vec();
            wire.resize(HEADER_BYTES + tail, 7);
            prop_assert_eq!(Header::from_bytes(&wire), Some(header));
            prop_assert_eq!(Header::from_bytes(&wire[..HEADER_BYTES - 1]), None);
        }
    }
}
