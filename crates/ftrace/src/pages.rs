//! The sub-buffers of one CPU, one after the other, through a small window: plain or in compressed chunks.

use std::ops::Range;

use crate::ahead::{Ahead, Asked, Filled};
use crate::compress::Codec;
use crate::endian::Endian;
use crate::error::Error;
use crate::fill::Filler;
use crate::input::Input;
use crate::page::PageLayout;

/// All lanes' chunks together may take this much, twice where they are read ahead; trace-cmd makes
/// chunks of ten pages.
const ALL_CHUNKS: u64 = 128 << 20;
/// But a lane's at least this much.
const SMALLEST_CHUNKS: u64 = 64 << 10;
/// What is read at once of plain data, where it is read when it is needed.
const WINDOW: usize = 64 << 10;

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

/// Where the next window is.
enum Next {
    /// Nobody fills it yet.
    Here(Filler),
    /// It is being filled, or has been.
    Asked(Asked),
}

/// A window that slides over a region.
pub(crate) struct Pages {
    /// Always there between two calls.
    next: Option<Next>,
    /// Who fills windows before they are needed.
    ahead: Option<Ahead>,
    page_size: usize,
    window: Vec<u8>,
    /// The memory of the window before.
    spare: Vec<u8>,
    used: usize,
    /// Offset of the window in the decompressed data.
    window_offset: u64,
}

impl Pages {
    pub(crate) fn new(region: Region, ahead: Option<Ahead>) -> Self {
        let page_size = region.page_size;
        let most = ahead.as_ref().map_or(WINDOW, Ahead::window);
        let next = Some(Next::Here(Filler::new(region, most)));
        let (window, spare) = (Vec::new(), Vec::new());
        Self { next, ahead, page_size, window, spare, used: 0, window_offset: 0 }
    }

    pub(crate) fn window(&self) -> &[u8] {
        &self.window
    }

    /// Moves on to the next page; ranges given before are no longer valid.
    pub(crate) fn next_page(&mut self) -> Result<NextPage, Error> {
        if self.used >= self.window.len() {
            self.window_offset += self.window.len() as u64;
            self.used = 0;
            if let Some(other) = self.refill()? {
                self.window.clear();
                return Ok(other);
            }
        }
        let start = self.used;
        self.used = (start + self.page_size).min(self.window.len());
        Ok(NextPage::Page { range: start..self.used, offset: self.window_offset + start as u64 })
    }

    /// The next window; `Some`: there is none, and why.
    fn refill(&mut self) -> Result<Option<NextPage>, Error> {
        let (mut filler, outcome) = match self.next.take() {
            None => return Ok(Some(NextPage::End)),
            Some(Next::Here(mut filler)) => {
                let outcome = filler.fill(&mut self.window);
                (filler, outcome)
            }
            Some(Next::Asked(asked)) => {
                let filled = asked.recv().expect("whoever is asked for a window answers");
                let Filled { filler, window, outcome } = filled;
                self.spare = std::mem::replace(&mut self.window, window);
                (filler, outcome)
            }
        };
        let outcome = match outcome {
            Ok(None) if self.window.is_empty() => Ok(Some(filler.end_of_data())),
            other => other,
        };
        let goes_on = matches!(outcome, Ok(None)) && !filler.is_at_end();
        self.next = Some(match self.ahead.as_ref().filter(|_| goes_on) {
            Some(ahead) => match ahead.ask(filler, std::mem::take(&mut self.spare)) {
                Ok(asked) => Next::Asked(asked),
                Err(filler) => Next::Here(filler),
            },
            None => Next::Here(filler),
        });
        outcome
    }
}
