//! One sub-buffer of the kernel's ring buffer ↔ its records with timestamps.
//!
//! A sub-buffer (a "page": usually one memory page, but see `buffer_subbuf_size_kb`) starts with a
//! 64-bit timestamp and the committed length (a `long`), whose two highest of 32 bits say that
//! events were lost just before this page (bit 31) and that their number is stored behind the last
//! record (bit 30; there is no room for it on full pages). Each record starts with a 32-bit word: 5
//! bits `type_len`, 27 bits `time_delta` in ns since the record before. Source:
//! include/linux/ring_buffer.h (`enum ring_buffer_type`), kernel/trace/ring_buffer.c
//! (`rb_read_data_buffer`, `rb_fix_abs_ts`, `ring_buffer_read_page`),
//! Documentation/trace/ring-buffer-design.rst.

use std::ops::Range;

use crate::endian::Endian;
use crate::error::Error;
use crate::format::Field;

/// Bits of the commit word that hold the length: the kernel uses 20, and a page of 64 KiB times 128
/// needs 24.
const LENGTH_MASK: u64 = (1 << 27) - 1;
const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;

/// An absolute stamp holds 59 bits; the rest come from the stamp before it.
const STAMP_BITS: u32 = 59;
const STAMP_HIGH: u64 = !((1 << STAMP_BITS) - 1);

/// The smallest and largest sub-buffer accepted: 64 KiB pages times the highest order of 7.
pub(crate) const PAGE_SIZES: std::ops::RangeInclusive<usize> = 64..=(8 << 20);

/// Where the parts of a sub-buffer are: `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// Offset of the 64-bit timestamp.
    pub timestamp_offset: usize,
    /// Offset of the commit word.
    pub commit_offset: usize,
    /// Its size: the `long` of the traced kernel, 4 or 8 bytes.
    pub commit_size: usize,
    /// Offset of the first record.
    pub data_offset: usize,
    /// Room for records: `data_offset + data_size` is the size of a sub-buffer.
    pub data_size: usize,
}

/// Events the kernel overwrote before this page was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// None.
    None,
    /// Some, and there was no room to say how many.
    Unknown,
    /// This many.
    Count(u64),
}

/// The start of a sub-buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHeader {
    /// Time of the page in the units of the trace clock; records count from here.
    pub timestamp: u64,
    /// Bytes of records.
    pub length: usize,
    /// What was lost just before.
    pub missed: Missed,
}

/// Why the rest of a page cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageFault {
    /// The page is shorter than its own header.
    #[error("the page header is cut")]
    HeaderCut,
    /// The commit word claims more than the page holds.
    #[error("{claimed} bytes of records claimed, {room} present")]
    LengthPastEnd {
        /// Bytes according to the commit word.
        claimed: usize,
        /// Bytes behind the header.
        room: usize,
    },
    /// A record reaches over the committed length.
    #[error("record at page byte {at} reaches over the end of the page")]
    RecordPastEnd {
        /// Where it starts.
        at: usize,
    },
    /// A record is too short for the fields all events have.
    #[error("record at page byte {at} is too short for its common fields")]
    RecordShort {
        /// Where its fields start.
        at: usize,
    },
}

impl PageLayout {
    /// The layout without a `header_page`: timestamp, `long`, data, in 4096 bytes.
    pub fn classic(long_size: usize) -> Self {
        let commit_size = if long_size == 4 { 4 } else { 8 };
        let data_offset = 8 + commit_size;
        Self {
            timestamp_offset: 0,
            commit_offset: 8,
            commit_size,
            data_offset,
            data_size: 4096 - data_offset,
        }
    }

    /// Parses the text of `events/header_page`.
    pub fn parse(text: &str, long_size: usize) -> Result<Self, Error> {
        if text.trim().is_empty() {
            return Ok(Self::classic(long_size));
        }
        let mut layout = Self { data_offset: 0, ..Self::classic(long_size) };
        let mut seen = 0;
        for (index, line) in text.lines().enumerate().filter(|(_, l)| l.trim().starts_with("field:")) {
            let fail = |expected| Error::Format {
                event: "header_page".to_owned(),
                line: index + 1,
                text: line.chars().take(120).collect(),
                expected,
            };
            let field =
                Field::parse(line).ok_or_else(|| fail("`field:TYPE NAME; offset:N; size:N; signed:N;`"))?;
            match field.name.as_str() {
                "timestamp" if field.size == 8 => layout.timestamp_offset = field.offset,
                "timestamp" => return Err(fail("a timestamp of 8 bytes")),
                "commit" if matches!(field.size, 4 | 8) => {
                    (layout.commit_offset, layout.commit_size) = (field.offset, field.size);
                }
                "commit" => return Err(fail("a commit word of 4 or 8 bytes")),
                "data" => (layout.data_offset, layout.data_size) = (field.offset, field.size),
                _ => continue,
            }
            seen += 1;
        }
        let header = (layout.timestamp_offset + 8).max(layout.commit_offset + layout.commit_size);
        if seen != 3 || layout.data_offset < header || !PAGE_SIZES.contains(&layout.page_size()) {
            return Err(Error::Format {
                event: "header_page".to_owned(),
                line: 1,
                text: text.lines().next().unwrap_or("").chars().take(120).collect(),
                expected: "the fields timestamp, commit and data, in this order, in 64 bytes to 8 MiB",
            });
        }
        Ok(layout)
    }

    /// Size of a whole sub-buffer.
    pub fn page_size(&self) -> usize {
        self.data_offset + self.data_size
    }

    /// Reads the start of the sub-buffer `page`, which may be cut short.
    pub fn header(&self, page: &[u8], endian: Endian) -> Result<PageHeader, PageFault> {
        let timestamp = endian.uint_at(page, self.timestamp_offset, 8).ok_or(PageFault::HeaderCut)?;
        let commit =
            endian.uint_at(page, self.commit_offset, self.commit_size).ok_or(PageFault::HeaderCut)?;
        let length = (commit & LENGTH_MASK) as usize;
        let room = page.len().checked_sub(self.data_offset).ok_or(PageFault::HeaderCut)?;
        if length > room {
            return Err(PageFault::LengthPastEnd { claimed: length, room });
        }
        let missed = if commit & MISSED_EVENTS == 0 {
            Missed::None
        } else if commit & MISSED_STORED == 0 {
            Missed::Unknown
        } else {
            // The number is a `long` of the kernel, as the commit word.
            endian
                .uint_at(page, self.data_offset + length, self.commit_size)
                .map_or(Missed::Unknown, Missed::Count)
        };
        Ok(PageHeader { timestamp, length, missed })
    }

    /// Marks that events before a sub-buffer are missing, as the kernel does; a number already
    /// there stays. A sub-buffer shorter than its header is left alone.
    pub fn mark_missed(&self, page: &mut [u8], endian: Endian) {
        let Some(commit) = endian.uint_at(page, self.commit_offset, self.commit_size) else { return };
        let commit = commit | MISSED_EVENTS;
        let place = &mut page[self.commit_offset..self.commit_offset + self.commit_size];
        match place.len() {
            4 => place.copy_from_slice(&endian.put_u32(commit as u32)),
            _ => place.copy_from_slice(&endian.put_u64(commit)),
        }
    }
}

/// A record inside a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawRecord {
    /// Time in the units of the trace clock.
    pub timestamp: u64,
    /// The bytes of the page with the event's fields.
    pub data: Range<usize>,
}

/// Walks the records of a page. Holds no borrow, so that it can live beside the buffer it walks.
#[derive(Clone, Debug)]
pub struct Walker {
    at: usize,
    end: usize,
    timestamp: u64,
    endian: Endian,
}

impl Walker {
    /// At the first record of a page, given its header.
    pub fn new(layout: &PageLayout, header: &PageHeader, endian: Endian) -> Self {
        let at = layout.data_offset;
        Self { at, end: at + header.length, timestamp: header.timestamp, endian }
    }

    /// At the end of an empty page.
    pub(crate) fn done() -> Self {
        Self { at: 0, end: 0, timestamp: 0, endian: Endian::Little }
    }

    /// Moves over the next record of a page that begins at a byte of a window, if it has the usual
    /// form: an event of at most 112 bytes, and of `needed` at least. Returns its time and its
    /// bytes in the window. Else this stays, and [`Walker::next_record`] returns the record.
    #[inline(always)]
    pub(crate) fn next_short(
        &mut self,
        window: &[u8],
        page: usize,
        needed: usize,
    ) -> Option<(u64, Range<usize>)> {
        let rest = window.get(page + self.at..page + self.end)?;
        let word = u32::from_le_bytes(*rest.first_chunk::<4>()?);
        let length = 4 * (word & 31) as usize;
        if self.endian != Endian::Little
            || !(4..=112).contains(&length)
            || length < needed
            || length + 4 > rest.len()
        {
            return None;
        }
        let from = page + self.at + 4;
        self.at += 4 + length;
        self.timestamp = self.timestamp.wrapping_add(u64::from(word >> 5));
        Some((self.timestamp, from..from + length))
    }

    /// The next record with an event in `page` (the page this walker was made for), or `None`
    /// behind the last.
    ///
    /// After a fault, the walker is at the end.
    #[inline]
    pub fn next_record(&mut self, page: &[u8]) -> Result<Option<RawRecord>, PageFault> {
        while self.at < self.end {
            let start = self.at;
            let Some(word) = self.word(page, start) else { return self.fault(start) };
            let (type_len, delta) = match self.endian {
                Endian::Little => (word & 31, u64::from(word >> 5)),
                // The compiler of a big-endian kernel fills bit fields from the other end.
                Endian::Big => (word >> 27, u64::from(word & ((1 << 27) - 1))),
            };
            if let 1..=28 = type_len {
                let data = start + 4..start + 4 + 4 * type_len as usize;
                if data.end > self.end {
                    return self.fault(start);
                }
                self.at = data.end;
                self.timestamp = self.timestamp.wrapping_add(delta);
                return Ok(Some(RawRecord { timestamp: self.timestamp, data }));
            }
            if type_len == TYPE_PADDING && delta == 0 {
                // Nothing but padding up to the end of the page.
                self.at = self.end;
                return Ok(None);
            }
            let Some(array) = self.word(page, start + 4) else { return self.fault(start) };
            match type_len {
                TYPE_PADDING => {
                    // A discarded event of `array` bytes. Its delta counts, unless it is the 1 that
                    // stands for "0, but not the end of the page" (rb_event_discard).
                    if delta != 1 {
                        self.timestamp = self.timestamp.wrapping_add(delta);
                    }
                    self.skip(start, (array as usize).saturating_add(4))?;
                }
                TYPE_TIME_EXTEND => {
                    let delta = (u64::from(array) << 27) + delta;
                    self.timestamp = self.timestamp.wrapping_add(delta);
                    self.skip(start, 8)?;
                }
                TYPE_TIME_STAMP => {
                    self.timestamp = absolute((u64::from(array) << 27) | delta, self.timestamp);
                    self.skip(start, 8)?;
                }
                _ => {
                    // type_len 0: the length, which counts itself, is in the second word.
                    let length = array as usize;
                    if length < 4 {
                        return self.fault(start);
                    }
                    self.skip(start, length.saturating_add(4).saturating_add(3) & !3)?;
                    self.timestamp = self.timestamp.wrapping_add(delta);
                    return Ok(Some(RawRecord {
                        timestamp: self.timestamp,
                        data: start + 8..start + 4 + length,
                    }));
                }
            }
        }
        Ok(None)
    }

    #[inline]
    fn word(&self, page: &[u8], at: usize) -> Option<u32> {
        if at + 4 > self.end {
            return None;
        }
        Endian::take(page, at).map(|b| self.endian.u32(b))
    }

    #[inline]
    fn skip(&mut self, start: usize, bytes: usize) -> Result<(), PageFault> {
        // A record takes at least its header, so the walk always ends.
        match start.checked_add(bytes) {
            Some(next) if next <= self.end && bytes >= 4 => {
                self.at = next;
                Ok(())
            }
            _ => self.fault(start).map(|_| ()),
        }
    }

    #[cold]
    fn fault(&mut self, at: usize) -> Result<Option<RawRecord>, PageFault> {
        self.at = self.end;
        Err(PageFault::RecordPastEnd { at })
    }
}

/// A full stamp from the low 59 bits in the record and the stamp before it.
fn absolute(low: u64, before: u64) -> u64 {
    let high = before & STAMP_HIGH;
    let full = low | high;
    // Only clocks that use the high bits can carry into them.
    if high != 0 && full < before { full.wrapping_add(1 << STAMP_BITS) } else { full }
}
