//! One producer, one consumer, no waiting: who may touch which place of the ring, whatever it lies
//! in.
//!
//! Head and tail only grow, and each is written by one side. The producer writes a place before it
//! releases the head behind it; the consumer reads one after it has acquired that head, and gives
//! it back by releasing the tail. After Lamport, "Specifying Concurrent Program Modules" (1983).
//! The tests run it under every order that the memory model allows.

use super::Record;
use std::sync::atomic::Ordering;

/// What a ring lies in.
pub(super) trait Cells {
    /// How many records it holds.
    const PLACES: u64;

    /// How many records were put in.
    fn head(&self, order: Ordering) -> u64;
    /// Sets that: the producer alone.
    fn set_head(&self, head: u64, order: Ordering);
    /// How many records were taken out.
    fn tail(&self, order: Ordering) -> u64;
    /// Sets that: the consumer alone.
    fn set_tail(&self, tail: u64, order: Ordering);
    /// Writes the place of a record, by its number since the beginning: only who owns it by head
    /// and tail.
    fn write(&self, number: u64, record: Record);
    /// Reads it: likewise.
    fn read(&self, number: u64) -> Record;
}

/// Producer: whether so many more records find room.
#[inline(always)]
pub(super) fn has_room(cells: &impl Cells, count: u64) -> bool {
    room(cells, cells.head(Ordering::Relaxed)) >= count
}

#[inline(always)]
fn room<C: Cells>(cells: &C, head: u64) -> u64 {
    C::PLACES - (head - cells.tail(Ordering::Acquire))
}

/// Producer: puts records in, all or none; whether they are.
#[inline(always)]
pub(super) fn put<C: Cells>(cells: &C, records: impl ExactSizeIterator<Item = Record>) -> bool {
    let (head, count) = (cells.head(Ordering::Relaxed), records.len() as u64);
    if room(cells, head) < count {
        return false;
    }
    for (number, record) in (head..).zip(records) {
        cells.write(number, record);
    }
    cells.set_head(head + count, Ordering::Release);
    true
}

/// Consumer: takes the oldest record.
#[inline(always)]
pub(super) fn take(cells: &impl Cells) -> Option<Record> {
    let tail = cells.tail(Ordering::Relaxed);
    if tail == cells.head(Ordering::Acquire) {
        return None;
    }
    let record = cells.read(tail);
    cells.set_tail(tail + 1, Ordering::Release);
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicU64;
    use std::panic::catch_unwind;

    /// A ring of two places; `careless`: which of both counters is set without release.
    #[derive(Default)]
    struct Model {
        head: AtomicU64,
        tail: AtomicU64,
        places: [UnsafeCell<Record>; 2],
        careless: Option<Careless>,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Careless {
        Head,
        Tail,
    }

    impl Model {
        fn order(&self, order: Ordering, of: Careless) -> Ordering {
            if self.careless == Some(of) { Ordering::Relaxed } else { order }
        }
    }

    impl Cells for Model {
        const PLACES: u64 = 2;

        fn head(&self, order: Ordering) -> u64 {
            self.head.load(order)
        }

        fn set_head(&self, head: u64, order: Ordering) {
            self.head.store(head, self.order(order, Careless::Head));
        }

        fn tail(&self, order: Ordering) -> u64 {
            self.tail.load(order)
        }

        fn set_tail(&self, tail: u64, order: Ordering) {
            self.tail.store(tail, self.order(order, Careless::Tail));
        }

        fn write(&self, number: u64, record: Record) {
            // SAFETY: that nobody else is in the place is what the model checks.
            self.places[number as usize % 2].with_mut(|place| unsafe { *place = record });
        }

        fn read(&self, number: u64) -> Record {
            // SAFETY: likewise.
            self.places[number as usize % 2].with(|place| unsafe { *place })
        }
    }

    fn record(stamp: u64) -> Record {
        Record { stamp, packed: stamp * 3 }
    }

    /// Four records through two places, the second and third together.
    fn exchange(careless: Option<Careless>) {
        loom::model(move || {
            let ring = loom::sync::Arc::new(Model { careless, ..Model::default() });
            let producer = loom::thread::spawn({
                let ring = ring.clone();
                move || {
                    for records in [&[1][..], &[2, 3], &[4]] {
                        while !put(&*ring, records.iter().copied().map(record)) {
                            loom::thread::yield_now();
                        }
                    }
                }
            });
            for stamp in 1..=4 {
                let taken = loop {
                    match take(&*ring) {
                        Some(taken) => break taken,
                        None => loom::thread::yield_now(),
                    }
                };
                assert_eq!(taken, record(stamp));
            }
            producer.join().unwrap();
            assert_eq!((take(&*ring), has_room(&*ring, 2)), (None, true));
        });
    }

    #[test]
    fn every_order_that_memory_allows_gives_each_record_once_and_whole() {
        exchange(None);
    }

    #[test]
    fn a_counter_that_is_set_without_release_is_found_out() {
        for careless in [Careless::Head, Careless::Tail] {
            assert!(catch_unwind(|| exchange(Some(careless))).is_err());
        }
    }
}
