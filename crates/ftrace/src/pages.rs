//! The sub-buffers of one CPU, one after the other, through a small window: plain or in compressed chunks.

use std::ops::Range;

use crate::compress::Codec;
use crate::cursor::Cursor;
use crate::endian::Endian;
use crate::error::Error;
use crate::input::Input;
use crate::page::PageLayout;

/// Read this much at once, or one page if that is more.
const WINDOW: usize = 64 << 10;
/// All lanes' chunks together may take this much; trace-cmd makes chunks of ten pages.
const ALL_CHUNKS: u64 = 256 << 20;

/// What comes next in a CPU's data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NextPage {
    /// A page, possibly cut short, in this range of the window; and where it starts in the (decompressed) data.
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
    codec: Codec,
    endian: Endian,
    /// Most bytes a chunk may decompress to: a few bytes of a broken file must not fill the memory.
    max_size: u64,
}

impl Chunks {
    /// For a buffer of which `lanes` CPUs are read at the same time.
    pub(crate) fn new(codec: Codec, endian: Endian, lanes: usize) -> Self {
        Self { codec, endian, max_size: (ALL_CHUNKS / lanes.max(1) as u64).max(WINDOW as u64) }
    }
}

/// A window that slides over a region.
pub(crate) struct Pages {
    region: Region,
    /// Position in the file.
    at: u64,
    end: u64,
    /// Bytes that the file's own table promises beyond its end.
    missing: u64,
    chunks_left: Option<u32>,
    window: Vec<u8>,
    used: usize,
    /// Offset of the window in the decompressed data.
    window_offset: u64,
}

impl Pages {
    pub(crate) fn new(region: Region) -> Self {
        let promised = region.offset.saturating_add(region.size);
        let end = promised.min(region.input.len()).max(region.offset);
        Self {
            at: region.offset,
            end,
            missing: promised - end,
            chunks_left: None,
            window: Vec::new(),
            used: 0,
            window_offset: 0,
            region,
        }
    }

    pub(crate) fn window(&self) -> &[u8] {
        &self.window
    }

    /// Moves on to the next page; ranges given before are no longer valid.
    pub(crate) fn next_page(&mut self) -> Result<NextPage, Error> {
        if self.used >= self.window.len() {
            self.window_offset += self.window.len() as u64;
            self.used = 0;
            match self.refill()? {
                Some(other) => {
                    self.window.clear();
                    return Ok(other);
                }
                None if self.window.is_empty() => return Ok(self.end_of_data()),
                None => {}
            }
        }
        let start = self.used;
        self.used = (start + self.region.page_size).min(self.window.len());
        Ok(NextPage::Page { range: start..self.used, offset: self.window_offset + start as u64 })
    }

    fn end_of_data(&mut self) -> NextPage {
        match std::mem::take(&mut self.missing) {
            0 => NextPage::End,
            missing => NextPage::Cut { missing },
        }
    }

    fn refill(&mut self) -> Result<Option<NextPage>, Error> {
        match self.region.chunks {
            None => self.refill_plain().map(|()| None),
            Some(chunks) => self.refill_chunk(chunks),
        }
    }

    fn refill_plain(&mut self) -> Result<(), Error> {
        let whole = WINDOW - WINDOW % self.region.page_size.min(WINDOW);
        let wanted = (whole.max(self.region.page_size) as u64).min(self.end - self.at) as usize;
        self.window.resize(wanted, 0);
        let got = self.region.input.read_at(self.at, &mut self.window)?;
        self.window.truncate(got);
        if got < wanted {
            // The file shrank while it was read.
            self.missing += self.end - self.at - got as u64;
            self.end = self.at + got as u64;
        }
        self.at += got as u64;
        Ok(())
    }

    fn refill_chunk(&mut self, chunks: Chunks) -> Result<Option<NextPage>, Error> {
        self.window.clear();
        let offset = self.at;
        match self.read_chunk(chunks) {
            Ok(()) => Ok(None),
            Err(error @ Error::Io { .. }) => Err(error),
            Err(_) if self.missing > 0 => Ok(Some(self.end_of_data())),
            Err(error) => {
                (self.chunks_left, self.at) = (Some(0), self.end);
                Ok(Some(NextPage::BadChunk { offset, reason: error.to_string() }))
            }
        }
    }

    fn read_chunk(&mut self, chunks: Chunks) -> Result<(), Error> {
        let mut cursor = Cursor::new(&self.region.input, chunks.endian, self.at, self.end);
        let left = match self.chunks_left {
            Some(left) => left,
            None => cursor.u32("number of chunks")?,
        };
        self.chunks_left = Some(0);
        if left == 0 {
            self.at = self.end;
            return Ok(());
        }
        let packed_size = u64::from(cursor.u32("compressed size of a chunk")?);
        let full_size = u64::from(cursor.u32("size of a chunk")?);
        if full_size > chunks.max_size || full_size == 0 {
            let expected = format!("1 to {} bytes", chunks.max_size);
            return Err(cursor.malformed(4, "size of a chunk", &full_size, &expected));
        }
        let packed = cursor.bytes(packed_size, "chunk")?;
        self.window = chunks
            .codec
            .decompress(&packed, full_size as usize)
            .map_err(|e| cursor.malformed(packed_size, "chunk", &e, &format!("{full_size} bytes")))?;
        self.at = cursor.position();
        self.chunks_left = Some(left - 1);
        Ok(())
    }
}
