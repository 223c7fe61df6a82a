//! A bounded number of rows for names of which there may be any number.
//!
//! A metric must not vanish between two scrapes, and its counts only grow; so a row, once it has a
//! name, keeps it. To get one, a name must be among the heaviest of a while: until then what it
//! adds goes to `other`, and so does what comes with a new name when all rows are taken. A program
//! that runs under thousands of names, each for a moment, gets none of them. What is counted of
//! candidates between two [`settle`](Rows::settle)s is bounded: the lighter half makes room, and
//! who comes then may have been among them, so it begins with their weight, which does not count
//! for it in the end (as in lossy counting: Manku and Motwani, "Approximate frequency counts over
//! data streams", VLDB 2002).

use std::collections::HashMap;
use std::hash::Hash;

/// The most candidates that are counted.
const MOST_CANDIDATES: usize = 512;

/// Sums by name.
#[derive(Debug)]
pub struct Rows<K, V> {
    most: usize,
    named: HashMap<K, V>,
    other: V,
    /// Weights since rows were last given, and in how many additions.
    candidates: HashMap<K, Candidate>,
    /// The most that one weighed that has made room.
    made_room_to: u64,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    weight: u64,
    times: u64,
    /// Weight that it may have taken over from another one.
    taken_over: u64,
}

impl<K: Eq + Hash + Clone + Ord, V: Default> Rows<K, V> {
    /// At most so many rows beside `other`.
    pub fn new(most: usize) -> Self {
        Self { most, named: HashMap::new(), other: V::default(), candidates: HashMap::new(), made_room_to: 0 }
    }

    /// The sum that a name adds to; `weight`: how much.
    pub fn of(&mut self, name: &K, weight: u64) -> &mut V {
        if self.named.contains_key(name) {
            return self.named.entry(name.clone()).or_default();
        }
        if self.named.len() < self.most {
            self.weigh(name, weight);
        }
        &mut self.other
    }

    fn weigh(&mut self, name: &K, weight: u64) {
        if let Some(known) = self.candidates.get_mut(name) {
            known.weight = known.weight.saturating_add(weight);
            known.times += 1;
            return;
        }
        if self.candidates.len() >= MOST_CANDIDATES {
            self.make_room();
        }
        let taken_over = self.made_room_to;
        let weight = weight.saturating_add(taken_over);
        self.candidates.insert(name.clone(), Candidate { weight, times: 1, taken_over });
    }

    /// Removes the lighter half, at least.
    fn make_room(&mut self) {
        let mut weights: Vec<u64> = self.candidates.values().map(|one| one.weight).collect();
        let half = weights.len() / 2;
        let (_, median, _) = weights.select_nth_unstable(half);
        self.made_room_to = *median;
        self.candidates.retain(|_, one| one.weight > self.made_room_to);
    }

    /// Gives free rows to the heaviest names since the last call that came more than once: at most
    /// a quarter of the rows, and one, so that what comes later has a chance. Call it once in a
    /// while.
    pub fn settle(&mut self) {
        let free = self.most.saturating_sub(self.named.len());
        let at_once = (self.most / 4).max(1).min(free);
        self.made_room_to = 0;
        let mut all: Vec<(K, Candidate)> = self.candidates.drain().filter(|(_, one)| one.times > 1).collect();
        all.sort_by_key(|(name, one)| {
            (std::cmp::Reverse(one.weight.saturating_sub(one.taken_over)), name.clone())
        });
        all.into_iter().take(at_once).for_each(|(name, _)| {
            self.named.insert(name, V::default());
        });
    }

    /// The rows by name, and the rest.
    pub fn all(&self) -> (Vec<(&K, &V)>, &V) {
        let mut named: Vec<(&K, &V)> = self.named.iter().collect();
        named.sort_by_key(|(name, _)| *name);
        (named, &self.other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bomb_of_names_gets_no_row() {
        let mut rows: Rows<String, u64> = Rows::new(8);
        for minute in 0..10 {
            for at in 0..20_000 {
                *rows.of(&format!("bomb-{minute}-{at}"), 50) += 1;
                if at % 10 == 0 {
                    *rows.of(&"real".to_owned(), 50) += 1;
                }
            }
            rows.settle();
        }
        let (named, other) = rows.all();
        assert!(named.iter().any(|(name, sum)| *name == "real" && **sum == 9 * 2_000), "{named:?}");
        assert!(named.len() <= 8 && named.iter().all(|(name, _)| *name == "real"), "{named:?}");
        assert_eq!(*other, 10 * 20_000 + 2_000);
    }

    #[test]
    fn the_heaviest_are_named_and_stay() {
        let mut rows: Rows<&str, u64> = Rows::new(4);
        for _ in 0..3 {
            for (name, weight) in [("a", 5), ("b", 9), ("c", 7)] {
                *rows.of(&name, weight) += weight;
            }
        }
        rows.settle();
        assert_eq!(rows.all().0, [(&"b", &0)]);
        for _ in 0..3 {
            for (name, weight) in [("a", 5), ("c", 7)] {
                *rows.of(&name, weight) += weight;
            }
        }
        rows.settle();
        let names: Vec<&str> = rows.all().0.into_iter().map(|(name, _)| *name).collect();
        assert_eq!((names, *rows.all().1), (vec!["b", "c"], 3 * 21 + 3 * 12));
    }

    proptest! {
        /// Nothing is lost between rows, and none gives back what it had.
        #[test]
        fn sums_add_up_and_only_grow(
            adds in prop::collection::vec((0u8..40, 1u64..100, any::<bool>()), 0..300),
            most in 1usize..6,
        ) {
            let mut rows: Rows<u8, u64> = Rows::new(most);
            let mut sum = 0;
            let mut before: Vec<(u8, u64)> = Vec::new();
            for (name, weight, settle) in adds {
                *rows.of(&name, weight) += weight;
                sum += weight;
                if settle {
                    rows.settle();
                }
                let (named, other) = rows.all();
                prop_assert!(named.len() <= most);
                prop_assert_eq!(named.iter().map(|(_, value)| **value).sum::<u64>() + other, sum);
                let now: Vec<(u8, u64)> = named.into_iter().map(|(name, value)| (*name, *value)).collect();
                for (name, value) in &before {
                    prop_assert!(now.iter().any(|(other, now)| other == name && now >= value));
                }
                before = now;
            }
        }
    }
}
