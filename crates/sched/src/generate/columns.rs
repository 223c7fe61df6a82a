//! Utilizations and periods of several sets side by side, a set a lane, so that a vector unit draws
//! all of them at once.
//!
//! Every lane does the same arithmetic in the same order whatever their number, so a set drawn
//! alone and one drawn among sixteen have the same bits.
//!
//! Utilizations uniform over the simplex, the law of UUniFast (Bini and Buttazzo, "Measuring the
//! performance of schedulability tests", Real-Time Systems 30, 2005), as exponential numbers
//! divided by their sum (Devroye 1986, ch. V.2): no powers, no chain from one to the next.

use super::periods::{Law, greatest_of};
use super::portable::{ln, nearest};
use super::stream::{unit, word};

/// Task k of set l in `[k][l]`; periods do not fall with k. Whole numbers of ns.
#[derive(Debug, Clone)]
pub(crate) struct Columns<const L: usize> {
    pub(crate) periods: Vec<[f64; L]>,
    pub(crate) costs: Vec<[f64; L]>,
}

impl<const L: usize> Columns<L> {
    pub(crate) fn new(tasks: usize) -> Self {
        Self { periods: vec![[0.0; L]; tasks], costs: vec![[0.0; L]; tasks] }
    }

    /// Puts shares of `total` into the costs, uniform over the simplex. Words 0 to n - 1 of each
    /// stream.
    #[inline(always)]
    pub(super) fn draw_shares(&mut self, keys: &[u64; L], total: f64) {
        let mut sum = [0.0; L];
        for (k, row) in self.costs.iter_mut().enumerate() {
            for l in 0..L {
                row[l] = -ln(unit(word(keys[l], k as u64)));
                sum[l] += row[l];
            }
        }
        let mut scale = [0.0; L];
        for l in 0..L {
            scale[l] = total / sum[l];
        }
        for row in &mut self.costs {
            for l in 0..L {
                row[l] *= scale[l];
            }
        }
    }

    /// Draws periods. Words n to 2n of each stream: the gaps between n uniform numbers and the
    /// ends.
    #[inline(always)]
    pub(super) fn draw_periods(&mut self, keys: &[u64; L], law: &Law) {
        let tasks = self.periods.len() as u64;
        let mut sum = [0.0; L];
        for (k, row) in self.periods.iter_mut().enumerate() {
            for l in 0..L {
                sum[l] -= ln(unit(word(keys[l], tasks + k as u64)));
            }
            *row = sum;
        }
        let mut scale = [0.0; L];
        for l in 0..L {
            scale[l] = 1.0 / (sum[l] - ln(unit(word(keys[l], 2 * tasks))));
        }
        for row in &mut self.periods {
            for l in 0..L {
                row[l] *= scale[l];
            }
            law.quantiles(row);
        }
    }

    /// From shares to costs: to the nearest ns, at least one.
    #[inline(always)]
    pub(super) fn scale_costs(&mut self) {
        for (costs, periods) in self.costs.iter_mut().zip(&self.periods) {
            for l in 0..L {
                costs[l] = greatest_of(nearest(costs[l] * periods[l]), 1.0);
            }
        }
    }
}
