//! Utilizations with a given sum, each from 0 to 1, uniform over all such vectors: RandFixedSum.
//!
//! The polytope is cut into simplices of known volume; a walk through a table of their shares picks
//! one, then a point in it (Stafford, "Random vectors with fixed sum", 2006; Emberson, Stafford and
//! Davis, WATERS 2010). The table depends on the number of tasks and the sum alone and is made
//! once.

use super::portable::{exp, ln};
use super::stream::Stream;

/// The table of one (n, U).
#[derive(Debug, Clone)]
pub(super) struct FixedSum {
    tasks: usize,
    sum: f64,
    /// Integer part of the sum: where the walk begins.
    start: usize,
    /// `chance[i][j]`: of stepping down at stage i in column j.
    chance: Vec<Vec<f64>>,
}

impl FixedSum {
    /// For `tasks` ≥ 1 numbers of sum `0 ≤ sum ≤ tasks`.
    pub(super) fn new(tasks: usize, sum: f64) -> Self {
        let n = tasks;
        let start = (sum.floor() as usize).min(n.saturating_sub(1));
        // Distances of the sum from integers, rising and falling along the columns.
        let above = |j: usize| sum - start as f64 + j as f64;
        let below = |j: usize| (start + n) as f64 - j as f64 - sum;
        // Volumes up to a common factor a stage.
        let mut volume = vec![0.0; n + 1];
        if let Some(first) = volume.get_mut(1) {
            *first = 1.0;
        }
        let mut chance = Vec::with_capacity(n.saturating_sub(1));
        for stage in 2..=n {
            let mut next = vec![0.0; n + 1];
            let mut row = vec![0.0; stage];
            for (j, chance) in row.iter_mut().enumerate() {
                let (s1, s2) = (above(j), below(n - stage + j));
                let up = volume[j + 1] * s1 / stage as f64;
                let down = volume[j] * s2 / stage as f64;
                let both = up + down;
                next[j + 1] = both;
                // The smaller part is the more precise one.
                *chance = match both {
                    // Not reached by any walk; the last column has nowhere else to go.
                    0.0 => f64::from(u8::from(j + 1 == stage)),
                    _ if s2 > s1 => down / both,
                    _ => 1.0 - up / both,
                };
            }
            // Only ratios inside a stage matter: kept near the top, nothing that counts underflows.
            let most = next.iter().copied().fold(0.0, f64::max);
            volume = next.into_iter().map(|one| if most > 0.0 { one / most } else { one }).collect();
            chance.push(row);
        }
        Self { tasks, sum, start, chance }
    }

    /// A vector, in no order.
    pub(super) fn draw(&self, stream: &mut Stream) -> Vec<f64> {
        let n = self.tasks;
        let mut drawn = Vec::with_capacity(n);
        let (mut left, mut column) = (self.sum, self.start);
        let (mut offset, mut scale) = (0.0, 1.0);
        for stage in (1..n).rev() {
            let step = f64::from(u8::from(stream.unit() <= self.chance[stage - 1][column]));
            let part = exp(ln(stream.unit()) / stage as f64);
            offset += (1.0 - part) * scale * left / (stage + 1) as f64;
            scale *= part;
            drawn.push((offset + scale * step).clamp(0.0, 1.0));
            left -= step;
            column = column.saturating_sub(step as usize);
        }
        drawn.push((offset + scale * left).clamp(0.0, 1.0));
        for at in (1..n).rev() {
            drawn.swap(at, stream.between(0, at as u64) as usize);
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_kept_and_the_bounds_are() {
        for (n, sum) in
            [(1, 0.7), (2, 1.3), (5, 2.5), (40, 0.8), (40, 15.0), (200, 150.0), (8, 0.0), (8, 8.0)]
        {
            let table = FixedSum::new(n, sum);
            let mut stream = Stream::new(n as u64);
            for _ in 0..200 {
                let drawn = table.draw(&mut stream);
                assert_eq!(drawn.len(), n);
                assert!(drawn.iter().all(|u| (0.0..=1.0).contains(u)), "{drawn:?}");
                let total: f64 = drawn.iter().sum();
                assert!((total - sum).abs() < 1e-9 * (n as f64), "{total} of {sum}");
            }
        }
    }
}
