//! A stream of random words for every set, by counting instead of by state: word k of set i is a
//! function of (seed, i, k) alone, so that set i is the same on every machine, in every order and
//! in every shard.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
//! 2014): a counter with an odd step, and a mixer that is a bijection of 64 bits. The beginning of
//! each stream is a hash of what it is for; a million streams of a hundred words meet with a
//! probability of about 10^-5. Words need no state, so several streams are drawn side by side.

/// The step of the counter: 2^64 divided by the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finishing permutation, variant 13 of Stafford's mixers.
#[inline(always)]
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The purpose of a stream's words. Streams of different purpose are independent, so that critical
/// sections change no period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Utilizations and periods; the n-th attempt where vectors are discarded.
    Tasks(u32),
    /// Relative deadlines.
    Deadlines,
    /// Requests for resources.
    Requests,
}

/// Where a stream begins.
#[inline(always)]
pub(super) fn key(seed: u64, set: u64, core: u32, purpose: Purpose) -> u64 {
    let purpose = match purpose {
        Purpose::Tasks(attempt) => u64::from(attempt),
        Purpose::Deadlines => 1 << 32,
        Purpose::Requests => 2 << 32,
    };
    let parts = [set, u64::from(core), purpose];
    parts.into_iter().fold(mix(seed.wrapping_add(STEP)), |key, part| mix((key ^ part).wrapping_add(STEP)))
}

/// Word `k` of a stream.
#[inline(always)]
pub(super) fn word(key: u64, k: u64) -> u64 {
    mix(key.wrapping_add(STEP.wrapping_mul(k.wrapping_add(1))))
}

/// A word as a multiple of 2^-52 in (0, 1]: its logarithm is finite. By bits, which every vector
/// unit can do.
#[inline(always)]
pub(super) fn unit(word: u64) -> f64 {
    2.0 - f64::from_bits(0x3ff0_0000_0000_0000 | (word >> 12))
}

/// Words one after the other, for what is drawn set by set.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    key: u64,
    next: u64,
}

impl Stream {
    pub(super) fn new(key: u64) -> Self {
        Self { key, next: 0 }
    }

    /// The next number in (0, 1].
    pub(super) fn unit(&mut self) -> f64 {
        self.next += 1;
        unit(word(self.key, self.next - 1))
    }

    /// An integer from `low` to `high`.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.next += 1;
        let span = u128::from(high.saturating_sub(low)) + 1;
        low + ((u128::from(word(self.key, self.next - 1)) * span) >> 64) as u64
    }

    /// Whether something of this probability happens.
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequence of SplitMix64 from state 1234567, as its author's program prints it.
    #[test]
    fn words_are_those_of_splitmix64() {
        let words: Vec<u64> = (0..5).map(|k| word(1_234_567, k)).collect();
        assert_eq!(
            words,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn the_unit_interval_is_open_below_and_closed_above() {
        assert!((unit(0) - 1.0).abs() < f64::EPSILON);
        assert!((unit(u64::MAX) - 2f64.powi(-52)).abs() < f64::MIN_POSITIVE);
    }

    #[test]
    fn streams_differ_in_every_part_of_their_key() {
        let base = key(1, 2, 3, Purpose::Tasks(0));
        for other in [
            key(2, 2, 3, Purpose::Tasks(0)),
            key(1, 3, 3, Purpose::Tasks(0)),
            key(1, 2, 4, Purpose::Tasks(0)),
            key(1, 2, 3, Purpose::Tasks(1)),
            key(1, 2, 3, Purpose::Deadlines),
            key(1, 2, 3, Purpose::Requests),
        ] {
            assert_ne!(base, other);
            // As unrelated words: about half the bits differ.
            assert!((12..=52).contains(&(base ^ other).count_ones()));
        }
    }

    #[test]
    fn integers_reach_both_ends() {
        let mut stream = Stream::new(7);
        let drawn: Vec<u64> = (0..1000).map(|_| stream.between(3, 6)).collect();
        for value in 3..=6 {
            // 250 expected, standard deviation 14; the seed is fixed.
            let count = drawn.iter().filter(|drawn| **drawn == value).count();
            assert!((190..310).contains(&count), "{value}: {count}");
        }
        assert_eq!(stream.between(9, 9), 9);
    }
}
