//! When the events of a source happened, in bounded memory: the first ones without a gap, and the
//! longest of all.
//!
//! The first ones show the period of a fast source; the longest that of a source whose every n-th
//! event takes long. Nothing else is needed to fold a source, and a source of a million events
//! takes no more room than one of a thousand.

/// Events kept of each kind.
const MOST: usize = 512;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    /// Its net length, ns; at most 4.3 s.
    pub net_ns: u32,
    /// From its start to its end, ns; at most 4.3 s.
    pub length_ns: u32,
    /// Its start, CLOCK_MONOTONIC ns.
    pub t0_ns: i64,
}

/// The events of one source.
#[derive(Debug, Clone, Default)]
pub struct Instants {
    first: Vec<Instant>,
    /// Behind the first ones, the longest of the others: a heap whose head is the shortest of them.
    longest: std::collections::BinaryHeap<std::cmp::Reverse<Instant>>,
    count: u64,
}

impl Instants {
    /// Adds an event; starts ascend, nearly.
    #[inline]
    pub fn add(&mut self, t0_ns: i64, t1_ns: i64, net_ns: u64) {
        let short = |ns: u64| u32::try_from(ns).unwrap_or(u32::MAX);
        let one = Instant { net_ns: short(net_ns), length_ns: short(t1_ns.abs_diff(t0_ns)), t0_ns };
        self.count += 1;
        if self.first.len() < MOST {
            self.first.push(one);
        } else if self.longest.len() < MOST {
            self.longest.push(std::cmp::Reverse(one));
        } else if self.longest.peek().is_some_and(|least| least.0.net_ns < one.net_ns) {
            self.longest.pop();
            self.longest.push(std::cmp::Reverse(one));
        }
    }

    /// Events there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether every one of them is kept.
    pub fn whole(&self) -> bool {
        self.count == (self.first.len() + self.longest.len()) as u64
    }

    /// Those kept from the start on without a gap; all of them where all are kept. By time.
    pub fn without_gap(&self) -> Vec<Instant> {
        if self.whole() { self.kept() } else { sorted(self.first.clone()) }
    }

    /// All that are kept, by time.
    pub fn kept(&self) -> Vec<Instant> {
        sorted(self.first.iter().copied().chain(self.longest.iter().map(|one| one.0)).collect())
    }

    /// The longest of all, so many at the most, by time.
    pub fn longest(&self, most: usize) -> Vec<Instant> {
        let mut kept = self.kept();
        kept.sort_unstable_by_key(|one| std::cmp::Reverse((one.net_ns, one.t0_ns)));
        kept.truncate(most);
        sorted(kept)
    }

    /// Those of another source as well.
    pub fn append(&mut self, other: &Self) {
        self.count += other.count;
        self.first = sorted(self.first.iter().chain(&other.first).copied().collect());
        self.longest.extend(other.longest.iter().copied());
    }
}

fn sorted(mut instants: Vec<Instant>) -> Vec<Instant> {
    instants.sort_unstable_by_key(|one| one.t0_ns);
    instants
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_and_the_longest_are_kept(lengths in proptest::collection::vec(0u64..5_000, 0..3_000)) {
            let mut instants = Instants::default();
            lengths.iter().enumerate().for_each(|(at, net)| instants.add(at as i64, at as i64 + 7, *net));
            prop_assert_eq!(instants.count(), lengths.len() as u64);
            prop_assert!(instants.kept().len() <= 2 * MOST);
            prop_assert_eq!(instants.whole(), lengths.len() <= 2 * MOST);
            let without_gap = instants.without_gap();
            prop_assert!(without_gap.iter().enumerate().all(|(at, one)| one.t0_ns == at as i64));
            let mut truth = lengths.clone();
            truth.sort_unstable_by_key(|net| std::cmp::Reverse(*net));
            truth.truncate(100);
            let mut longest: Vec<u64> = instants.longest(100).iter().map(|one| u64::from(one.net_ns)).collect();
            longest.sort_unstable_by_key(|net| std::cmp::Reverse(*net));
            prop_assert_eq!(longest, truth);
        }
    }
}
