//! The stretch of a file that holds one CPU's pages.

use crate::compress::Codec;
use crate::endian::Endian;
use crate::error::Error;
use crate::input::Input;
use crate::page::PageLayout;
use std::ops::Range;

/// What comes next in a CPU's data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextPage {
    /// A page, possibly cut short, in this range of the window; and where it starts in the
    /// (decompressed) data.
    Page { range: Range<usize>, offset: u64 },
    /// The file promises `missing` more bytes and does not have them.
    Cut { missing: u64 },
    /// A chunk cannot be decompressed; `reason` says why. The rest of the CPU's data is unreadable.
    BadChunk { offset: u64, reason: String },
    /// The end.
    End,
}

/// Where one CPU's data is.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) input: Input,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) page_size: usize,
    /// `None` for plain pages.
    pub(crate) chunks: Option<Chunks>,
}

impl Region {
    /// Whole pages of plain data.
    pub(crate) fn pages(&self) -> u64 {
        let present = self.input.len().saturating_sub(self.offset).min(self.size);
        present / (self.page_size as u64).max(1)
    }

    /// The time of a page of plain data; `None` where it has no header.
    pub(crate) fn page_time(
        &self,
        layout: &PageLayout,
        endian: Endian,
        page: u64,
    ) -> Result<Option<u64>, Error> {
        let mut time = [0; 8];
        let at = self.offset + page * self.page_size as u64 + layout.timestamp_offset as u64;
        let got = self.input.read_at(at, &mut time)?;
        Ok((page < self.pages() && got == time.len()).then(|| endian.u64(time)))
    }

    /// The last page of plain data that begins before a time, as far as their times rise; the
    /// first, where none does.
    pub(crate) fn page_at(&self, layout: &PageLayout, endian: Endian, time: u64) -> Result<u64, Error> {
        let (mut before, mut behind) = (0, self.pages());
        while before + 1 < behind {
            let middle = before + (behind - before) / 2;
            let later = self.page_time(layout, endian, middle)?.is_none_or(|begins| begins >= time);
            if later {
                behind = middle;
            } else {
                before = middle;
            }
        }
        Ok(before)
    }
}

/// How compressed data is packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunks {
    pub(crate) codec: Codec,
    pub(crate) endian: Endian,
    /// Most bytes a chunk may decompress to: a few bytes of a broken file must not fill the memory.
    pub(crate) max_size: u64,
}

impl Chunks {
    /// For a buffer of which `lanes` CPUs are read at the same time.
    pub(crate) fn new(codec: Codec, endian: Endian, lanes: usize) -> Self {
        Self { codec, endian, max_size: (ALL_CHUNKS / lanes.max(1) as u64).max(SMALLEST_CHUNKS) }
    }
}

/// All lanes' chunks together may take this much, twice where they are read ahead; trace-cmd makes
/// chunks of ten pages.
pub(crate) const ALL_CHUNKS: u64 = 128 << 20;

/// But a lane's at least this much.
pub(crate) const SMALLEST_CHUNKS: u64 = 64 << 10;
