//! All events of a buffer in the order of their times: a k-way merge of the CPUs, in O(CPUs)
//! memory.
//!
//! Within a CPU the ring buffer keeps order; between CPUs the trace clock does. Ties go to the
//! lower CPU number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ahead::{AheadThread, Reader};
use crate::endian::Endian;
use crate::error::Error;
use crate::formats::{CommonFields, Formats};
use crate::lane::{Damage, Lane, Lost};
use crate::region::Region;

/// One kernel event. Its fields are in `data`, at the offsets its format gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Time in ns of the trace clock (for a clock of cycles without a conversion in the file:
    /// cycles).
    pub ts_ns: u64,
    /// The CPU whose buffer it was written to.
    pub cpu: u32,
    /// Number of its format ([`Formats::by_id`]).
    pub id: u16,
    /// `common_flags`: the context it was written in, bits `TRACE_FLAG_*`.
    pub flags: u8,
    /// `common_pid`: the task that was current, also in interrupts.
    pub pid: i32,
    /// The whole record, common fields included.
    pub data: &'a [u8],
}

/// The next entry of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// Events of this CPU that are missing from the trace: overwritten before they were read, or
    /// unreadable. It comes where the hole begins in time, before what other CPUs recorded
    /// meanwhile.
    Lost {
        /// The CPU.
        cpu: u32,
        /// How many; `None` where the kernel had no room to say, or the data is damaged.
        count: Option<u64>,
        /// Time of the last event before the hole; 0 if there was none.
        after_ts_ns: u64,
        /// Time of the page behind the hole; `u64::MAX` if it is not known.
        before_ts_ns: u64,
    },
}

/// What comes next: an event, or a place where some are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// [`EventStream::event`].
    Event,
    /// [`EventStream::lost`].
    Lost,
}

/// Conversion of cycles to ns: `cycles * mult >> shift` (the TSC2NSEC option).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscToNs {
    /// Multiplier.
    pub mult: u32,
    /// Shift to the right.
    pub shift: u32,
}

impl TscToNs {
    fn ns(self, cycles: u64) -> u64 {
        let product = u128::from(cycles) * u128::from(self.mult);
        (product >> self.shift.min(127)) as u64
    }
}

/// Behind every lane.
const NOBODY: (u64, usize) = (u64::MAX, usize::MAX);

/// A pass over a buffer's events.
pub struct EventStream {
    lanes: Vec<Lane>,
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// The first of these, time and lane.
    second: (u64, usize),
    /// The current lane's events before this time come before it: events come in runs from one
    /// CPU, and so long nothing else is touched.
    before: u64,
    /// The lane of what is next; [`usize::MAX`] where there is none.
    current: usize,
    started: bool,
    endian: Endian,
    common: CommonFields,
    /// Whether the common fields stand where nearly all kernels have them.
    is_usual: bool,
    tsc: Option<TscToNs>,
    /// Ends behind the lanes, which ask it.
    _ahead: AheadThread,
}

impl EventStream {
    /// Merges the given regions, one a CPU, lowest CPU first.
    pub(crate) fn new(
        formats: &Formats,
        regions: Vec<(u32, Region)>,
        tsc: Option<TscToNs>,
        reader: Reader,
    ) -> Self {
        let (thread, ahead) = AheadThread::start(&regions, reader);
        let lane = |(cpu, region)| Lane::new(cpu, region, formats, ahead.clone());
        let lanes: Vec<Lane> = regions.into_iter().map(lane).collect();
        Self {
            waiting: BinaryHeap::with_capacity(lanes.len()),
            lanes,
            second: NOBODY,
            before: 0,
            current: usize::MAX,
            started: false,
            endian: formats.endian(),
            common: formats.common(),
            is_usual: formats.endian() == Endian::Little && formats.common() == CommonFields::default(),
            tsc,
            _ahead: thread,
        }
    }

    /// The next event or loss, or `None` at the end.
    ///
    /// A cut or damaged trace is no error: what is missing comes as [`Item::Lost`], and
    /// [`EventStream::damage`] says where and why. Errors are those of reading the file.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend its buffer")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        Ok(match self.advance()? {
            None => None,
            Some(Next::Event) => {
                let event = self.event();
                debug_assert!(event.is_some(), "an event that was found is there");
                event.map(Item::Event)
            }
            Some(Next::Lost) => self.lost(),
        })
    }

    /// Moves to the next event or loss; `None` at the end. [`EventStream::event`] and
    /// [`EventStream::lost`] give it, as [`EventStream::next`] does: for those who read millions a
    /// second.
    #[inline(always)]
    pub fn advance(&mut self) -> Result<Option<Next>, Error> {
        let moved = self.lanes.get_mut(self.current).is_some_and(Lane::advance_short);
        if moved && self.lanes.get(self.current).is_some_and(|lane| lane.key < self.before) {
            return Ok(Some(Next::Event));
        }
        self.advance_far(moved)
    }

    /// Moves the current lane, unless it has `moved`, and finds the earliest.
    #[inline(never)]
    fn advance_far(&mut self, moved: bool) -> Result<Option<Next>, Error> {
        match self.lanes.get_mut(self.current) {
            Some(lane) => {
                let more = moved || lane.advance()?;
                let mine = (lane.key, self.current);
                if !more {
                    self.take_first();
                } else if mine > self.second {
                    self.hand_over(mine);
                }
            }
            None if self.started => {}
            None => self.start()?,
        }
        let kind = |lane: &Lane| if lane.lost.is_some() { Next::Lost } else { Next::Event };
        Ok(self.lanes.get(self.current).map(kind))
    }

    /// The event that is next; `None` where there is no event.
    #[inline(always)]
    pub fn event(&self) -> Option<Event<'_>> {
        let lane = self.lanes.get(self.current)?;
        let (data, ts_ns, cpu) = (lane.data()?, self.ns(lane.key), lane.cpu);
        let common = data.first_chunk::<8>().filter(|_| self.is_usual);
        let (id, flags, pid) = match common {
            Some(common) => {
                let common = u64::from_le_bytes(*common);
                (common as u16, (common >> 16) as u8, (common >> 32) as i32)
            }
            None => self.by_fields(data),
        };
        Some(Event { ts_ns, cpu, id, flags, pid, data })
    }

    /// Number of the format, flags and task of an event whose common fields stand elsewhere.
    #[inline(never)]
    fn by_fields(&self, data: &[u8]) -> (u16, u8, i32) {
        let number = |at, size| self.endian.uint_at(data, at, size).unwrap_or(0);
        let (id, flags) = (number(self.common.id, 2) as u16, number(self.common.flags, 1) as u8);
        (id, flags, number(self.common.pid, 4) as u32 as i32)
    }

    /// The events that are missing next, as an [`Item::Lost`]; `None` where none are.
    #[cold]
    pub fn lost(&self) -> Option<Item<'static>> {
        let lane = self.lanes.get(self.current)?;
        let Lost { count, after, before } = lane.lost?;
        let before_ts_ns = if before == u64::MAX { u64::MAX } else { self.ns(before) };
        Some(Item::Lost { cpu: lane.cpu, count, after_ts_ns: self.ns(after), before_ts_ns })
    }

    /// Makes the earliest of the lanes that wait the current one, in place of the one that has
    /// ended.
    #[cold]
    fn take_first(&mut self) {
        self.current = self.waiting.pop().map_or(usize::MAX, |Reverse((_, index))| index);
        self.find_second();
    }

    /// The same, in place of one that waits from here on.
    #[inline(never)]
    fn hand_over(&mut self, mine: (u64, usize)) {
        if let Some(mut first) = self.waiting.peek_mut() {
            self.current = first.0.1;
            *first = Reverse(mine);
        }
        self.find_second();
    }

    #[inline(always)]
    fn find_second(&mut self) {
        self.second = self.waiting.peek().map_or(NOBODY, |Reverse(first)| *first);
        // Where that is not all, the slow way finds it out.
        self.before = self.second.0;
    }

    #[cold]
    fn start(&mut self) -> Result<(), Error> {
        self.started = true;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if lane.advance()? {
                self.waiting.push(Reverse((lane.key, index)));
            }
        }
        self.take_first();
        Ok(())
    }

    #[inline]
    fn ns(&self, stamp: u64) -> u64 {
        match self.tsc {
            None => stamp,
            Some(tsc) => tsc.ns(stamp),
        }
    }

    /// Where the data read so far is damaged (at most 16 places a CPU).
    pub fn damage(&self) -> impl Iterator<Item = &Damage> {
        self.lanes.iter().flat_map(|l| &l.damage)
    }

    /// Number of damaged places met so far.
    pub fn damaged(&self) -> u64 {
        self.lanes.iter().map(|l| l.damaged_pages).sum()
    }

    /// The CPUs of this stream that have data, in rising order.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.lanes.iter().map(|l| l.cpu)
    }
}
