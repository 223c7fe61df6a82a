//! Whose a slot is: free → being filled → filled → being read → free, each step an exchange on its
//! word, so that no two sides are ever in one slot. Who has changed the word to `FILLING` or
//! `READING` is alone in the slot until it releases the next state; who acquires that state sees
//! all that was done there. The tests run it under every order that the memory model allows.

use std::sync::atomic::Ordering;

/// States of a slot: the low bits of its word; above them stands how many bytes it holds.
const FREE: u64 = 0;
const FILLING: u64 = 1;
const FILLED: u64 = 2;
const READING: u64 = 3;
const STATE_BITS: u32 = 2;

/// The words of some slots.
pub(super) trait Words {
    /// How many.
    fn count(&self) -> usize;
    fn load(&self, slot: usize) -> u64;
    fn store(&self, slot: usize, word: u64, order: Ordering);
    /// Writes `to` if `from` stands there, in this order; whether it did.
    fn exchange(&self, slot: usize, from: u64, to: u64, order: Ordering) -> bool;
}

/// Takes a free slot to fill it, the first from `next` on.
#[inline(always)]
pub(super) fn begin_filling(words: &impl Words, next: usize) -> Option<usize> {
    let all = (0..words.count()).map(|step| (next + step) % words.count());
    all.into_iter().find(|slot| words.exchange(*slot, FREE, FILLING, Ordering::Acquire))
}

/// The slot holds so many bytes.
#[inline(always)]
pub(super) fn filled(words: &impl Words, slot: usize, bytes: usize) {
    words.store(slot, (bytes as u64) << STATE_BITS | FILLED, Ordering::Release);
}

/// The bytes of a filled slot, and its word.
#[inline(always)]
fn holds(words: &impl Words, slot: usize) -> Option<(u64, usize)> {
    let word = if slot < words.count() { words.load(slot) } else { FREE };
    (word & READING == FILLED).then_some((word, (word >> STATE_BITS) as usize))
}

/// Takes a filled slot of at most so many bytes to read it; how many it holds.
#[inline(always)]
pub(super) fn begin_reading(words: &impl Words, slot: usize, most: usize) -> Option<usize> {
    let (word, bytes) = holds(words, slot)?;
    (bytes <= most && words.exchange(slot, word, READING, Ordering::Acquire)).then_some(bytes)
}

/// The slot was read.
#[inline(always)]
pub(super) fn read(words: &impl Words, slot: usize) {
    words.store(slot, FREE, Ordering::Release);
}

/// Frees a filled slot that nobody wants to read; whether it was filled.
#[inline(always)]
pub(super) fn discard(words: &impl Words, slot: usize) -> bool {
    holds(words, slot).is_some_and(|(word, _)| words.exchange(slot, word, FREE, Ordering::AcqRel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64;
    use std::panic::catch_unwind;

    /// Two slots of a word each; `careless`: nothing is released.
    #[derive(Default)]
    struct Model {
        words: [AtomicU64; 2],
        bytes: [UnsafeCell<u64>; 2],
        careless: bool,
    }

    impl Words for Model {
        fn count(&self) -> usize {
            2
        }

        fn load(&self, slot: usize) -> u64 {
            self.words[slot].load(Ordering::Relaxed)
        }

        fn store(&self, slot: usize, word: u64, order: Ordering) {
            self.words[slot].store(word, if self.careless { Ordering::Relaxed } else { order });
        }

        fn exchange(&self, slot: usize, from: u64, to: u64, order: Ordering) -> bool {
            self.words[slot].compare_exchange(from, to, order, Ordering::Relaxed).is_ok()
        }
    }

    /// What a reader finds in a slot, and whether it had it.
    fn take(model: &Model, slot: usize) -> Option<(u64, usize)> {
        let bytes = begin_reading(model, slot, 8)?;
        // SAFETY: that nobody else is in the slot is what the model checks.
        let found = model.bytes[slot].with(|cell| unsafe { *cell });
        read(model, slot);
        Some((found, bytes))
    }

    /// A writer fills slots while one reader takes from the first and another one discards there.
    fn exchange(careless: bool) {
        loom::model(move || {
            let model = Arc::new(Model { careless, ..Model::default() });
            let writer = loom::thread::spawn({
                let model = model.clone();
                move || {
                    let fill = |number: u64| {
                        let slot = begin_filling(&*model, 0)?;
                        // SAFETY: likewise.
                        model.bytes[slot].with_mut(|cell| unsafe { *cell = number });
                        filled(&*model, slot, number as usize);
                        Some(number)
                    };
                    (1..=2).filter_map(fill).count()
                }
            });
            let other = loom::thread::spawn({
                let model = model.clone();
                move || usize::from(discard(&*model, 0))
            });
            let mut taken = 0;
            if let Some((number, bytes)) = take(&model, 0) {
                assert_eq!(number as usize, bytes, "a slot is whole");
                taken += 1;
            }
            let (filled, discarded) = (writer.join().unwrap(), other.join().unwrap());
            let left = [0, 1].into_iter().filter(|slot| take(&model, *slot).is_some()).count();
            assert_eq!(filled, taken + discarded + left, "each message goes one way");
        });
    }

    #[test]
    fn every_order_that_memory_allows_gives_each_message_to_one() {
        exchange(false);
    }

    #[test]
    fn a_state_that_is_set_without_release_is_found_out() {
        assert!(catch_unwind(|| exchange(true)).is_err());
    }
}
