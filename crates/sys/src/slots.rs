//! Messages in shared memory, each in a slot of its own that belongs to one side at a time.
//!
//! A slot goes free → being filled → filled → being read → free; each step is an atomic exchange on
//! its word, so no two sides are ever in one slot, whatever slot numbers they use. The caller
//! chooses how the number of a filled slot travels (a ring, a message queue). A side that is killed
//! in a slot keeps that one for ever, and no other.

mod states;

use super::memory::Mapping;
use states::Words;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots begin on cache lines of their own.
const LINE: usize = 128;

/// Slots within a mapping.
#[derive(Debug, Clone)]
pub struct Slots {
    mapping: Arc<Mapping>,
    offset: usize,
    count: usize,
    slot_bytes: usize,
    /// Where the writer looks for a free slot first: behind the last one it found.
    next: usize,
}

impl Slots {
    /// Bytes that `count` slots of `slot_bytes` take in a mapping.
    pub fn bytes(count: usize, slot_bytes: usize) -> usize {
        words_bytes(count) + count * stride(slot_bytes)
    }

    /// The slots from byte `offset` of a mapping on, which is all zero when fresh: every slot free.
    ///
    /// # Panics
    /// Where they do not lie in the mapping, or `offset` is not a multiple of 128: a mistake of the
    /// caller, whose layout it is.
    pub fn new(mapping: Arc<Mapping>, offset: usize, count: usize, slot_bytes: usize) -> Self {
        assert!(offset.is_multiple_of(LINE) && offset + Self::bytes(count, slot_bytes) <= mapping.bytes());
        Self { mapping, offset, count, slot_bytes, next: 0 }
    }

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        self.mapping.words(self.offset, self.count)
    }

    #[inline]
    fn first_byte(&self, slot: usize) -> *mut u8 {
        debug_assert!(slot < self.count);
        // SAFETY: `new` made sure that the bytes of all slots lie in the mapping, and callers that
        // the slot is one of them.
        unsafe {
            self.mapping
                .start()
                .as_ptr()
                .add(self.offset + words_bytes(self.count) + slot * stride(self.slot_bytes))
        }
    }

    /// Copies a message into a free slot. `None` where no slot is free or the message is longer
    /// than a slot.
    #[inline]
    pub fn fill(&mut self, parts: [&[u8]; 2]) -> Option<u32> {
        let bytes = parts[0].len() + parts[1].len();
        if bytes > self.slot_bytes {
            return None;
        }
        let slot = states::begin_filling(self, self.next)?;
        self.next = slot + 1;
        let start = self.first_byte(slot);
        // SAFETY: the slot is ours alone; both parts fit into it, and cannot overlap a mapping that
        // nobody borrows from.
        unsafe {
            start.copy_from_nonoverlapping(parts[0].as_ptr(), parts[0].len());
            start.add(parts[0].len()).copy_from_nonoverlapping(parts[1].as_ptr(), parts[1].len());
        }
        states::filled(self, slot, bytes);
        Some(slot as u32)
    }

    /// Copies a filled slot's message out, frees the slot and gives the length. `None` where the
    /// slot is not filled or the buffer too short.
    #[inline]
    pub fn take(&self, slot: u32, buffer: &mut [u8]) -> Option<usize> {
        let slot = slot as usize;
        let bytes = states::begin_reading(self, slot, buffer.len().min(self.slot_bytes))?;
        // SAFETY: the slot is ours alone; its bytes lie in the slot and fit into the buffer.
        unsafe { self.first_byte(slot).copy_to_nonoverlapping(buffer.as_mut_ptr(), bytes) };
        states::read(self, slot);
        Some(bytes)
    }

    /// Frees a filled slot whose message nobody wants any more. Returns whether it was filled.
    #[inline]
    pub fn discard(&self, slot: u32) -> bool {
        states::discard(self, slot as usize)
    }
}

impl Words for Slots {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn load(&self, slot: usize) -> u64 {
        self.words()[slot].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn store(&self, slot: usize, word: u64, order: Ordering) {
        self.words()[slot].store(word, order);
    }

    #[inline(always)]
    fn exchange(&self, slot: usize, from: u64, to: u64, order: Ordering) -> bool {
        self.words()[slot].compare_exchange(from, to, order, Ordering::Relaxed).is_ok()
    }
}

fn words_bytes(count: usize) -> usize {
    (count * 8).next_multiple_of(LINE)
}

fn stride(slot_bytes: usize) -> usize {
    slot_bytes.next_multiple_of(LINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::shared_file;
    use std::sync::mpsc;

    fn two_sides(count: usize, slot_bytes: usize) -> (Slots, Slots) {
        let bytes = Slots::bytes(count, slot_bytes);
        let file = shared_file("slots-test", bytes).unwrap();
        let map = || Slots::new(Arc::new(Mapping::new(&file, bytes).unwrap()), 0, count, slot_bytes);
        (map(), map())
    }

    #[test]
    fn what_is_filled_is_taken_once() {
        let (mut writer, reader) = two_sides(2, 10);
        let slot = writer.fill([b"abc", b"def"]).unwrap();
        let mut buffer = [0u8; 10];
        assert_eq!(reader.take(slot, &mut buffer), Some(6));
        assert_eq!(&buffer[..6], b"abcdef");
        assert_eq!(reader.take(slot, &mut buffer), None);
        assert!(!reader.discard(slot));
    }

    #[test]
    fn no_slot_is_given_twice_and_numbers_from_nowhere_are_refused() {
        let (mut writer, reader) = two_sides(2, 4);
        let slots = [writer.fill([b"a", b""]).unwrap(), writer.fill([b"b", b""]).unwrap()];
        assert_ne!(slots[0], slots[1]);
        assert_eq!(writer.fill([b"c", b""]), None);
        assert!(reader.discard(slots[0]));
        assert_eq!(writer.fill([b"c", b""]), Some(slots[0]));
        assert_eq!(reader.take(7, &mut [0; 4]), None);
        assert_eq!(reader.take(slots[1], &mut []), None);
        assert_eq!(writer.fill([b"12345", b""]), None);
    }

    #[test]
    fn bytes_are_whole_across_threads() {
        const ROUNDS: u64 = 20_000;
        let (mut writer, reader) = two_sides(3, 4096);
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            for round in 0..ROUNDS {
                let bytes = [round as u8; 4096];
                let length = round as usize % 4097;
                let slot = loop {
                    match writer.fill([&[], &bytes[..length]]) {
                        Some(slot) => break slot,
                        None => std::thread::yield_now(),
                    }
                };
                sender.send(slot).unwrap();
            }
        });
        let mut buffer = [0u8; 4096];
        for round in 0..ROUNDS {
            let length = reader.take(receiver.recv().unwrap(), &mut buffer).unwrap();
            assert_eq!(length, round as usize % 4097);
            assert!(buffer[..length].iter().all(|byte| *byte == round as u8), "{round}");
        }
        thread.join().unwrap();
    }
}
