//! Decompression of v7 sections and chunks, bounded by the size the file promises.
//!
//! trace-cmd compresses with zlib streams (RFC 1950) or zstd frames (RFC 8878), named in the file's
//! header.

use std::io::Read;

/// The compression named in a v7 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    None,
    Zlib,
    Zstd,
}

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Codec {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" | "" => Some(Self::None),
            "zlib" => Some(Self::Zlib),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Decompresses `data`, which must give exactly `size` bytes; else says what is wrong.
    pub(crate) fn decompress(self, data: &[u8], size: usize) -> Result<Vec<u8>, String> {
        let out = match self {
            Self::None => data.to_vec(),
            Self::Zlib => miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(data, size)
                .map_err(|e| format!("not a zlib stream ({:?})", e.status))?,
            Self::Zstd => zstd(data, size)?,
        };
        if out.len() == size { Ok(out) } else { Err(format!("{} bytes when decompressed", out.len())) }
    }
}

fn zstd(data: &[u8], size: usize) -> Result<Vec<u8>, String> {
    // Some versions of trace-cmd leave out the magic number to save four bytes a chunk.
    let magic: &[u8] = if data.starts_with(&ZSTD_MAGIC) { &[] } else { &ZSTD_MAGIC };
    let source = magic.chain(data);
    let bad = |e: &dyn std::fmt::Display| format!("not a zstd frame ({e})");
    // The window is at most the content, rounded up to the smallest a frame header can say (RFC
    // 8878 §3.1.1.1.2).
    let window = (size as u64).next_power_of_two().max(8 << 20);
    let mut decoder =
        ruzstd::decoding::StreamingDecoder::new_with_max_window_size(source, window).map_err(|e| bad(&e))?;
    let mut out = Vec::with_capacity(size.min(1 << 20));
    // One byte more than promised, so that a longer stream is noticed and not read to its end.
    let limit = (size as u64).saturating_add(1);
    decoder.by_ref().take(limit).read_to_end(&mut out).map_err(|e| bad(&e))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn zlib_round_trip(data in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let packed = miniz_oxide::deflate::compress_to_vec_zlib(&data, 6);
            prop_assert_eq!(Codec::Zlib.decompress(&packed, data.len()), Ok(data.clone()));
            // A promise that does not match the content is an error, in both directions.
            prop_assert!(Codec::Zlib.decompress(&packed, data.len() + 1).is_err());
            if !data.is_empty() {
                prop_assert!(Codec::Zlib.decompress(&packed, data.len() - 1).is_err());
            }
        }

        #[test]
        fn zstd_round_trip_with_and_without_magic(data in proptest::collection::vec(0_u8..4, 0..5000)) {
            let packed = ruzstd::encoding::compress_to_vec(&data[..], ruzstd::encoding::CompressionLevel::Fastest);
            prop_assert!(packed.starts_with(&ZSTD_MAGIC));
            prop_assert_eq!(Codec::Zstd.decompress(&packed, data.len()), Ok(data.clone()));
            prop_assert_eq!(Codec::Zstd.decompress(&packed[4..], data.len()), Ok(data.clone()));
            prop_assert!(Codec::Zstd.decompress(&packed, data.len() + 1).is_err());
        }

        #[test]
        fn noise_is_an_error_not_a_panic(data in proptest::collection::vec(any::<u8>(), 0..300), size in 0_usize..10_000) {
            for codec in [Codec::Zlib, Codec::Zstd] {
                if let Ok(out) = codec.decompress(&data, size) {
                    prop_assert_eq!(out.len(), size);
                }
            }
        }
    }
}
