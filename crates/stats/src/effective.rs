//! How many independent samples dependent ones are worth, by blocking.
//!
//! The mean of n samples varies by τ·σ²/n, with τ the integrated autocorrelation time 1 + 2 Σ ρ(k):
//! they are worth n/τ. Sums over blocks of b samples vary by b·σ²·τ once b is long beside τ, so
//! blocks are joined in pairs until b is twenty times the τ that they show (what is missing then is
//! about τ/2b, a fortieth): Flyvbjerg & Petersen, "Error estimates on averages of correlated data",
//! Journal of Chemical Physics 91 (1989); the rule for stopping in the spirit of Sokal's window
//! ("Monte Carlo Methods in Statistical Mechanics", 1989). One pass, no transform, and the same for
//! values and for indicators of reaching a limit.
//!
//! Dependence of the middle says nothing of the tail, and that of the tail nothing of the middle:
//! each limit has its own τ, that of its indicator. Samples that repel each other (τ < 1) are taken
//! for independent.

use serde::{Deserialize, Serialize};

/// Blocks must be as many times as long as τ.
const LONG_ENOUGH: f64 = 20.0;
/// Fewer blocks know their variance too badly.
const LEAST_BLOCKS: usize = 16;
/// The most cells that counts are taken in before they are joined.
pub const CELLS: usize = 1024;

/// An integrated autocorrelation time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tau {
    /// In samples, at least 1.
    pub samples: f64,
    /// Whether it is short beside the series; otherwise it is what the longest blocks showed, and
    /// the truth is larger.
    pub resolved: bool,
}

impl Tau {
    /// Independent samples.
    pub const ONE: Self = Self { samples: 1.0, resolved: true };
}

/// Samples a cell, so that there are at most [`CELLS`].
pub fn cell_length(n: usize) -> usize {
    n.div_ceil(CELLS).max(1)
}

/// τ of samples whose sums over cells of `cell` consecutive ones are given; `variance`: of one
/// sample. The last cell must be whole too. One for samples that do not vary, and where there are
/// too few to say.
pub fn tau(sums: &[f64], cell: usize, variance: f64) -> Tau {
    if variance <= 0.0 || !variance.is_finite() || sums.len() < LEAST_BLOCKS {
        return Tau::ONE;
    }
    let mut blocks = sums.to_vec();
    let mut length = cell as f64;
    loop {
        let shown = spread(&blocks) / (length * variance);
        // What rounding adds is no dependence.
        let samples = if shown > 1.0 + 1e-9 { shown } else { 1.0 };
        let resolved = length >= LONG_ENOUGH * samples;
        if resolved || blocks.len() < 2 * LEAST_BLOCKS {
            return Tau { samples, resolved };
        }
        blocks = blocks.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
        length *= 2.0;
    }
}

/// τ of values in the order of time.
pub fn of_values(values: &[i64]) -> Tau {
    let n = values.len() as f64;
    let mean = values.iter().map(|&value| value as f64).sum::<f64>() / n.max(1.0);
    let off = |value: &i64| *value as f64 - mean;
    let variance = values.iter().map(|value| off(value).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    let cell = cell_length(values.len());
    let sums: Vec<f64> = values.chunks_exact(cell).map(|chunk| chunk.iter().map(off).sum()).collect();
    tau(&sums, cell, variance)
}

/// τ of the indicator of reaching `from_ns`, of values in the order of time.
pub fn of_reaching(values: &[i64], from_ns: i64) -> Tau {
    let cell = cell_length(values.len());
    let counts: Vec<f64> = values
        .chunks_exact(cell)
        .map(|chunk| chunk.iter().filter(|&&value| value >= from_ns).count() as f64)
        .collect();
    of_counts(&counts, cell)
}

/// τ of an indicator by its counts in cells of equal length.
pub fn of_counts(counts: &[f64], cell: usize) -> Tau {
    let n = (counts.len() * cell) as f64;
    let share = counts.iter().sum::<f64>() / n.max(1.0);
    tau(counts, cell, share * (1.0 - share) * n / (n - 1.0).max(1.0))
}

fn spread(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use fixture::Ar1;

    #[test]
    fn an_autoregression_has_the_time_that_its_coefficient_says() {
        for (rho, n) in [(0.0, 100_000), (0.5, 100_000), (0.9, 200_000), (0.98, 400_000)] {
            let found = of_values(&Ar1::new(rho, 3).values(n));
            let truth = (1.0 + rho) / (1.0 - rho);
            // Sixteen blocks or more know a variance to √(2/16); most of these have many more.
            assert!(
                (found.samples / truth - 1.0).abs() < 0.35 && found.resolved,
                "{rho}: {found:?}, not {truth}"
            );
        }
    }

    #[test]
    fn samples_in_rows_are_worth_one_a_row() {
        let rows: Vec<i64> =
            Ar1::new(0.0, 5).values(20_000).into_iter().flat_map(|value| [value; 8]).collect();
        let found = of_values(&rows);
        assert!((found.samples / 8.0 - 1.0).abs() < 0.3, "{found:?}");
        let high = crate::nearest_rank(rows.len(), 99_000);
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        let found = of_reaching(&rows, sorted[high]);
        assert!((found.samples / 8.0 - 1.0).abs() < 0.5, "{found:?}");
    }

    #[test]
    fn what_lasts_as_long_as_the_series_is_not_resolved() {
        let drifting: Vec<i64> = (0..10_000).collect();
        let found = of_values(&drifting);
        assert!(!found.resolved && found.samples > 300.0, "{found:?}");
        assert_eq!(of_values(&[]), Tau::ONE);
        assert_eq!(of_values(&[7; 500]), Tau::ONE);
        assert_eq!(of_reaching(&[7; 500], 8), Tau::ONE);
    }

    #[test]
    fn samples_that_repel_are_not_worth_more_than_they_are() {
        let turns: Vec<i64> = (0..10_000).map(|k| k % 2).collect();
        assert_eq!(of_values(&turns), Tau::ONE);
    }
}
