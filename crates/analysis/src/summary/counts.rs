//! How often each value came, in bounded memory: to the ns up to a millisecond, beyond in 2,048
//! buckets an octave.
//!
//! Buckets that grow with the value, as in G. Tene's HdrHistogram: what is read off beyond a
//! millisecond is the lower edge of its bucket, at most 0.05 % below the value.

/// Values below are counted each for itself.
const EXACT: usize = 1 << 20;
/// Buckets an octave, as a power of two.
const FINE: u32 = 11;

/// Counts by value.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    exact: Vec<u64>,
    /// Beyond, and below 0 by the size.
    large: Buckets,
    early: Buckets,
}

impl Default for Counts {
    fn default() -> Self {
        Self { exact: vec![0; EXACT], large: Buckets::new(FINE), early: Buckets::new(FINE) }
    }
}

impl Counts {
    #[inline]
    pub(crate) fn add(&mut self, value: i64) {
        match self.exact.get_mut(value as usize) {
            Some(count) if value >= 0 => *count += 1,
            _ if value >= 0 => self.large.add(value as u64),
            _ => self.early.add(value.unsigned_abs()),
        }
    }

    /// Values with their counts, ascending, no count 0.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (i64, u64)> {
        // Of what is early the size is known from below, so that the edge nearer to 0 is given.
        let edge = |edge: u64| i64::try_from(edge).unwrap_or(i64::MAX);
        let early = self.early.counts.iter().enumerate().rev();
        let early = early.map(move |(at, count)| (-edge(self.early.edge(at)), *count));
        let exact = self.exact.iter().enumerate().map(|(value, count)| (value as i64, *count));
        let large = self.large.counts.iter().enumerate();
        let large = large.map(move |(at, count)| (edge(self.large.edge(at)), *count));
        early.chain(exact).chain(large).filter(|(_, count)| *count > 0)
    }
}

/// Counts in buckets of 2^`fine` an octave.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    fine: u32,
    pub(crate) counts: Vec<u64>,
}

impl Buckets {
    pub(crate) fn new(fine: u32) -> Self {
        Self { fine, counts: vec![0; (65 - fine as usize) << fine] }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        let at = place(value, self.fine);
        self.counts[at] += 1;
    }

    /// The least value of a bucket.
    pub(crate) fn edge(&self, at: usize) -> u64 {
        edge(at, self.fine)
    }
}

/// The bucket of a value: below 2^fine each its own, then 2^fine an octave.
#[inline]
pub(crate) fn place(value: u64, fine: u32) -> usize {
    let octave = (value | (1 << fine)).ilog2() - fine;
    ((octave as usize) << fine) + (value >> octave) as usize
}

/// The least value of a bucket.
pub(crate) fn edge(at: usize, fine: u32) -> u64 {
    if at < 2 << fine {
        return at as u64;
    }
    let octave = (at >> fine) - 1;
    ((at - (octave << fine)) as u64) << octave
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(value: u64, shift in 0u32..64, fine in 4u32..12) {
            let value = value >> shift;
            let at = place(value, fine);
            prop_assert!(edge(at, fine) <= value);
            prop_assert!(at + 1 >= (65 - fine as usize) << fine || edge(at + 1, fine) > value);
            prop_assert!(value - edge(at, fine) <= value >> fine);
        }

        #[test]
        fn no_value_is_lost_and_order_is_kept(values in proptest::collection::vec(any::<i64>(), 0..60), shift in 0u32..64) {
            let mut counts = Counts::default();
            values.iter().for_each(|value| counts.add(value >> shift));
            let steps: Vec<(i64, u64)> = counts.steps().collect();
            prop_assert_eq!(steps.iter().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
            prop_assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
