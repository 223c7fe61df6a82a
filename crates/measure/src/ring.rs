//! The ring between a measuring process and the process that drains it: single producer, single
//! consumer, shared memory.
//!
//! The producer never waits: a full ring loses the record and counts it. A record is 16 bytes, so a
//! cache line holds four; head and tail live on lines of their own, because each is written by one
//! side only.

mod queue;

use queue::Cells;
use rustix::fd::AsFd;
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use sys::memory::Mapping;

/// Records that a ring holds: at 5 kHz, thirteen seconds of a drain that does not run.
pub const CAPACITY: usize = 1 << 16;
const HEADER_BYTES: usize = 4096;
/// Size of the shared file.
pub const BYTES: usize = HEADER_BYTES + CAPACITY * size_of::<Record>();

/// Each probe defines the meaning of the words of its records; see [`Packed`] for the common form.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// A time stamp in the probe's clock.
    pub stamp: u64,
    /// A [`Packed`] value.
    pub packed: u64,
}

/// A value of 44 bits, 4 bits of kind and 16 bits that count the records lost just before this one,
/// in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed {
    /// The value; larger ones are stored as the largest that fits.
    pub value: u64,
    /// What the record is, 0..16.
    pub kind: u8,
    /// Records lost between the previous record and this one; 65535 means at least so many.
    pub lost: u16,
}

const VALUE_BITS: u32 = 44;

impl Packed {
    /// The word.
    #[inline(always)]
    pub fn word(self) -> u64 {
        self.value.min((1 << VALUE_BITS) - 1) << 20 | u64::from(self.kind & 15) << 16 | u64::from(self.lost)
    }

    /// The parts of a word.
    pub fn from_word(word: u64) -> Self {
        Self { value: word >> 20, kind: (word >> 16 & 15) as u8, lost: word as u16 }
    }
}

/// A value on a cache line (pair) of its own.
#[repr(C, align(128))]
#[derive(Default)]
struct Line<T>(T);

#[repr(C)]
struct Header {
    head: Line<AtomicU64>,
    tail: Line<AtomicU64>,
    lost: Line<AtomicU64>,
    /// The drain's messages to the probe; written once or twice per window.
    control: Line<Control>,
    /// The probe's state, for the drain.
    state: Line<AtomicU32>,
}

#[repr(C)]
struct Control {
    start_ns: AtomicI64,
    stop: AtomicU32,
    /// 0 where there is none.
    stop_over_ns: AtomicI64,
}

/// Where a probe is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u32)]
pub enum State {
    /// Setting up.
    Starting = 0,
    /// Set up, waiting for the start time.
    Ready = 1,
    /// The window is over; nothing more will be stored.
    Done = 2,
}

/// One side's view of the shared ring.
pub struct Ring {
    mapping: Mapping,
    /// Records lost since the last one stored; only the producer's copy is used.
    lost_since: u64,
}

impl Ring {
    /// Maps the ring in a file of [`BYTES`] bytes; a fresh file is an empty ring.
    pub fn map(file: &impl AsFd) -> io::Result<Self> {
        const { assert!(size_of::<Header>() <= HEADER_BYTES) };
        Ok(Self { mapping: Mapping::new(file, BYTES)?, lost_since: 0 })
    }

    #[expect(clippy::cast_ptr_alignment, reason = "a mapping starts on a page")]
    fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned, longer than a Header, all-zero when fresh (valid for
        // atomics), and lives as long as `self`; both sides touch it only through atomics.
        unsafe { &*self.mapping.start().as_ptr().cast::<Header>() }
    }

    /// The slot for a position; only its present owner (by head and tail) may touch it.
    #[inline(always)]
    #[expect(clippy::cast_ptr_alignment, reason = "slots begin one page behind the start of a page")]
    fn slot(&self, position: u64) -> *mut Record {
        // SAFETY: the index is below CAPACITY, so the slot lies inside the mapping.
        unsafe {
            self.mapping.start().as_ptr().add(HEADER_BYTES).cast::<Record>().add(position as usize % CAPACITY)
        }
    }

    /// Producer: stores a record, or counts it as lost. Returns whether it was stored.
    #[inline(always)]
    pub fn push(&mut self, stamp: u64, value: u64, kind: u8) -> bool {
        self.push_all(&[(stamp, value, kind)])
    }

    /// Producer: stores a record if there is room; if not, nothing is lost and the caller tries
    /// again.
    pub fn push_or_wait(&mut self, stamp: u64, value: u64, kind: u8) -> bool {
        queue::has_room(self, 1) && self.push(stamp, value, kind)
    }

    /// Producer: stores the records of one sample, all of them or none. A sample that finds no room
    /// is lost as one, and the first record of the next that is stored says so. Returns whether
    /// they were stored.
    #[inline(always)]
    pub fn push_all(&mut self, records: &[(u64, u64, u8)]) -> bool {
        let mut lost = self.lost_since.min(u64::from(u16::MAX)) as u16;
        let records = records.iter().map(|&(stamp, value, kind)| {
            let lost = std::mem::take(&mut lost);
            Record { stamp, packed: Packed { value, kind, lost }.word() }
        });
        let stored = queue::put(self, records);
        if stored {
            self.lost_since = 0;
        } else {
            self.header().lost.0.fetch_add(1, Ordering::Relaxed);
            self.lost_since += 1;
        }
        stored
    }

    /// Consumer: takes the oldest record.
    pub fn pop(&mut self) -> Option<Record> {
        queue::take(self)
    }

    /// Consumer: records that wait to be taken.
    pub fn filled(&self) -> u64 {
        let header = self.header();
        header.head.0.load(Ordering::Acquire) - header.tail.0.load(Ordering::Relaxed)
    }

    /// Records lost to a full ring so far.
    pub fn lost(&self) -> u64 {
        self.header().lost.0.load(Ordering::Relaxed)
    }

    /// Producer, before it says that it is ready: forgets what a rehearsal has stored. The drain
    /// looks only after that.
    pub fn rewind(&mut self) {
        let header = self.header();
        [&header.head.0, &header.tail.0, &header.lost.0]
            .iter()
            .for_each(|counter| counter.store(0, Ordering::Release));
        self.lost_since = 0;
    }

    /// Producer: sets its state, for the drain.
    pub fn set_state(&self, state: State) {
        self.header().state.0.store(state as u32, Ordering::Release);
    }

    /// Consumer: whether the producer has got there.
    pub fn reached(&self, state: State) -> bool {
        self.header().state.0.load(Ordering::Acquire) >= state as u32
    }

    /// Consumer: sets the CLOCK_MONOTONIC time at which the window starts.
    pub fn start_at(&self, start_ns: i64) {
        self.header().control.0.start_ns.store(start_ns, Ordering::Release);
    }

    /// Producer: the start, once it is set.
    pub fn start_ns(&self) -> Option<i64> {
        let start = self.header().control.0.start_ns.load(Ordering::Acquire);
        (start != 0).then_some(start)
    }

    /// Consumer, before the start: sets a value that ends the measurement, ns.
    pub fn stop_over(&self, limit_ns: i64) {
        self.header().control.0.stop_over_ns.store(limit_ns, Ordering::Release);
    }

    /// Producer: a sample of that value, or of more, ends the measurement; none is as large where
    /// the drain set no limit.
    pub fn stop_over_ns(&self) -> i64 {
        match self.header().control.0.stop_over_ns.load(Ordering::Acquire) {
            0 => i64::MAX,
            limit_ns => limit_ns,
        }
    }

    /// Either side: asks the producer to end early.
    pub fn stop(&self) {
        self.header().control.0.stop.store(1, Ordering::Relaxed);
    }

    /// Producer: whether it was asked to end.
    #[inline(always)]
    pub fn stopped(&self) -> bool {
        self.header().control.0.stop.load(Ordering::Relaxed) != 0
    }
}

impl Cells for Ring {
    const PLACES: u64 = CAPACITY as u64;

    #[inline(always)]
    fn head(&self, order: Ordering) -> u64 {
        self.header().head.0.load(order)
    }

    #[inline(always)]
    fn set_head(&self, head: u64, order: Ordering) {
        self.header().head.0.store(head, order);
    }

    #[inline(always)]
    fn tail(&self, order: Ordering) -> u64 {
        self.header().tail.0.load(order)
    }

    #[inline(always)]
    fn set_tail(&self, tail: u64, order: Ordering) {
        self.header().tail.0.store(tail, order);
    }

    #[inline(always)]
    fn write(&self, number: u64, record: Record) {
        // SAFETY: the slot lies in the mapping; the queue calls this for places that are the
        // producer's alone.
        unsafe { self.slot(number).write(record) }
    }

    #[inline(always)]
    fn read(&self, number: u64) -> Record {
        // SAFETY: likewise, for places that are the consumer's alone.
        unsafe { self.slot(number).read() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sys::memory::shared_file;

    fn two_sides() -> (Ring, Ring) {
        let file = shared_file("ring-test", BYTES).unwrap();
        (Ring::map(&file).unwrap(), Ring::map(&file).unwrap())
    }

    #[test]
    fn records_arrive_in_order_across_threads() {
        let (mut producer, mut consumer) = two_sides();
        let count = CAPACITY as u64 * 3;
        let thread = std::thread::spawn(move || {
            for stamp in 0..count {
                while !producer.push(stamp, stamp * 2, 1) {
                    std::thread::yield_now();
                }
            }
        });
        let mut expected = 0;
        while expected < count {
            if let Some(record) = consumer.pop() {
                assert_eq!(record.stamp, expected);
                assert_eq!(Packed::from_word(record.packed).value, expected * 2);
                expected += 1;
            }
        }
        thread.join().unwrap();
        assert_eq!(consumer.pop(), None);
    }

    #[test]
    fn a_full_ring_loses_and_counts() {
        let (mut producer, mut consumer) = two_sides();
        (0..CAPACITY as u64).for_each(|stamp| assert!(producer.push(stamp, 0, 0)));
        (0..5).for_each(|_| assert!(!producer.push(9, 9, 0)));
        assert_eq!(consumer.lost(), 5);
        consumer.pop().unwrap();
        assert!(producer.push(77, 0, 0));
        let last = std::iter::from_fn(|| consumer.pop()).last().unwrap();
        assert_eq!((last.stamp, Packed::from_word(last.packed).lost), (77, 5));
    }

    #[test]
    fn the_records_of_a_sample_are_stored_all_or_none() {
        let (mut producer, mut consumer) = two_sides();
        let sample = |stamp| [(stamp, 1, 0), (stamp, 2, 1), (stamp, 3, 2)];
        let stored = (0..CAPACITY as u64).take_while(|stamp| producer.push_all(&sample(*stamp))).count();
        assert_eq!(stored, CAPACITY / 3);
        assert!(!producer.push_all(&sample(0)));
        assert_eq!(consumer.lost(), 2);
        std::iter::from_fn(|| consumer.pop()).take(3).for_each(drop);
        assert!(producer.push_all(&sample(7)));
        let read: Vec<_> = std::iter::from_fn(|| consumer.pop()).collect();
        let last: Vec<_> = read[read.len() - 3..].iter().map(|one| Packed::from_word(one.packed)).collect();
        assert_eq!(
            last.iter().map(|one| (one.value, one.kind, one.lost)).collect::<Vec<_>>(),
            [(1, 0, 2), (2, 1, 0), (3, 2, 0)]
        );
        assert_eq!(read.len(), CAPACITY / 3 * 3);
    }

    #[test]
    fn a_rehearsal_leaves_nothing() {
        let (mut producer, mut consumer) = two_sides();
        let stored = (0..CAPACITY as u64 + 3).filter(|stamp| producer.push(*stamp, 0, 0)).count();
        assert_eq!(stored, CAPACITY);
        producer.rewind();
        assert_eq!((consumer.pop(), consumer.lost()), (None, 0));
        assert!(producer.push(5, 0, 0));
        let first = consumer.pop().unwrap();
        assert_eq!((first.stamp, Packed::from_word(first.packed).lost), (5, 0));
    }

    proptest! {
        #[test]
        fn packing_keeps_every_part(value in 0u64..1 << VALUE_BITS, kind in 0u8..16, lost: u16) {
            let packed = Packed { value, kind, lost };
            prop_assert_eq!(Packed::from_word(packed.word()), packed);
        }

        #[test]
        fn large_values_saturate(value in 1u64 << VALUE_BITS.., lost: u16) {
            let read = Packed::from_word(Packed { value, kind: 3, lost }.word());
            prop_assert_eq!((read.value, read.kind, read.lost), ((1 << VALUE_BITS) - 1, 3, lost));
        }
    }
}
