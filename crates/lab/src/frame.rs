//! The envelope in which a guest sends its results: magic, length, SHA-256, then the tar itself.
//!
//! A guest can die in the middle of a byte, and a serial line can lose some; the digest
//! distinguishes a whole result from half of one. Layout, little endian, 48 bytes of header:
//!
//! | offset | size | what |
//! |---|---|---|
//! | 0 | 8 | `STLLAB\x001` |
//! | 8 | 8 | length of the payload, bytes |
//! | 16 | 32 | SHA-256 of the payload |
//! | 48 | length | payload |
//!
//! Bytes before the magic are skipped: a UART may hold a stray byte from the time before the guest
//! took it over.

use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};

/// First bytes of every frame. The NUL keeps it out of anything that a console prints.
pub const MAGIC: [u8; 8] = *b"STLLAB\x001";
/// Header size, bytes.
pub const HEADER_LEN: usize = 48;
/// How many bytes of noise before the magic are tolerated.
const MAX_NOISE: usize = 4096;

/// Why a stream holds no usable frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Nothing was sent.
    #[error("nothing was sent")]
    Empty,
    /// No magic in the first bytes.
    #[error("no frame found in the first {searched} bytes")]
    NoMagic {
        /// How many bytes were looked at.
        searched: usize,
    },
    /// The stream ends early.
    #[error("the stream ends after {found} of {expected} bytes")]
    Truncated {
        /// Bytes after the magic's start.
        found: u64,
        /// Bytes that header and length promise.
        expected: u64,
    },
    /// The payload is not what was sent.
    #[error("SHA-256 is {found}, expected {expected}")]
    Digest {
        /// Digest of what arrived, hexadecimal.
        found: String,
        /// Digest in the header, hexadecimal.
        expected: String,
    },
}

/// Length and digest of a payload; what a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    /// Payload length, bytes.
    pub len: u64,
    /// SHA-256 of the payload.
    pub sha256: [u8; 32],
}

impl Seal {
    /// The 48 bytes that go before the payload.
    pub fn header(&self) -> [u8; HEADER_LEN] {
        let mut header = [0; HEADER_LEN];
        header[..8].copy_from_slice(&MAGIC);
        header[8..16].copy_from_slice(&self.len.to_le_bytes());
        header[16..].copy_from_slice(&self.sha256);
        header
    }
}

/// A sink that keeps only length and digest: the first of the two passes over a payload that is too
/// large to hold.
#[derive(Default)]
pub struct SealWriter {
    hasher: Sha256,
    len: u64,
}

impl SealWriter {
    /// The seal of everything written so far.
    pub fn finish(self) -> Seal {
        Seal { len: self.len, sha256: self.hasher.finalize().into() }
    }
}

impl Write for SealWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Frames a payload that is held in memory.
pub fn encode(payload: &[u8]) -> Vec<u8> {
    let seal = Seal { len: payload.len() as u64, sha256: Sha256::digest(payload).into() };
    [&seal.header()[..], payload].concat()
}

/// Finds the frame in a captured stream, checks length and digest, and returns the payload within
/// `stream`.
pub fn decode(stream: &[u8]) -> Result<&[u8], FrameError> {
    if stream.is_empty() {
        return Err(FrameError::Empty);
    }
    let searched = stream.len().min(MAX_NOISE + MAGIC.len());
    let start = stream[..searched]
        .windows(MAGIC.len())
        .position(|window| window == MAGIC)
        .ok_or(FrameError::NoMagic { searched })?;
    let frame = &stream[start..];
    let found = frame.len() as u64;
    let Some((header, rest)) = frame.split_first_chunk::<HEADER_LEN>() else {
        return Err(FrameError::Truncated { found, expected: HEADER_LEN as u64 });
    };
    let len = u64::from_le_bytes(std::array::from_fn(|i| header[8 + i]));
    let payload = usize::try_from(len)
        .ok()
        .and_then(|len| rest.get(..len))
        .ok_or(FrameError::Truncated { found, expected: len.saturating_add(HEADER_LEN as u64) })?;
    let digest: [u8; 32] = Sha256::digest(payload).into();
    if digest != header[16..] {
        return Err(FrameError::Digest { found: hex(&digest), expected: hex(&header[16..]) });
    }
    Ok(payload)
}

/// SHA-256 of everything in `reader`, hexadecimal, with the number of bytes.
pub fn digest(reader: &mut impl Read) -> io::Result<(String, u64)> {
    let mut seal = SealWriter::default();
    io::copy(reader, &mut seal)?;
    let seal = seal.finish();
    Ok((hex(&seal.sha256), seal.len))
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digest_is_sha256() {
        // FIPS 180-4, the one-block example "abc".
        let (digest, len) = digest(&mut &b"abc"[..]).unwrap();
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(len, 3);
    }

    #[test]
    fn empty_stream_and_noise_are_distinguished() {
        assert_eq!(decode(b""), Err(FrameError::Empty));
        assert_eq!(decode(b"login: "), Err(FrameError::NoMagic { searched: 7 }));
    }

    #[test]
    fn absurd_length_is_truncation_not_panic() {
        let frame = Seal { len: u64::MAX, sha256: [0; 32] }.header();
        assert_eq!(decode(&frame), Err(FrameError::Truncated { found: 48, expected: u64::MAX }));
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(payload in prop::collection::vec(any::<u8>(), 0..3000), noise in "[a-z ]{0,200}", tail in prop::collection::vec(any::<u8>(), 0..50)) {
            let mut stream = noise.into_bytes();
            stream.extend(encode(&payload));
            stream.extend(tail);
            prop_assert_eq!(decode(&stream).unwrap(), &payload[..]);
        }

        #[test]
        fn streaming_seal_equals_encode(payload in prop::collection::vec(any::<u8>(), 0..3000), cut in 1usize..64) {
            let mut seal = SealWriter::default();
            for chunk in payload.chunks(cut) {
                seal.write_all(chunk).unwrap();
            }
            prop_assert_eq!(&seal.finish().header()[..], &encode(&payload)[..HEADER_LEN]);
        }

        #[test]
        fn every_truncation_is_refused(payload in prop::collection::vec(any::<u8>(), 0..300), keep in 0.0f64..1.0) {
            let frame = encode(&payload);
            let cut = (frame.len() as f64 * keep) as usize;
            prop_assert!(decode(&frame[..cut]).is_err());
        }

        #[test]
        fn every_flipped_bit_is_refused(payload in prop::collection::vec(any::<u8>(), 1..300), at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut frame = encode(&payload);
            let at = at.index(frame.len());
            frame[at] ^= 1 << bit;
            prop_assert!(decode(&frame).is_err());
        }
    }
}
