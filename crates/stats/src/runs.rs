//! Whole runs against each other: does a statistic of one kind of run differ from that of another?
//!
//! Samples of one run share its boot, its memory layout and its neighbours, so the run is what is
//! drawn: a thousand samples of one run are one observation of what runs do. Runs of both kinds are
//! made in turns, and neighbours in time are drawn as pairs, so that a machine that drifts drifts
//! for both. Bootstrap of the median ratio, percentile interval (Efron and Tibshirani, "An
//! Introduction to the Bootstrap", 1993, ch. 13); T. Kalibera and R. Jones, "Rigorous benchmarking
//! in reasonable time", ISMM 2013, on runs as the unit.

use crate::resample::generator;
use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

/// Fewer pairs give no interval: five pairs all on one side of 1 happen once in 16 times by chance.
pub const LEAST_PAIRS: usize = 6;
const DRAWS: usize = 4_000;
/// The draws that the interval leaves out at each end, in 1,000.
const TAIL: usize = 25;

/// How two kinds of runs compare in one statistic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Pairs of runs.
    pub pairs: usize,
    /// Median over the pairs of first / second.
    pub ratio: f64,
    /// 95 % interval of that; none with fewer than [`LEAST_PAIRS`].
    pub interval: Option<[f64; 2]>,
}

impl Ratio {
    /// Whether these runs distinguish the two; none without an interval.
    pub fn differs(&self) -> Option<bool> {
        self.interval.map(|[low, high]| low > 1.0 || high < 1.0)
    }
}

/// Compares statistics of runs made in turns; none without pairs of positive values. Draws are the
/// same for the same seed.
pub fn compare(first: &[f64], second: &[f64], seed: u64) -> Option<Ratio> {
    let pairs = first.iter().zip(second).filter(|(one, other)| **one > 0.0 && **other > 0.0);
    let ratios: Vec<f64> = pairs.map(|(one, other)| one / other).collect();
    let ratio = median(&mut ratios.clone())?;
    let interval = (ratios.len() >= LEAST_PAIRS).then(|| {
        let mut generator = generator(seed, 0);
        let pick = |random: u32| ratios[((u64::from(random) * ratios.len() as u64) >> 32) as usize];
        let mut drawn = vec![0.0; ratios.len()];
        let mut medians: Vec<f64> = (0..DRAWS)
            .map(|_| {
                drawn.fill_with(|| pick(generator.next_u32()));
                median(&mut drawn).unwrap_or(ratio)
            })
            .collect();
        medians.sort_unstable_by(f64::total_cmp);
        [medians[DRAWS * TAIL / 1000], medians[DRAWS - 1 - DRAWS * TAIL / 1000]]
    });
    Some(Ratio { pairs: ratios.len(), ratio, interval })
}

/// The middle value, or the mean of the two; none without values. Leaves them in another order.
pub fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let is_odd = values.len() % 2 == 1;
    // Only the middle is looked for: to sort all takes ten times as long for the values of a
    // window.
    let (below, high, _) = values.select_nth_unstable_by(values.len() / 2, f64::total_cmp);
    let low = if is_odd { *high } else { below.iter().copied().max_by(f64::total_cmp)? };
    Some(f64::midpoint(low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_two() {
        assert_eq!(median(&mut [4.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    proptest! {
        #[test]
        fn the_median_is_the_middle_of_the_sorted(values in prop::collection::vec(prop::num::f64::ANY, 1..60)) {
            let mut sorted = values.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let truth = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
            prop_assert_eq!(median(&mut values.clone()).unwrap().to_bits(), truth.to_bits());
        }
    }

    #[test]
    fn the_same_is_not_distinguished_and_a_tenth_more_is() {
        let second: Vec<f64> = (0..12).map(|k| 1000.0 + f64::from(k * 7 % 5) * 30.0).collect();
        let shifted = |factor: f64| {
            second
                .iter()
                .enumerate()
                .map(|(k, value)| value * (factor + (k % 3) as f64 * 0.01 - 0.01))
                .collect::<Vec<_>>()
        };
        assert_eq!(compare(&shifted(1.0), &second, 1).unwrap().differs(), Some(false));
        let more = compare(&shifted(1.1), &second, 1).unwrap();
        assert!(more.differs() == Some(true) && (more.ratio - 1.1).abs() < 0.011, "{more:?}");
        assert_eq!(compare(&second[..3], &second[..3], 1).unwrap().interval, None);
        assert_eq!(compare(&[], &second, 1), None);
    }

    #[test]
    fn the_interval_holds_the_truth_about_as_often_as_it_says() {
        let mut random = generator(7, 1);
        let mut uniform = || f64::from(random.next_u32()) / f64::from(u32::MAX);
        // The sum of four is near enough to a bell.
        let mut figure = || 100.0 + (0..4).map(|_| uniform()).sum::<f64>() * 10.0;
        let held = (0..200)
            .filter(|seed| {
                let (first, second): (Vec<f64>, Vec<f64>) = (0..12).map(|_| (figure(), figure())).unzip();
                compare(&first, &second, *seed).unwrap().differs() == Some(false)
            })
            .count();
        assert!((178..=199).contains(&held), "{held} of 200");
    }

    proptest! {
        #[test]
        fn turning_the_kinds_around_turns_the_ratio_around(
            figures in proptest::collection::vec((1.0f64..1e6, 1.0f64..1e6), 7..15),
        ) {
            let (first, second): (Vec<f64>, Vec<f64>) = figures.into_iter().unzip();
            // An odd number of pairs has a middle one.
            let odd = first.len() - 1 + first.len() % 2;
            let one = compare(&first[..odd], &second[..odd], 3).unwrap();
            let other = compare(&second[..odd], &first[..odd], 3).unwrap();
            prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
        }
    }
}
