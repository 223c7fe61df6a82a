//! All events of a buffer in the order of their times: a k-way merge of the CPUs, in O(CPUs) memory.
//!
//! Within a CPU the ring buffer keeps order; between CPUs the trace clock does. Ties go to the lower CPU number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ahead::AheadThread;
use crate::endian::Endian;
use crate::error::Error;
use crate::formats::{CommonFields, Formats};
use crate::lane::{Damage, Head, Lane};
use crate::pages::Region;

/// One kernel event. Its fields are in `data`, at the offsets its format gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Time in ns of the trace clock (for a clock of cycles without a conversion in the file: cycles).
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

/// What a trace tells next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// Events of this CPU that are missing from the trace: overwritten before they were read, or unreadable. It comes where the hole
    /// begins in time, before what other CPUs recorded meanwhile.
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
    /// The first of these, time and lane: events come in runs from one CPU, and as long as it stays
    /// the earliest the heap is not touched.
    second: (u64, usize),
    current: Option<usize>,
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
    pub(crate) fn new(formats: &Formats, regions: Vec<(u32, Region)>, tsc: Option<TscToNs>) -> Self {
        let (thread, ahead) = AheadThread::start(&regions);
        let lane = |(cpu, region)| Lane::new(cpu, region, formats, ahead.clone());
        let lanes: Vec<Lane> = regions.into_iter().map(lane).collect();
        Self {
            waiting: BinaryHeap::with_capacity(lanes.len()),
            lanes,
            second: NOBODY,
            current: None,
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
    /// A cut or damaged trace is no error: what is missing comes as [`Item::Lost`], and [`EventStream::damage`] tells
    /// where and why. Errors are those of reading the file.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend its buffer")]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        match self.current.and_then(|index| Some((self.lanes.get_mut(index)?, index))) {
            Some((lane, index)) => {
                let more = lane.advance()?;
                let mine = (lane.key, index);
                if !more {
                    self.take_first();
                } else if mine > self.second {
                    self.hand_over(mine);
                }
            }
            None if self.started => {}
            None => self.start()?,
        }
        let Some(lane) = self.current.and_then(|index| self.lanes.get(index)) else { return Ok(None) };
        Ok(Some(match &lane.head {
            Head::Record(range) => {
                let data = lane.data(range);
                let (ts_ns, cpu) = (self.ns(lane.key), lane.cpu);
                let common = data.first_chunk::<8>().filter(|_| self.is_usual);
                let Some(common) = common else { return Ok(Some(self.by_fields(ts_ns, cpu, data))) };
                let common = u64::from_le_bytes(*common);
                let (id, flags, pid) = (common as u16, (common >> 16) as u8, (common >> 32) as i32);
                Item::Event(Event { ts_ns, cpu, id, flags, pid, data })
            }
            Head::Lost { count, after, before } => self.lost(lane.cpu, *count, [*after, *before]),
        }))
    }

    /// An event whose common fields stand elsewhere.
    #[inline(never)]
    fn by_fields<'d>(&self, ts_ns: u64, cpu: u32, data: &'d [u8]) -> Item<'d> {
        let number = |at, size| self.endian.uint_at(data, at, size).unwrap_or(0);
        Item::Event(Event {
            ts_ns,
            cpu,
            id: number(self.common.id, 2) as u16,
            flags: number(self.common.flags, 1) as u8,
            pid: number(self.common.pid, 4) as u32 as i32,
            data,
        })
    }

    #[cold]
    fn lost(&self, cpu: u32, count: Option<u64>, [after, before]: [u64; 2]) -> Item<'_> {
        let before_ts_ns = if before == u64::MAX { u64::MAX } else { self.ns(before) };
        Item::Lost { cpu, count, after_ts_ns: self.ns(after), before_ts_ns }
    }

    /// Makes the earliest of the lanes that wait the current one, in place of the one that has
    /// ended.
    #[cold]
    fn take_first(&mut self) {
        self.current = self.waiting.pop().map(|Reverse((_, index))| index);
        self.find_second();
    }

    /// The same, in place of one that waits from here on.
    #[inline(never)]
    fn hand_over(&mut self, mine: (u64, usize)) {
        if let Some(mut first) = self.waiting.peek_mut() {
            self.current = Some(first.0.1);
            *first = Reverse(mine);
        }
        self.find_second();
    }

    #[inline(always)]
    fn find_second(&mut self) {
        self.second = self.waiting.peek().map_or(NOBODY, |Reverse(first)| *first);
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
