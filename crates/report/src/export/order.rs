//! Spans in the order of their starts, outer ones before what they hold.
//!
//! A span is known when it ends, so it comes behind everything inside it. Tools that draw nested
//! spans want it before. This holds back a bounded number of spans and returns the earliest first.
//! Only a span with more than [`HELD`] others inside comes late, which the formats here allow.

use attribution::attribute::events::Attributed;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Spans held back: some MiB with their names.
const HELD: usize = 16 * 1024;

/// Earliest start first, of those the longest, of those what came last: the outer one of two alike
/// ends last.
#[derive(Debug)]
struct Entry {
    event: Attributed,
    number: u64,
}

impl Entry {
    fn key(&self) -> (i64, Reverse<i64>, Reverse<u64>) {
        (self.event.t0_ns, Reverse(self.event.t1_ns), Reverse(self.number))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Spans held back.
#[derive(Debug, Default)]
pub struct InOrder {
    held: BinaryHeap<Reverse<Entry>>,
    came: u64,
}

impl InOrder {
    /// Takes a span, and returns the earliest where more are held than there is room for.
    pub fn push(&mut self, event: Attributed) -> Option<Attributed> {
        self.held.push(Reverse(Entry { event, number: self.came }));
        self.came += 1;
        if self.held.len() > HELD { self.pop() } else { None }
    }

    /// The earliest that is held.
    pub fn pop(&mut self) -> Option<Attributed> {
        self.held.pop().map(|Reverse(entry)| entry.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::testing::event;
    use proptest::prelude::*;

    fn ordered(spans: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut order = InOrder::default();
        let mut given: Vec<_> = spans.iter().filter_map(|&(t0, t1)| order.push(event(2, t0, t1))).collect();
        given.extend(std::iter::from_fn(|| order.pop()));
        given.into_iter().map(|event| (event.t0_ns, event.t1_ns)).collect()
    }

    proptest! {
        #[test]
        fn starts_ascend_and_outer_spans_come_first(spans in proptest::collection::vec((0i64..50, 0i64..50), 0..200)) {
            let spans: Vec<_> = spans.into_iter().map(|(t0, length)| (t0, t0 + length)).collect();
            let given = ordered(&spans);
            let mut wanted = spans;
            wanted.sort_by_key(|&(t0, t1)| (t0, -t1));
            prop_assert_eq!(given, wanted);
        }
    }

    #[test]
    fn of_two_alike_the_one_that_ended_last_is_the_outer_one() {
        let mut order = InOrder::default();
        for label in ["inner", "outer"] {
            order.push(Attributed { label: label.into(), ..event(2, 5, 9) });
        }
        assert_eq!(order.pop().unwrap().label, "outer");
    }

    #[test]
    fn no_more_is_held_than_there_is_room_for() {
        let mut order = InOrder::default();
        let given = (0..HELD as i64 + 10).rev().filter_map(|t| order.push(event(2, t, t))).count();
        assert_eq!((given, order.held.len()), (10, HELD));
    }
}
