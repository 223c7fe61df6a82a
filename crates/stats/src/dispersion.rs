//! How much more events bunch than independent ones would: the variance of counts in blocks over
//! their mean.
//!
//! Interference comes in bursts. A test for independent events takes one burst of eight for eight
//! reasons; dividing counts by their dispersion first (quasi-Poisson: McCullagh & Nelder,
//! "Generalized Linear Models", 2nd ed. 1989, §6.2.3) makes it one.

/// Events below which a dispersion says nothing.
const LEAST_EVENTS: u64 = 5;
/// Blocks below which it says nothing.
const LEAST_BLOCKS: usize = 10;
/// Blocks are also joined by so many, because bursts may be longer than one.
const SCALES: [usize; 2] = [1, 4];

/// Pearson's χ² over its degrees of freedom, the largest over all scales; at least 1. `exposure` in
/// any unit, one a block.
pub fn dispersion(counts: &[u32], exposure: &[u64]) -> f64 {
    SCALES.iter().map(|&scale| at_scale(counts, exposure, scale)).fold(1.0, f64::max)
}

fn at_scale(counts: &[u32], exposure: &[u64], scale: usize) -> f64 {
    let fullest = exposure.iter().copied().max().unwrap_or(0) as f64 * scale as f64;
    let joined = counts.chunks_exact(scale).zip(exposure.chunks_exact(scale));
    let sums = joined.map(|(counts, exposure)| {
        (counts.iter().map(|&count| u64::from(count)).sum::<u64>(), exposure.iter().sum::<u64>() as f64)
    });
    // A block that was hardly watched has too small an expectation for its square to mean anything.
    let blocks: Vec<(u64, f64)> =
        sums.filter(|(_, exposure)| *exposure >= 0.2 * fullest && *exposure > 0.0).collect();
    let events: u64 = blocks.iter().map(|block| block.0).sum();
    if blocks.len() < LEAST_BLOCKS || events < LEAST_EVENTS {
        return 1.0;
    }
    let rate = events as f64 / blocks.iter().map(|block| block.1).sum::<f64>();
    let squares: f64 = blocks
        .iter()
        .map(|(count, exposure)| (*count as f64 - rate * exposure).powi(2) / (rate * exposure))
        .sum();
    squares / (blocks.len() - 1) as f64
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_one_reason() {
        let mut counts = vec![0u32; 100];
        counts[40] = 8;
        assert!((dispersion(&counts, &vec![1; 100]) - 8.0).abs() < 0.1);
    }

    #[test]
    fn even_counts_are_not_made_better_than_poisson() {
        assert_eq!(dispersion(&[3; 100], &[1; 100]), 1.0);
    }

    #[test]
    fn unequal_watching_is_no_bunching() {
        let exposure: Vec<u64> = (0..100).map(|i| if i % 2 == 0 { 10 } else { 30 }).collect();
        let counts: Vec<u32> = exposure.iter().map(|e| *e as u32).collect();
        assert_eq!(dispersion(&counts, &exposure), 1.0);
    }

    #[test]
    fn few_events_or_blocks_say_nothing() {
        assert_eq!(dispersion(&[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[1; 11]), 1.0);
        assert_eq!(dispersion(&[50, 0, 0], &[1; 3]), 1.0);
    }
}
