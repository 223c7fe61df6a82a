//! A ring of slot numbers in shared memory: one producer, one consumer, and a producer that may
//! take out the oldest.
//!
//! Head and tail only grow. Both sides move the tail, each by an exchange from the value it saw:
//! whoever succeeds owns the slot whose number stood there, so a message is taken once or replaced
//! once, and neither side waits for the other. The producer needs one exchange at most (if it
//! fails, the consumer has just made room); the consumer repeats only when the producer has
//! replaced what it was about to take. Entries are written with release and read with acquire: a
//! consumer that reads an entry of the next round also sees that the tail has moved, and its
//! exchange fails. After Lamport, "Specifying Concurrent Program Modules" (1983), with a second
//! owner of the tail.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use sys::memory::Mapping;

/// A word of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// How many numbers were put in.
    Head,
    /// How many were taken out or replaced.
    Tail,
    /// The number at an index.
    Entry(usize),
}

/// Where the words of a ring are.
pub(super) trait Words {
    /// Reads, with acquire.
    fn load(&self, place: Place) -> u64;
    /// Writes, with release.
    fn store(&self, place: Place, value: u64);
    /// Writes `to` if `from` stands there; whether it did.
    fn exchange(&self, place: Place, from: u64, to: u64) -> bool;
}

/// What came of putting a number in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It is in.
    Taken,
    /// It is in, and this one is out.
    Instead(u64),
    /// There was no room.
    Full,
}

/// One side's view of a ring.
#[derive(Debug, Clone)]
pub(super) struct Ring<W> {
    words: W,
    depth: u64,
}

impl<W: Words> Ring<W> {
    /// A ring of `depth` numbers; all words zero is an empty one.
    pub(super) fn new(words: W, depth: usize) -> Self {
        Self { words, depth: depth as u64 }
    }

    fn entry(&self, position: u64) -> Place {
        Place::Entry((position % self.depth) as usize)
    }

    /// Producer: puts a number at the head.
    #[inline]
    pub(super) fn put(&self, number: u64, replace: bool) -> Put {
        let head = self.words.load(Place::Head);
        let tail = self.words.load(Place::Tail);
        let mut put = Put::Taken;
        if head - tail >= self.depth {
            if !replace {
                return Put::Full;
            }
            let oldest = self.words.load(self.entry(tail));
            if self.words.exchange(Place::Tail, tail, tail + 1) {
                put = Put::Instead(oldest);
            }
        }
        self.words.store(self.entry(head), number);
        self.words.store(Place::Head, head + 1);
        put
    }

    /// Consumer: takes the oldest number.
    #[inline]
    pub(super) fn take(&self) -> Option<u64> {
        loop {
            let tail = self.words.load(Place::Tail);
            if tail == self.words.load(Place::Head) {
                return None;
            }
            let number = self.words.load(self.entry(tail));
            if self.words.exchange(Place::Tail, tail, tail + 1) {
                return Some(number);
            }
        }
    }
}

/// Words of a ring in a link's shared memory, head and tail on cache lines of their own.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    memory: Arc<Mapping>,
    offset: usize,
    depth: usize,
}

/// Bytes that the head takes, and the tail.
const LINE: usize = 128;

impl Shared {
    /// Bytes of a ring in a mapping.
    pub(super) fn bytes(depth: usize) -> usize {
        2 * LINE + depth * 8
    }

    pub(super) fn new(memory: Arc<Mapping>, offset: usize, depth: usize) -> Self {
        Self { memory, offset, depth }
    }

    #[inline]
    fn word(&self, place: Place) -> &std::sync::atomic::AtomicU64 {
        let words = self.memory.words(self.offset, Self::bytes(self.depth) / 8);
        match place {
            Place::Head => &words[0],
            Place::Tail => &words[LINE / 8],
            Place::Entry(index) => &words[2 * LINE / 8 + index],
        }
    }
}

impl Words for Shared {
    #[inline]
    fn load(&self, place: Place) -> u64 {
        self.word(place).load(Ordering::Acquire)
    }

    #[inline]
    fn store(&self, place: Place, value: u64) {
        self.word(place).store(value, Ordering::Release);
    }

    #[inline]
    fn exchange(&self, place: Place, from: u64, to: u64) -> bool {
        self.word(place).compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc as LoomArc;
    use loom::sync::atomic::AtomicU64;
    use std::panic::catch_unwind;

    /// A ring of two, and what each number is of; `careless`: nothing is released or acquired.
    struct Model {
        words: LoomArc<[AtomicU64; 4]>,
        careless: bool,
    }

    impl Model {
        fn word(&self, place: Place) -> &AtomicU64 {
            match place {
                Place::Head => &self.words[0],
                Place::Tail => &self.words[1],
                Place::Entry(index) => &self.words[2 + index],
            }
        }

        fn order(&self, order: Ordering) -> Ordering {
            if self.careless { Ordering::Relaxed } else { order }
        }
    }

    impl Words for Model {
        fn load(&self, place: Place) -> u64 {
            self.word(place).load(self.order(Ordering::Acquire))
        }

        fn store(&self, place: Place, value: u64) {
            self.word(place).store(value, self.order(Ordering::Release));
        }

        fn exchange(&self, place: Place, from: u64, to: u64) -> bool {
            let [both, failed] = [Ordering::AcqRel, Ordering::Acquire].map(|order| self.order(order));
            self.word(place).compare_exchange(from, to, both, failed).is_ok()
        }
    }

    /// Three messages through a ring of two, of which the oldest may be replaced.
    fn exchange(careless: bool) {
        loom::model(move || {
            let words: LoomArc<[AtomicU64; 4]> = LoomArc::default();
            // An access to a message; the model reports two sides at once.
            let messages: LoomArc<[UnsafeCell<()>; 4]> = LoomArc::default();
            let ring = |words| Ring::new(Model { words, careless }, 2);
            let producer = loom::thread::spawn({
                let (ring, messages) = (ring(words.clone()), messages.clone());
                move || {
                    let put = |number: u64| {
                        messages[number as usize].with_mut(|_| ());
                        match ring.put(number, true) {
                            Put::Instead(old) => Some(old),
                            Put::Taken => None,
                            Put::Full => panic!("one that replaces is never full"),
                        }
                    };
                    (1..=3).filter_map(put).collect::<Vec<u64>>()
                }
            });
            let consumer = ring(words);
            let take = || {
                let number = consumer.take()?;
                messages[number as usize].with(|_| ());
                Some(number)
            };
            // The model explores other orders only from here on.
            loom::thread::yield_now();
            let mut seen: Vec<u64> = [take(), take()].into_iter().flatten().collect();
            let replaced = producer.join().unwrap();
            seen.extend(std::iter::from_fn(take));
            assert!(seen.is_sorted(), "{seen:?}");
            seen.extend(replaced);
            seen.sort_unstable();
            assert_eq!(seen, [1, 2, 3], "each is taken once or replaced once");
        });
    }

    #[test]
    fn every_order_that_memory_allows_takes_or_replaces_each_message_once() {
        exchange(false);
    }

    #[test]
    fn words_without_release_and_acquire_are_found_out() {
        assert!(catch_unwind(|| exchange(true)).is_err());
    }
}
