//! The records and losses of one CPU in the order they happened.

use std::ops::Range;

use crate::ahead::Ahead;
use crate::endian::Endian;
use crate::error::Error;
use crate::formats::Formats;
use crate::page::{Missed, PageFault, PageLayout, Walker};
use crate::pages::Pages;
use crate::region::{NextPage, Region};

/// A place in a CPU's data that could not be read. What stood there is counted as lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The CPU.
    pub cpu: u32,
    /// Where: bytes from the start of the CPU's data, which for a compressed file are decompressed
    /// ones (of a broken chunk: bytes from the start of the file).
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

/// Events of a CPU are missing between two times, in units of the clock.
#[derive(Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) count: Option<u64>,
    pub(crate) after: u64,
    pub(crate) before: u64,
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
    /// Time by which lanes are merged: of the event that stands next; of a loss that of the event
    /// before, because whoever joins events of several CPUs must know of it before joining across
    /// it.
    pub(crate) key: u64,
    /// The bytes of that event in the window.
    record: Range<usize>,
    /// What stands next instead of an event.
    pub(crate) lost: Option<Lost>,
    pub(crate) damage: Vec<Damage>,
    pub(crate) damaged_pages: u64,
}

/// More reports of damage do not help anyone; the number keeps counting.
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
            key: 0,
            record: 0..0,
            lost: None,
            damage: Vec::new(),
            damaged_pages: 0,
        }
    }

    /// The bytes of the event that stands next; `None` where no event does.
    #[inline(always)]
    pub(crate) fn data(&self) -> Option<&[u8]> {
        if self.lost.is_some() {
            return None;
        }
        // The range was checked against the page when it was made, and the window has not moved
        // since.
        self.pages.window().get(self.record.clone())
    }

    /// Advances if the next event has the usual form; else leaves it to [`Lane::advance`].
    #[inline(always)]
    pub(crate) fn advance_short(&mut self) -> bool {
        if self.lost.is_some() {
            return false;
        }
        let next = self.walker.next_short(self.pages.window(), self.page.start, self.needed);
        let Some((timestamp, record)) = next else { return false };
        (self.key, self.record) = (timestamp, record);
        true
    }

    /// Moves to what comes next; `false` at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        self.lost = None;
        loop {
            let page = self.pages.window().get(self.page.clone()).unwrap_or_default();
            match self.walker.next_record(page) {
                Ok(Some(record)) if record.data.len() >= self.needed => {
                    self.key = record.timestamp;
                    self.record = self.page.start + record.data.start..self.page.start + record.data.end;
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

    #[cold]
    fn too_short(&mut self, data: &Range<usize>) -> bool {
        self.walker = Walker::done();
        let fault = PageFault::RecordShort { at: data.start };
        self.lose_rest(self.page_offset, fault.to_string())
    }

    /// Opens the next page; `Some` if a loss comes before its records, or at the end.
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
        self.lost = Some(Lost { count, after: self.key, before: header.timestamp });
        Ok(Some(true))
    }

    /// Unreadable data is reported as a loss of unknown size, so that no total passes for complete.
    #[cold]
    fn lose_rest(&mut self, offset: u64, what: String) -> bool {
        self.damaged_pages += 1;
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(Damage { cpu: self.cpu, offset, what });
        }
        self.lost = Some(Lost { count: None, after: self.key, before: u64::MAX });
        true
    }
}
