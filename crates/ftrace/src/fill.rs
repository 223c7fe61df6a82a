//! What fills the windows over one CPU's data: bytes of the file, or its next compressed chunk.

use crate::cursor::Cursor;
use crate::error::Error;
use crate::region::{Chunks, NextPage, Region};

/// The position in a region.
pub(crate) struct Filler {
    region: Region,
    /// Position in the file.
    at: u64,
    end: u64,
    /// Bytes that the file's own table promises beyond its end.
    missing: u64,
    chunks_left: Option<u32>,
    /// Bytes of plain data to be read at once.
    most: usize,
}

impl Filler {
    /// At the beginning; `most`: bytes of plain data that are read at once, or one page if that is
    /// more.
    pub(crate) fn new(region: Region, most: usize) -> Self {
        let promised = region.offset.saturating_add(region.size);
        let end = promised.min(region.input.len()).max(region.offset);
        Self { at: region.offset, end, missing: promised - end, chunks_left: None, most, region }
    }

    /// Whether nothing is left to be read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.end || self.chunks_left == Some(0)
    }

    /// What comes behind the last page.
    pub(crate) fn end_of_data(&mut self) -> NextPage {
        match std::mem::take(&mut self.missing) {
            0 => NextPage::End,
            missing => NextPage::Cut { missing },
        }
    }

    /// Replaces the content of `window` by the next bytes of the file, or by its next chunk,
    /// decompressed. Leaves `window` empty at the end of the data. Returns `Some` where a chunk
    /// is cut short or damaged: the value gives the reason, and no more can be read.
    pub(crate) fn fill(&mut self, window: &mut Vec<u8>) -> Result<Option<NextPage>, Error> {
        match self.region.chunks {
            None => self.fill_plain(window).map(|()| None),
            Some(chunks) => self.fill_chunk(chunks, window),
        }
    }

    fn fill_plain(&mut self, window: &mut Vec<u8>) -> Result<(), Error> {
        let whole = self.most - self.most % self.region.page_size.min(self.most);
        let wanted = (whole.max(self.region.page_size) as u64).min(self.end - self.at) as usize;
        window.resize(wanted, 0);
        let got = self.region.input.read_at(self.at, window)?;
        window.truncate(got);
        if got < wanted {
            // The file shrank while it was read.
            self.missing += self.end - self.at - got as u64;
            self.end = self.at + got as u64;
        }
        self.at += got as u64;
        Ok(())
    }

    fn fill_chunk(&mut self, chunks: Chunks, window: &mut Vec<u8>) -> Result<Option<NextPage>, Error> {
        window.clear();
        let offset = self.at;
        match self.read_chunk(chunks, window) {
            Ok(()) => Ok(None),
            Err(error @ Error::Io { .. }) => Err(error),
            Err(_) if self.missing > 0 => Ok(Some(self.end_of_data())),
            Err(error) => {
                (self.chunks_left, self.at) = (Some(0), self.end);
                Ok(Some(NextPage::BadChunk { offset, reason: error.to_string() }))
            }
        }
    }

    fn read_chunk(&mut self, chunks: Chunks, window: &mut Vec<u8>) -> Result<(), Error> {
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
        *window = chunks
            .codec
            .decompress(&packed, full_size as usize)
            .map_err(|e| cursor.malformed(packed_size, "chunk", &e, &format!("{full_size} bytes")))?;
        self.at = cursor.position();
        self.chunks_left = Some(left - 1);
        Ok(())
    }
}
