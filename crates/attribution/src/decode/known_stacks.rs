//! Stacks that were read already, by their addresses: a trace has few, each very often.
//!
//! They are compared by words: the static C library compares bytes, which would take a tenth of
//! the whole reading.

use crate::view::What;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

/// Stacks that are kept; further ones are read anew each time.
const MOST: usize = 65_536;

/// Stacks and meanings.
#[derive(Debug, Default)]
pub(super) struct KnownStacks {
    by_hash: FxHashMap<u64, Vec<Known>>,
    len: usize,
}

/// One of them.
#[derive(Debug)]
struct Known {
    addresses: Box<[u8]>,
    says: What,
}

impl KnownStacks {
    /// The meaning of the stack of these addresses, if it was read before.
    #[inline]
    pub(super) fn get(&self, addresses: &[u8]) -> Option<What> {
        let of_hash = self.by_hash.get(&hash(addresses))?;
        of_hash.iter().find(|known| is_same(&known.addresses, addresses)).map(|known| known.says)
    }

    /// Keeps the meaning of a stack.
    pub(super) fn add(&mut self, addresses: &[u8], says: What) {
        if self.len < MOST {
            self.len += 1;
            let known = Known { addresses: addresses.into(), says };
            self.by_hash.entry(hash(addresses)).or_default().push(known);
        }
    }
}

fn hash(addresses: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(addresses);
    hasher.finish()
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    let ((words, rest), (others, others_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let same = |(a, b): (&[u8; 8], &[u8; 8])| u64::from_ne_bytes(*a) == u64::from_ne_bytes(*b);
    one.len() == other.len() && words.iter().zip(others).all(same) && rest == others_rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_found_by_all_its_addresses() {
        let mut known = KnownStacks::default();
        let [one, other]: [&[u8]; 2] = [&[1; 24], &[2; 24]];
        known.add(one, What::Shootdown);
        known.add(&[], What::Other);
        assert_eq!(
            (known.get(one), known.get(other), known.get(&[])),
            (Some(What::Shootdown), None, Some(What::Other))
        );
        assert_eq!([&[1; 23][..], &[1; 25], &[1; 16]].map(|other| known.get(other)), [None; 3]);
        let longer = [&[1; 24][..], &[7]].concat();
        known.add(&longer, What::Awake);
        assert_eq!((known.get(&longer), known.get(one)), (Some(What::Awake), Some(What::Shootdown)));
    }
}
