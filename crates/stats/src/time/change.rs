//! Where does a series change for good? Hierarchical divisive estimation of change-points by energy
//! statistics.
//!
//! D. S. Matteson and N. A. James, "A nonparametric approach for multiple change point analysis of
//! multivariate data" (E-divisive), JASA 109 (2014), here on the ranks of one series: of all places
//! to split a segment the one is taken where both sides differ most, by Székely and Rizzo's
//! two-sample energy statistic Q = mn/(m+n) · 2∫(F − G)² over the ranks. Whether it differs more
//! than chance has it is asked of permutations of the segment: p = (1 + #≥)/(1 + R), which cannot
//! be 0 (B. Phipson and G. K. Smyth, "Permutation p-values should never be zero", 2010); undecided
//! draws end early (J. Besag and P. Clifford, "Sequential Monte Carlo p-values", Biometrika 78
//! (1991)). Where neighbours resemble each other whole blocks are permuted, several times as long
//! as the resemblance lasts. A segment with too few blocks is not split: it bears no verdict.

use super::ranks::mid_ranks;
use super::trend::autocorrelations;
use crate::resample::generator;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

/// Permutations of a segment at the most.
const PERMUTATIONS: u32 = 499;
/// So many permutations that reach the statistic end the draws: the split is no change.
const ENOUGH: u32 = 10;
/// A split with a larger probability is none.
pub const LEVEL: f64 = 0.01;
/// A side of a split has at least so many values.
const LEAST_SIDE: usize = 5;
/// Fewer blocks have too few orders to be surprised by one.
const LEAST_BLOCKS: usize = 10;
/// A block is so many times as long as the resemblance of neighbours.
const BLOCK_TIMES: f64 = 4.0;
/// Of the steps that a segment may hold none is shorter than this part of it.
const STEPS: usize = 8;
/// The most change-points of a series.
const MOST: usize = 20;

/// A place where a series changes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Place of the first value behind it.
    pub at: usize,
    /// The statistic, in ranks.
    pub statistic: f64,
    /// Probability of so much among permutations of its segment.
    pub p_value: f64,
    /// Values of a permuted block; 1 where neighbours did not resemble each other.
    pub block: usize,
}

/// All change-points of a series, ascending. Draws are the same for the same seed.
pub fn splits(values: &[f64], seed: u64) -> Vec<Split> {
    let mut random = generator(seed, 0);
    let mut found = Vec::new();
    let mut open = vec![(0, values.len())];
    while let Some((from, until)) = open.pop() {
        if found.len() >= MOST {
            break;
        }
        let Some(split) = split(&values[from..until], &mut random) else { continue };
        let at = from + split.at;
        found.push(Split { at, ..split });
        open.extend([(from, at), (at, until)]);
    }
    settled(values, found, &mut random)
}

/// Each split looked for once more between its neighbours, where it may lie better, and given up
/// where it is none there: one that lay a little wrong has made another.
fn settled(values: &[f64], mut found: Vec<Split>, random: &mut ChaCha8Rng) -> Vec<Split> {
    found.sort_unstable_by_key(|split| split.at);
    let mut at = 0;
    while at < found.len() {
        let from = at.checked_sub(1).map_or(0, |before| found[before].at);
        let until = found.get(at + 1).map_or(values.len(), |next| next.at);
        match split(&values[from..until], random) {
            Some(better) => {
                found[at] = Split { at: from + better.at, ..better };
                at += 1;
            }
            None => drop(found.remove(at)),
        }
    }
    found
}

/// The best split of one segment, where it differs from chance.
fn split(values: &[f64], random: &mut ChaCha8Rng) -> Option<Split> {
    if values.len() < (2 * LEAST_SIDE).max(LEAST_BLOCKS) {
        return None;
    }
    let ranks = mid_ranks(values);
    let mut scratch = Scratch::new(&ranks);
    let places = scratch.places(&ranks);
    let (at, statistic) = scratch.best(&places, LEAST_SIDE)?;
    let block = block_length(&ranks);
    if ranks.len() / block < LEAST_BLOCKS {
        return None;
    }
    let (mut reached, mut drawn) = (0, 0);
    let mut permuted = Vec::with_capacity(ranks.len());
    while drawn < PERMUTATIONS && reached < ENOUGH {
        drawn += 1;
        permute(&places, block, random, &mut permuted);
        let other = scratch.best(&permuted, LEAST_SIDE).map_or(0.0, |(_, statistic)| statistic);
        reached += u32::from(other >= statistic * (1.0 - 1e-12));
    }
    let p_value = if reached >= ENOUGH {
        f64::from(reached) / f64::from(drawn)
    } else {
        f64::from(reached + 1) / f64::from(drawn + 1)
    };
    (p_value <= LEVEL).then_some(Split { at, statistic, p_value, block })
}

/// How long a block must be: several times the integrated autocorrelation of what is left when
/// every step that there may be is taken out. A step is no resemblance.
fn block_length(ranks: &[f64]) -> usize {
    let least = (ranks.len() / STEPS).max(LEAST_SIDE);
    let mut edges = vec![0, ranks.len()];
    for _ in 0..STEPS / 2 {
        let inside = edges.windows(2).filter_map(|edge| {
            let part = &ranks[edge[0]..edge[1]];
            let mut scratch = Scratch::new(part);
            let (at, statistic) = scratch.best(&scratch.places(part), least)?;
            Some((statistic, edge[0] + at))
        });
        let Some((_, at)) = inside.max_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        edges.push(at);
        edges.sort_unstable();
    }
    let left = edges.windows(2).flat_map(|edge| {
        let part = &ranks[edge[0]..edge[1]];
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        part.iter().map(move |rank| rank - mean)
    });
    let left: Vec<f64> = left.collect();
    let bound = 1.5 / (left.len() as f64).sqrt();
    // Up to the first lag that chance explains.
    let sum: f64 = autocorrelations(&left, left.len() / 4).into_iter().take_while(|rho| *rho > bound).sum();
    if sum == 0.0 { 1 } else { (BLOCK_TIMES * (1.0 + 2.0 * sum)).ceil() as usize }
}

/// The series as a ring cut into blocks at a random place, blocks in random order.
fn permute(places: &[usize], block: usize, random: &mut ChaCha8Rng, permuted: &mut Vec<usize>) {
    let n = places.len();
    let mut pick = |below: usize| ((u64::from(random.next_u32()) * below as u64) >> 32) as usize;
    let shift = pick(n);
    let mut order: Vec<usize> = (0..n.div_ceil(block)).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, pick(at + 1));
    }
    permuted.clear();
    for one in order {
        let members = one * block..((one + 1) * block).min(n);
        permuted.extend(members.map(|at| places[(at + shift) % n]));
    }
}

/// Where the sides of a series differ most in their ranks, and by how much.
#[cfg(test)]
pub(super) fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    let ranks = mid_ranks(values);
    let mut scratch = Scratch::new(&ranks);
    scratch.best(&scratch.places(&ranks), LEAST_SIDE)
}

/// What all orders of one set of values share.
///
/// With m values to the left of a split, of which F(l) are at most level l, U(l) of all n, and g(l)
/// the distance from a level to the next, Q = 2/(n·m·(n−m)) · Σ g·(n·F − m·U)². One more value to
/// the left adds 1 to F from its level on, so that the three sums of the square's terms follow from
/// what was to the left before: a split costs the logarithm of n, not n. Ranks are halves, and all
/// sums of them exact.
struct Scratch {
    /// Different values, ascending.
    levels: Vec<f64>,
    /// From a level on: Σ g, and Σ g·U.
    behind: Vec<[f64; 2]>,
    /// Σ g·U².
    square: f64,
    /// How many are to the left at a level, and Σ g behind each of them: a tree of sums (P. M.
    /// Fenwick, "A new data structure for cumulative frequency tables", 1994).
    left: Vec<[f64; 2]>,
}

impl Scratch {
    fn new(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (mut levels, mut upto, mut count) = (Vec::new(), Vec::new(), 0);
        for same in sorted.chunk_by(|a, b| a.total_cmp(b).is_eq()) {
            count += same.len();
            levels.push(same[0]);
            upto.push(count as f64);
        }
        let (mut behind, mut square) = (vec![[0.0; 2]; levels.len()], 0.0);
        for at in (1..levels.len()).rev() {
            let (gap, upto) = (levels[at] - levels[at - 1], upto[at - 1]);
            behind[at - 1] = [behind[at][0] + gap, behind[at][1] + gap * upto];
            square += gap * upto * upto;
        }
        Self { left: vec![[0.0; 2]; levels.len() + 1], levels, behind, square }
    }

    /// The level of each value.
    fn places(&self, values: &[f64]) -> Vec<usize> {
        values.iter().map(|value| self.levels.partition_point(|known| known < value)).collect()
    }

    /// Where both sides of a split differ most, and by how much. None where all values are equal.
    fn best(&mut self, places: &[usize], least: usize) -> Option<(usize, f64)> {
        let n = places.len() as f64;
        self.left.fill([0.0; 2]);
        // Σ g·F², Σ g·F·U, and Σ g behind all that are to the left.
        let (mut squares, mut products, mut all) = (0.0, 0.0, 0.0);
        let mut best: Option<(usize, f64)> = None;
        for (at, &place) in places.iter().enumerate() {
            let [gaps, weighted] = self.behind[place];
            let [below, behind_below] = self.upto(place);
            // Σ g·F from this level on: those below it count from here, the others from where they
            // are.
            squares += 2.0 * (below * gaps + all - behind_below) + gaps;
            products += weighted;
            all += gaps;
            self.add(place, gaps);
            let m = at as f64 + 1.0;
            if at + 1 < least || places.len() - at - 1 < least {
                continue;
            }
            let sum = n * n * squares - 2.0 * n * m * products + m * m * self.square;
            let statistic = 2.0 * sum / (n * m * (n - m));
            if statistic > best.map_or(0.0, |(_, most)| most) {
                best = Some((at + 1, statistic));
            }
        }
        best
    }

    /// The sums up to a level.
    fn upto(&self, place: usize) -> [f64; 2] {
        let (mut node, mut sum) = (place + 1, [0.0; 2]);
        while node > 0 {
            sum = [sum[0] + self.left[node][0], sum[1] + self.left[node][1]];
            node &= node - 1;
        }
        sum
    }

    fn add(&mut self, place: usize, gaps: f64) {
        let mut node = place + 1;
        while let Some(sum) = self.left.get_mut(node) {
            *sum = [sum[0] + 1.0, sum[1] + gaps];
            node += node & node.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::noise::{autoregressive, normal};
    use proptest::prelude::*;

    #[test]
    fn planted_shifts_are_found_where_they_are() {
        let mut random = generator(11, 0);
        let level = |k: usize| if (80..150).contains(&k) { 2.5 } else { 0.0 };
        let values: Vec<f64> = (0..240).map(|k| level(k) + normal(&mut random)).collect();
        let found = splits(&values, 1);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].at.abs_diff(80) <= 4 && found[1].at.abs_diff(150) <= 4, "{found:?}");
        assert!(found.iter().all(|split| split.p_value > 0.0 && split.p_value <= LEVEL));
    }

    #[test]
    fn a_wider_spread_alone_is_a_change() {
        let mut random = generator(12, 0);
        let values: Vec<f64> =
            (0..300).map(|k| if k < 150 { 1.0 } else { 6.0 } * normal(&mut random)).collect();
        let found = splits(&values, 1);
        assert!(!found.is_empty() && found[0].at.abs_diff(150) < 20, "{found:?}");
    }

    /// In how many of so many series without change one is found.
    fn alarms(rho: f64, series: usize, seed: u64) -> usize {
        let mut random = generator(seed, 1);
        (0..series)
            .filter(|one| !splits(&autoregressive(&mut random, rho, 150), *one as u64).is_empty())
            .count()
    }

    #[test]
    fn false_alarms_are_as_rare_as_the_level_says() {
        // Binomial(300, 0.01): more than 12 once in 40,000.
        let alarms = alarms(0.0, 300, 5);
        assert!(alarms <= 12, "{alarms} of 300");
    }

    #[test]
    fn resemblance_of_neighbours_is_no_change() {
        // Permuting values one by one finds a change in more than every second such series.
        let alarms = alarms(0.6, 300, 6);
        assert!(alarms <= 12, "{alarms} of 300");
    }

    #[test]
    fn a_step_among_resembling_values_is_found() {
        let mut random = generator(13, 0);
        let found = (0..10).filter(|seed| {
            let step = autoregressive(&mut random, 0.4, 200).into_iter().enumerate();
            let values: Vec<f64> = step.map(|(k, value)| value + if k < 120 { 0.0 } else { 4.0 }).collect();
            splits(&values, *seed).iter().any(|split| split.at.abs_diff(120) <= 3)
        });
        assert!(found.count() >= 9);
    }

    #[test]
    fn nothing_changes_in_what_is_constant_or_short() {
        assert_eq!(splits(&[3.0; 100], 0), []);
        assert_eq!(splits(&[1.0, 2.0, 3.0], 0), []);
        assert_eq!(splits(&[], 0), []);
    }

    proptest! {
        /// The statistic over levels is that over all pairs: 2 E|X−Y| − E|X−X'| − E|Y−Y'| (Székely
        /// and Rizzo 2004).
        #[test]
        fn the_statistic_is_the_energy_of_both_sides(values in proptest::collection::vec(0i32..9, 10..30)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let mean = |a: &[f64], b: &[f64]| {
                a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs())).sum::<f64>() / (a.len() * b.len()) as f64
            };
            let energy = |at: usize| {
                let (x, y) = values.split_at(at);
                let (m, n) = (x.len() as f64, y.len() as f64);
                m * n / (m + n) * (2.0 * mean(x, y) - mean(x, x) - mean(y, y))
            };
            let truth = (LEAST_SIDE..=values.len() - LEAST_SIDE).map(energy).fold(0.0, f64::max);
            let mut scratch = Scratch::new(&values);
            let found = scratch.best(&scratch.places(&values), LEAST_SIDE).map_or(0.0, |(_, statistic)| statistic);
            prop_assert!((found - truth).abs() < 1e-9, "{} {}", found, truth);
        }

        #[test]
        fn a_permutation_has_the_same_values(values in proptest::collection::vec(0usize..9, 1..50), block in 1usize..9) {
            let mut permuted = Vec::new();
            permute(&values, block, &mut generator(1, 1), &mut permuted);
            let sorted = |mut values: Vec<usize>| { values.sort_unstable(); values };
            prop_assert_eq!(sorted(permuted), sorted(values));
        }
    }
}
