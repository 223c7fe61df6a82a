//! Three and more groups in an order: does the value rise from each to the next?
//!
//! Test of the trend: Jonckheere, Biometrika 41 (1954), by exchanging the labels of repetitions
//! that are alike in everything else. A neighbouring pair that is the other way round refutes the
//! order whatever the trend, after Holm's adjustment over the pairs.

use super::exchange::twice;
use super::order::{Pair, order, sides};
use super::{ALPHA, Decision, Finding, Quantity, constant};
use crate::random::below;
use crate::rates::holm;
use crate::resample::generator;

/// Labellings that are drawn.
const DRAWS: usize = 4_000;

/// Whether each group has more than the one before it; `or_as_much`: at least as much. One list of
/// groups for each of the levels of what else is varied, all in the same order.
pub fn rising(quantity: Quantity, strata: &[Vec<&[f64]>], or_as_much: bool) -> Decision {
    let whole = |groups: &&Vec<&[f64]>| groups.len() > 1 && groups.iter().all(|group| !group.is_empty());
    let strata: Vec<&Vec<&[f64]>> = strata.iter().filter(whole).collect();
    let Some(first) = strata.first() else { return Decision::NOTHING };
    let neighbours = |at: usize| -> Vec<Pair<'_>> {
        strata.iter().map(|groups| Pair { first: groups[at], second: groups[at + 1] }).collect()
    };
    if first.len() == 2 {
        return order(quantity, &neighbours(0), or_as_much);
    }
    let mut all = strata.iter().flat_map(|groups| groups.iter());
    if quantity == Quantity::Constant && all.all(|group| constant(group)) {
        let step =
            |pair: &[&[f64]]| if or_as_much { pair[0][0] <= pair[1][0] } else { pair[0][0] < pair[1][0] };
        return Decision::known(strata.iter().all(|groups| groups.windows(2).all(step)));
    }
    let against: Vec<f64> =
        (0..first.len() - 1).map(|at| sides(quantity, &neighbours(at), 1.0).more).collect();
    let refuted = holm(&against).into_iter().fold(1.0, f64::min);
    let [rises, falls] = trend(&strata);
    let p_true = refuted.min(falls);
    let finding = if p_true <= ALPHA / 2.0 {
        Finding::Fails
    } else if rises <= ALPHA / 2.0 {
        Finding::Holds
    } else {
        Finding::Undecided
    };
    Decision { finding, p_false: Some(rises), p_true: Some(p_true) }
}

/// The probabilities of a trend upwards at least as strong, and downwards, were there none.
fn trend(strata: &[&Vec<&[f64]>]) -> [f64; 2] {
    let sizes: Vec<Vec<usize>> =
        strata.iter().map(|groups| groups.iter().map(|group| group.len()).collect()).collect();
    let mut values: Vec<Vec<f64>> = strata.iter().map(|groups| groups.concat()).collect();
    let sum = |values: &[Vec<f64>]| sizes.iter().zip(values).map(|(sizes, all)| statistic(sizes, all)).sum();
    let observed: usize = sum(&values);
    let mut random = generator(3, 0);
    let (mut as_high, mut as_low) = (1usize, 1usize);
    for _ in 0..DRAWS {
        for all in &mut values {
            for at in (1..all.len()).rev() {
                all.swap(at, below(at + 1, &mut random));
            }
        }
        let drawn = sum(&values);
        as_high += usize::from(drawn >= observed);
        as_low += usize::from(drawn <= observed);
    }
    [as_high, as_low].map(|count| count as f64 / (DRAWS + 1) as f64)
}

/// Twice the number of pairs of values from an earlier and a later group in which the later is
/// larger, ties as halves.
fn statistic(sizes: &[usize], all: &[f64]) -> usize {
    let mut from = 0;
    let mut sum = 0;
    for size in sizes {
        let (own, later) = (&all[from..from + size], &all[from + size..]);
        sum += own.iter().flat_map(|one| later.iter().map(|other| twice(*one, *other))).sum::<usize>();
        from += size;
    }
    sum
}
