//! The records and losses of one CPU in the order they happened.

use std::ops::Range;

use crate::ahead::Ahead;
use crate::endian::Endian;
use crate::error::Error;
use crate::formats::Formats;
use crate::page::{Missed, PageFault, PageLayout, Walker};
use crate::pages::{NextPage, Pages, Region};

/// A place in a CPU's data that could not be read. What stood there is counted as lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The CPU.
    pub cpu: u32,
    /// Where: bytes from the start of the CPU's data, which for a compressed file are decompressed ones (of a broken
    /// chunk: bytes from the start of the file).
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cpu, offset, what } = self;
        write!(f, "CPU {cpu}, byte {offset} of its data: {what}")
    }
}

/// What stands next in a CPU's data.
pub(crate) enum Head {
    /// An event; its bytes are in this range of the window.
    Record(Range<usize>),
    /// Events are missing between the two times (in units of the clock).
    Lost { count: Option<u64>, after: u64, before: u64 },
}

/// One CPU's data with a position.
pub(crate) struct Lane {
    pub(crate) cpu: u32,
    pages: Pages,
    layout: PageLayout,
    endian: Endian,
    needed: usize,
    page: Range<usize>,
    page_offset: u64,
    walker: Walker,
    last: u64,
    /// Time by which lanes are merged.
    pub(crate) key: u64,
    pub(crate) head: Head,
    pub(crate) damage: Vec<Damage>,
    pub(crate) damaged_pages: u64,
}

/// More reports of damage do not help anyone; the number goes on counting.
const MAX_DAMAGE: usize = 16;

impl Lane {
    pub(crate) fn new(cpu: u32, region: Region, formats: &Formats, ahead: Option<Ahead>) -> Self {
        Self {
            cpu,
            pages: Pages::new(region, ahead),
            layout: *formats.page(),
            endian: formats.endian(),
            needed: formats.common().needed(),
            page: 0..0,
            page_offset: 0,
            walker: Walker::done(),
            last: 0,
            key: 0,
            head: Head::Record(0..0),
            damage: Vec::new(),
            damaged_pages: 0,
        }
    }

    /// The bytes of a record given as the head.
    #[inline(always)]
    pub(crate) fn data(&self, range: &Range<usize>) -> &[u8] {
        // The range was checked against the page when it was made, and the window has not moved since.
        self.pages.window().get(self.page.start + range.start..self.page.start + range.end).unwrap_or(&[])
    }

    /// Moves to the next head; `false` at the end.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        let page = self.pages.window().get(self.page.start..self.page.end).unwrap_or(&[]);
        match self.walker.next_short(page) {
            Some((timestamp, data)) if data.len() >= self.needed => {
                self.last = timestamp;
                self.key = timestamp;
                self.head = Head::Record(data);
                Ok(true)
            }
            Some((_, data)) => Ok(self.too_short(&data)),
            None => self.advance_far(),
        }
    }

    #[cold]
    fn too_short(&mut self, data: &Range<usize>) -> bool {
        self.walker = Walker::done();
        let fault = PageFault::RecordShort { at: data.start };
        self.lose_rest(self.page_offset, fault.to_string())
    }

    #[inline(never)]
    fn advance_far(&mut self) -> Result<bool, Error> {
        loop {
            let page = self.pages.window().get(self.page.clone()).unwrap_or(&[]);
            match self.walker.next_record(page) {
                Ok(Some(record)) if record.data.len() >= self.needed => {
                    self.last = record.timestamp;
                    self.key = record.timestamp;
                    self.head = Head::Record(record.data);
                    return Ok(true);
                }
                Ok(Some(record)) => return Ok(self.too_short(&record.data)),
                Err(fault) => return Ok(self.lose_rest(self.page_offset, fault.to_string())),
                Ok(None) => {}
            }
            if let Some(more) = self.next_page()? {
                return Ok(more);
            }
        }
    }

    /// Opens the next page; `Some` if there is a loss to tell before its records, or the end.
    fn next_page(&mut self) -> Result<Option<bool>, Error> {
        self.walker = Walker::done();
        let next = self.pages.next_page()?;
        let (range, offset) = match next {
            NextPage::End => return Ok(Some(false)),
            NextPage::Page { range, offset } => (range, offset),
            NextPage::Cut { missing } => {
                let end = self.page_offset + self.page.len() as u64;
                return Ok(Some(self.lose_rest(end, format!("the file ends {missing} bytes too early"))));
            }
            NextPage::BadChunk { offset, reason } => return Ok(Some(self.lose_rest(offset, reason))),
        };
        (self.page, self.page_offset) = (range, offset);
        let page = self.pages.window().get(self.page.clone()).unwrap_or(&[]);
        let header = match self.layout.header(page, self.endian) {
            Ok(header) => header,
            Err(fault) => return Ok(Some(self.lose_rest(offset, fault.to_string()))),
        };
        self.walker = Walker::new(&self.layout, &header, self.endian);
        let count = match header.missed {
            Missed::None => return Ok(None),
            Missed::Unknown => None,
            Missed::Count(count) => Some(count),
        };
        self.head = Head::Lost { count, after: self.last, before: header.timestamp };
        // Told where it begins: whoever joins events of several CPUs must know of it before it joins across it.
        self.key = self.last;
        Ok(Some(true))
    }

    /// What cannot be read is told as a loss of unknown size, so that no total passes for complete.
    #[cold]
    fn lose_rest(&mut self, offset: u64, what: String) -> bool {
        self.damaged_pages += 1;
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(Damage { cpu: self.cpu, offset, what });
        }
        self.head = Head::Lost { count: None, after: self.last, before: u64::MAX };
        self.key = self.last;
        true
    }
}
