//! The probability of a statistic were the labels of runs exchangeable: every way of dealing them,
//! or many drawn ones.
//!
//! Exact for whatever runs are alike inside (Fisher, "The Design of Experiments", 1935, §21); p =
//! (1 + #≥)/(1 + N) for drawn labels, so that it is never 0 (Phipson & Smyth, Statistical
//! Applications in Genetics and Molecular Biology 9 (2010)). Few runs cannot be sure of anything:
//! of three against three the least is 1/10.

use crate::resample::generator;
use rand_chacha::rand_core::Rng;
use serde::Serialize;

/// Divisions that are gone through one by one.
const MOST: u64 = 2_000;

/// A probability with what it could have been at the least.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Exchanged {
    /// Probability of a statistic at least as large.
    pub p: f64,
    /// The least that so many runs can give.
    pub least: f64,
}

/// `statistic` of a labelling (true: second group); `symmetric` where it is as large for groups
/// that are named the other way round.
pub fn p_value(
    first: usize,
    second: usize,
    symmetric: bool,
    statistic: impl Fn(&[bool]) -> f64,
) -> Option<Exchanged> {
    if first == 0 || second == 0 {
        return None;
    }
    let mut labels: Vec<bool> = (0..first + second).map(|run| run >= first).collect();
    let observed = statistic(&labels);
    // Sums of the same numbers in another order differ in the last digits.
    let reaches = |labels: &[bool]| statistic(labels) >= observed * (1.0 - 1e-9);
    let ways = ways(first + second, second);
    // A division and its mirror image are one where the groups are as large.
    let twice = if first == second && symmetric { 2.0 } else { 1.0 };
    if ways <= MOST {
        labels.sort_unstable();
        let mut as_far = 0u64;
        loop {
            as_far += u64::from(reaches(&labels));
            if !next(&mut labels) {
                break;
            }
        }
        return Some(Exchanged { p: as_far as f64 / ways as f64, least: twice / ways as f64 });
    }
    let mut random = generator(2, 0);
    let mut as_far = 0u64;
    for _ in 0..MOST {
        for at in (1..labels.len()).rev() {
            labels.swap(at, ((u64::from(random.next_u32()) * (at as u64 + 1)) >> 32) as usize);
        }
        as_far += u64::from(reaches(&labels));
    }
    let drawn = (MOST + 1) as f64;
    Some(Exchanged { p: (as_far + 1) as f64 / drawn, least: (twice / ways as f64).max(1.0 / drawn) })
}

/// n over k, capped.
fn ways(n: usize, k: usize) -> u64 {
    let step = |ways: u64, at: u64| ways.saturating_mul(n as u64 - at) / (at + 1);
    (0..k.min(n - k) as u64).fold(1, |ways, at| if ways > MOST * 1000 { ways } else { step(ways, at) })
}

/// The next arrangement in order; false behind the last.
fn next(labels: &mut [bool]) -> bool {
    let Some(at) = (1..labels.len()).rev().find(|&at| !labels[at - 1] && labels[at]) else { return false };
    labels.swap(at - 1, at);
    labels[at + 1..].reverse();
    // What is behind is descending, so reversing it sorts it.
    true
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;

    fn means(values: &[f64]) -> impl Fn(&[bool]) -> f64 {
        move |labels| {
            let mean = |second: bool| {
                let of: Vec<f64> = values
                    .iter()
                    .zip(labels)
                    .filter(|(_, label)| **label == second)
                    .map(|(value, _)| *value)
                    .collect();
                of.iter().sum::<f64>() / of.len() as f64
            };
            f64::abs(mean(true) - mean(false))
        }
    }

    #[test]
    fn three_against_three_cannot_do_better_than_a_tenth() {
        let result = p_value(3, 3, true, means(&[1.0, 2.0, 3.0, 11.0, 12.0, 13.0])).unwrap();
        assert_eq!((result.p, result.least), (0.1, 0.1));
        let result =
            p_value(5, 5, true, means(&[1.0, 2.0, 3.0, 4.0, 5.0, 11.0, 12.0, 13.0, 14.0, 15.0])).unwrap();
        assert_eq!(result.p, 2.0 / 252.0);
    }

    #[test]
    fn agrees_with_scipy() {
        // scipy.stats.permutation_test([3,1,4,1,5], [9,2,6,5], |mean difference|, n_resamples=inf,
        // alternative="greater"), version 1.17.1.
        let result = p_value(5, 4, true, means(&[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0])).unwrap();
        assert!((result.p - SCIPY).abs() < 1e-6, "{}", result.p);
    }

    const SCIPY: f64 = 0.158_730_158_730_158_73;

    #[test]
    fn many_runs_are_drawn() {
        let values: Vec<f64> = (0..40).map(|k| f64::from(k % 5) + if k < 20 { 0.0 } else { 50.0 }).collect();
        let result = p_value(20, 20, true, means(&values)).unwrap();
        assert!(result.p < 0.001 && result.p > 0.0, "{result:?}");
        assert_eq!(p_value(0, 3, true, |_| 1.0), None);
    }

    #[test]
    fn every_division_comes_once() {
        let mut labels = vec![false, false, false, true, true];
        let mut seen = std::collections::BTreeSet::new();
        loop {
            assert!(seen.insert(labels.clone()));
            if !next(&mut labels) {
                break;
            }
        }
        assert_eq!(seen.len() as u64, ways(5, 2));
    }
}
