//! Which cell when, and in which shard.
//!
//! Comparisons on a machine that drifts (temperature, neighbours) are only fair if the things
//! compared take turns. So a study runs in blocks, every combination once a block in an order of
//! its own: a randomised complete block design (Fisher 1935).

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use thiserror::Error;

use crate::cell::{Cell, number};

/// Sorts a block by a hash of seed and id: a random permutation that needs no state.
pub(crate) fn shuffled(seed: u64, mut block: Vec<Cell>) -> Vec<Cell> {
    block.sort_by_cached_key(|cell| (number("stillcore.order/1", seed, &cell.id), cell.id.clone()));
    block
}

/// Shard `index` of `count`, from 1: written `2/4`.
///
/// A shard is a contiguous stretch of the order, so that the cells of one block, which are there to
/// be compared with each other, mostly stay on one machine. Stretches differ by at most one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

/// Why something is not a shard.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("shard is \"{found}\", expected i/n with 1 <= i <= n")]
pub struct ShardError {
    /// What was given.
    pub found: String,
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// Shard `index` of `count`, `1 <= index <= count`.
    pub fn new(index: u32, count: u32) -> Result<Self, ShardError> {
        if (1..=count).contains(&index) {
            Ok(Self { index, count })
        } else {
            Err(ShardError { found: format!("{index}/{count}") })
        }
    }

    /// How many shards there are.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The cells of this shard, in order.
    pub fn of<T>(self, cells: &[T]) -> &[T] {
        &cells[self.range(cells.len())]
    }

    fn range(self, cells: usize) -> Range<usize> {
        let bound = |index: u32| (cells as u128 * u128::from(index) / u128::from(self.count)) as usize;
        bound(self.index - 1)..bound(self.index)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let bad = || ShardError { found: text.to_owned() };
        let (index, count) = parts.ok_or_else(bad)?;
        Self::new(index, count).map_err(|_| bad())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn block(seed: u64, repetition: u32) -> Vec<i64> {
        let cell =
            |value: i64| Cell::new("s", seed, BTreeMap::from([("x".to_owned(), value.into())]), repetition);
        let shuffled = shuffled(seed, (0..8).map(cell).collect());
        shuffled.iter().map(|cell| cell.factors["x"].as_i64().unwrap()).collect()
    }

    #[test]
    fn every_value_gets_every_place() {
        // 8 values, 4000 blocks: each value should come first about 500 times (standard deviation
        // 21).
        let mut first = [0; 8];
        for repetition in 0..4000 {
            first[block(1, repetition)[0] as usize] += 1;
        }
        assert!(first.iter().all(|count| (370..630).contains(count)), "{first:?}");
        assert_ne!(block(1, 0), block(2, 0));
    }

    #[test]
    fn shards_are_parsed_and_printed() {
        assert_eq!("2/4".parse::<Shard>().unwrap().to_string(), "2/4");
        for bad in ["0/4", "5/4", "1/0", "1", "/", "a/b", "-1/2", "1/2/3", ""] {
            let error = bad.parse::<Shard>().unwrap_err().to_string();
            assert_eq!(error, format!("shard is \"{bad}\", expected i/n with 1 <= i <= n"));
        }
    }

    proptest! {
        #[test]
        fn shards_partition_the_order(cells in 0usize..5000, count in 1u32..70) {
            let ranges: Vec<_> = (1..=count).map(|i| Shard::new(i, count).unwrap().range(cells)).collect();
            let joined: Vec<usize> = ranges.iter().cloned().flatten().collect();
            prop_assert_eq!(joined, (0..cells).collect::<Vec<_>>());
            let sizes = ranges.iter().map(ExactSizeIterator::len);
            prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }
}
