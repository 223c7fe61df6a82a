//! Block bootstrap: how far a statistic of one window could vary by chance.
//!
//! Neighbouring samples resemble each other, so blocks of time are drawn with replacement, not
//! samples: at an autocorrelation of 0.9 the plain bootstrap's 95 % interval of a median holds the
//! truth in a third of all cases. Künsch, "The jackknife and the bootstrap for general stationary
//! observations", Annals of Statistics 17 (1989); Carlstein, Annals of Statistics 14 (1986) for
//! blocks that do not overlap. Few blocks make percentile intervals too short; they are widened by
//! Student's t over the normal quantile (Hesterberg, "What teachers should know about the
//! bootstrap", The American Statistician 69 (2015)).
//!
//! Where dependence outlasts a block, blocks of several neighbours are drawn, the last joined to
//! the first (the circular bootstrap: Politis & Romano, in "Exploring the Limits of Bootstrap",
//! 1992); how many, [`crate::block_length`] says.
//!
//! A task that stands still for seconds is late once, however many blocks that fills: blocks that
//! one stall covers are drawn together with the one it began in.

use crate::nearest_rank;
use crate::random::below;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Draws of each statistic in a report.
pub const DRAWS: usize = 1000;
/// Length of a block where the window is long enough, ns.
const BLOCK_NS: i64 = 250_000_000;
/// Fewer blocks say too little about each other.
pub const LEAST_BLOCKS: usize = 20;
/// More blocks say nothing more; longer ones bear longer dependence.
const MOST_BLOCKS: usize = 400;
/// Fewer things drawn apart, where stalls joined blocks, give no interval at all.
const LEAST_DRAWN: usize = 5;

/// The random numbers of one statistic: independent of those of all other statistics, the same on
/// every machine.
pub fn generator(seed: u64, figure: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(figure);
    generator
}

/// How many blocks a window of this length has.
pub fn block_count(length_ns: i64) -> usize {
    ((length_ns / BLOCK_NS).max(0) as usize).clamp(LEAST_BLOCKS, MOST_BLOCKS)
}

/// The block of an instant, of `blocks` equal ones from `t0_ns` to `t1_ns`.
pub fn block_of(t_ns: i64, t0_ns: i64, t1_ns: i64, blocks: usize) -> usize {
    let length = i128::from(t1_ns.saturating_sub(t0_ns).max(1));
    let since = i128::from(t_ns.saturating_sub(t0_ns)).clamp(0, length - 1);
    (since * blocks as i128 / length) as usize
}

/// For each of `count` blocks the number of what it is drawn with, and how many such numbers there
/// are: blocks that a stall `[first, last]`, ns, covers from end to end go with the one before.
fn joined(stalls: &[[i64; 2]], t0_ns: i64, t1_ns: i64, count: usize) -> (Vec<u16>, usize) {
    let mut goes_on = vec![false; count];
    for [first, last] in stalls {
        let begin = block_of(*first, t0_ns, t1_ns, count);
        let end = block_of(*last, t0_ns, t1_ns, count);
        (begin + 1..end).for_each(|block| goes_on[block] = true);
    }
    let mut drawn = 0;
    let number = |(block, goes_on): (usize, bool)| {
        drawn += usize::from(block > 0 && !goes_on);
        drawn as u16
    };
    let numbers = goes_on.into_iter().enumerate().map(number).collect();
    (numbers, drawn + 1)
}

/// How often each block is drawn, `span` neighbours at a time.
fn weights(generator: &mut ChaCha8Rng, span: usize, weights: &mut [u32]) {
    weights.fill(0);
    let blocks = weights.len();
    for _ in 0..blocks.div_ceil(span.max(1)) {
        let first = below(blocks, generator);
        (first..first + span.max(1)).for_each(|block| weights[block % blocks] += 1);
    }
}

/// Samples in ascending order, each with its block.
#[derive(Clone)]
pub struct BlockedSamples {
    values: Vec<i64>,
    blocks: Vec<u16>,
    count: usize,
    /// Neighbouring blocks that are drawn together.
    span: usize,
    /// Samples of each block among the first `STEP · i` samples, row by row.
    before: Vec<u32>,
}

/// Samples between two rows of `before`.
const STEP: usize = 1024;

impl BlockedSamples {
    /// From samples `(t_ns, value_ns)` of the window from `t0_ns` to `t1_ns`, in which the task
    /// stood still from first to last of each of the `stalls`, ns.
    pub fn new(
        samples: impl Iterator<Item = (i64, i64)>,
        stalls: &[[i64; 2]],
        t0_ns: i64,
        t1_ns: i64,
    ) -> Self {
        let equal = block_count(t1_ns.saturating_sub(t0_ns));
        let (numbers, count) = joined(stalls, t0_ns, t1_ns, equal);
        let tag = |(t_ns, value_ns)| (value_ns, numbers[block_of(t_ns, t0_ns, t1_ns, equal)]);
        let mut tagged: Vec<(i64, u16)> = samples.map(tag).collect();
        tagged.sort_unstable();
        let (values, blocks): (Vec<i64>, Vec<u16>) = tagged.into_iter().unzip();
        let mut before = Vec::with_capacity((blocks.len() / STEP + 2) * count);
        let mut row = vec![0u32; count];
        for chunk in blocks.chunks(STEP) {
            before.extend_from_slice(&row);
            chunk.iter().for_each(|&block| row[usize::from(block)] += 1);
        }
        before.extend_from_slice(&row);
        Self { values, blocks, count, span: 1, before }
    }

    /// The same, with so many neighbouring blocks drawn together; at most a third of all.
    #[must_use]
    pub fn spanning(self, blocks: usize) -> Self {
        Self { span: blocks.clamp(1, (self.count / 3).max(1)), ..self }
    }

    /// The nearest-rank quantile of `parts` in 100,000, as observed; `None` with fewer than ten
    /// samples above it.
    pub fn quantile(&self, parts: u64) -> Option<i64> {
        let rank = nearest_rank(self.values.len(), parts);
        (self.values.len() >= rank + 10).then(|| self.values.get(rank.checked_sub(1)?).copied()).flatten()
    }

    /// The values, ascending.
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// Of each block, how many samples are at least `from_ns`, and how many there are.
    pub fn at_least(&self, from_ns: i64) -> (Vec<f64>, Vec<f64>) {
        let first = self.values.partition_point(|&value| value < from_ns);
        let mut part = vec![0.0; self.count];
        self.blocks[first..].iter().for_each(|&block| part[usize::from(block)] += 1.0);
        let whole = self.before.rchunks(self.count).next().unwrap_or_default();
        (part, whole.iter().map(|&count| f64::from(count)).collect())
    }

    /// The values of the first half of the blocks and those of the second, each ascending.
    pub fn halves(&self) -> [Vec<i64>; 2] {
        let tagged = || self.values.iter().zip(&self.blocks);
        let half = |second: bool| {
            tagged().filter(move |(_, block)| (usize::from(**block) >= self.count / 2) == second)
        };
        [false, true].map(|second| half(second).map(|(value, _)| *value).collect())
    }

    /// The number of blocks that are drawn apart.
    pub fn block_count(&self) -> usize {
        self.count
    }

    /// Blocks that are drawn together.
    pub fn span(&self) -> usize {
        self.span
    }

    /// 95 % interval of the quantile; none where so few blocks are drawn apart that they say
    /// nothing.
    pub fn quantile_interval(
        &self,
        parts: u64,
        draws: usize,
        generator: &mut ChaCha8Rng,
    ) -> Option<[f64; 2]> {
        let observed = self.quantile(parts)? as f64;
        let drawn = self.quantile_draws(parts, draws, generator);
        difference_interval(observed, &drawn, &vec![0.0; drawn.len()], self.count / self.span)
    }

    /// The quantile in so many samples of blocks. Empty without samples.
    pub fn quantile_draws(&self, parts: u64, draws: usize, generator: &mut ChaCha8Rng) -> Vec<f64> {
        if self.values.is_empty() {
            return Vec::new();
        }
        let mut drawn = vec![0u32; self.count];
        let draw = |_| {
            weights(generator, self.span, &mut drawn);
            self.weighted_quantile(parts, &drawn)
        };
        (0..draws).map(draw).collect()
    }

    /// The quantile where block b counts `drawn[b]` times: a search over the rows, then a walk
    /// within one.
    fn weighted_quantile(&self, parts: u64, drawn: &[u32]) -> f64 {
        let rows = self.before.len() / self.count;
        let reached = |row: usize| -> u64 {
            let counts = &self.before[row * self.count..(row + 1) * self.count];
            counts.iter().zip(drawn).map(|(&count, &times)| u64::from(count) * u64::from(times)).sum()
        };
        let rank = nearest_rank(reached(rows - 1) as usize, parts) as u64;
        // The last row that has not reached the rank; row 0 has reached nothing.
        let (mut low, mut high) = (0, rows - 1);
        while low + 1 < high {
            let middle = usize::midpoint(low, high);
            if reached(middle) < rank { low = middle } else { high = middle }
        }
        let mut sum = reached(low);
        let start = low * STEP;
        for (value, block) in self.values[start..].iter().zip(&self.blocks[start..]) {
            sum += u64::from(drawn[usize::from(*block)]);
            if sum >= rank && sum > 0 {
                return *value as f64;
            }
        }
        // Only where every drawn block is empty.
        self.values.last().copied().unwrap_or(0) as f64
    }
}

/// Σ part / Σ whole in so many samples of blocks. Blocks without a whole are left out; empty where
/// none has one.
pub fn ratio_draws(part: &[f64], whole: &[f64], draws: usize, generator: &mut ChaCha8Rng) -> Vec<f64> {
    let blocks: Vec<(f64, f64)> =
        part.iter().copied().zip(whole.iter().copied()).filter(|(_, whole)| *whole > 0.0).collect();
    if blocks.is_empty() {
        return Vec::new();
    }
    let mut drawn = vec![0u32; blocks.len()];
    let draw = |_| {
        weights(generator, 1, &mut drawn);
        let add = |(a, b): (f64, f64), (block, times): (&(f64, f64), &u32)| {
            (a + block.0 * f64::from(*times), b + block.1 * f64::from(*times))
        };
        let (part, whole) = blocks.iter().zip(&drawn).fold((0.0, 0.0), add);
        part / whole
    };
    (0..draws).map(draw).collect()
}

/// 95 % interval of `disturbed − control` from independent draws of both, `blocks` being the fewer
/// of their blocks. `None` without draws, and where so few blocks are drawn apart that they say
/// nothing about each other.
pub fn difference_interval(
    observed: f64,
    disturbed: &[f64],
    control: &[f64],
    blocks: usize,
) -> Option<[f64; 2]> {
    let mut differences: Vec<f64> = disturbed.iter().zip(control).map(|(d, c)| d - c).collect();
    if differences.is_empty() || blocks < LEAST_DRAWN {
        return None;
    }
    differences.sort_unstable_by(f64::total_cmp);
    let at = |parts: u64| differences[nearest_rank(differences.len(), parts).clamp(1, differences.len()) - 1];
    let widen = widening(blocks);
    let low = observed - (observed - at(2_500)).max(0.0) * widen;
    let high = observed + (at(97_500) - observed).max(0.0) * widen;
    Some([low, high])
}

/// Student's t over the normal quantile (Cornish and Fisher's first term), and the bootstrap's own
/// (n − 1)/n.
fn widening(blocks: usize) -> f64 {
    let (n, z) = (blocks.max(2) as f64, 1.959_964);
    let t = z + (z * z * z + z) / (4.0 * (n - 1.0));
    t / z * (n / (n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn draws_are_the_same_every_time() {
        let samples = BlockedSamples::new((0..5000).map(|i| (i * 1_000_000, i % 97)), &[], 0, 5_000_000_000);
        let once = samples.quantile_draws(50_000, DRAWS, &mut generator(7, 1));
        assert_eq!(once, samples.quantile_draws(50_000, DRAWS, &mut generator(7, 1)));
        assert_ne!(once, samples.quantile_draws(50_000, DRAWS, &mut generator(7, 2)));
    }

    #[test]
    fn blocks_are_a_quarter_second_and_never_few() {
        assert_eq!(block_count(10_000_000_000), 40);
        assert_eq!(block_count(1_000_000), LEAST_BLOCKS);
        assert_eq!(block_count(3_600_000_000_000), MOST_BLOCKS);
        assert_eq!(
            (block_of(-5, 0, 100, 20), block_of(99, 0, 100, 20), block_of(500, 0, 100, 20)),
            (0, 19, 19)
        );
    }

    #[test]
    fn what_one_stall_covers_is_drawn_once_and_neighbouring_stalls_apart() {
        // Ten blocks of 100; a stall within two blocks joins none.
        assert_eq!(joined(&[[150, 290]], 0, 1000, 10).1, 10);
        let (numbers, count) = joined(&[[110, 410], [420, 790]], 0, 1000, 10);
        assert_eq!((numbers.as_slice(), count), (&[0, 1, 1, 1, 2, 2, 2, 3, 4, 5][..], 6));
        let (numbers, count) = joined(&[[-50, 5000]], 0, 1000, 10);
        assert_eq!((numbers[8], numbers[9], count), (0, 1, 2));
        assert_eq!(difference_interval(1.0, &[1.0; 9], &[0.0; 9], count), None);
    }

    #[test]
    fn no_samples_no_interval() {
        let empty = BlockedSamples::new(std::iter::empty(), &[], 0, 1_000_000_000);
        assert_eq!(empty.quantile(50_000), None);
        assert!(empty.quantile_draws(50_000, DRAWS, &mut generator(0, 0)).is_empty());
        assert!(ratio_draws(&[0.0], &[0.0], DRAWS, &mut generator(0, 0)).is_empty());
        assert_eq!(difference_interval(0.0, &[], &[], 20), None);
    }

    proptest! {
        #[test]
        fn a_weighted_quantile_is_that_of_the_sample_written_out(
            values in proptest::collection::vec(0i64..50, 1..3000), seed in any::<u64>(), parts in 1_000u64..99_000,
        ) {
            let end = values.len() as i64 * 1_000_000;
            let samples = BlockedSamples::new(values.iter().enumerate().map(|(i, &v)| (i as i64 * 1_000_000, v)), &[], 0, end);
            let mut drawn = vec![0u32; samples.count];
            weights(&mut generator(seed, 0), 1 + seed as usize % 7, &mut drawn);
            let mut all: Vec<i64> = Vec::new();
            for (i, &value) in values.iter().enumerate() {
                let block = block_of(i as i64 * 1_000_000, 0, end, samples.count);
                all.extend(std::iter::repeat_n(value, drawn[block] as usize));
            }
            prop_assume!(!all.is_empty());
            all.sort_unstable();
            let truth = all[nearest_rank(all.len(), parts) - 1];
            prop_assert_eq!(samples.weighted_quantile(parts, &drawn) as i64, truth);
        }
    }
}
