//! Quantiles by nearest rank.

const WHOLE: u64 = 100_000;

/// The rank, from 1, of the quantile of `parts` in 100,000 among `n`; 0 for n = 0.
pub fn nearest_rank(n: usize, parts: u64) -> usize {
    (n as u128 * u128::from(parts)).div_ceil(u128::from(WHOLE)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_exact_where_floats_are_not() {
        assert_eq!(nearest_rank(1_000_000, 99_999), 999_990);
        assert_eq!(nearest_rank(10, 90_000), 9);
        assert_eq!(nearest_rank(11, 90_000), 10);
        assert_eq!(nearest_rank(0, 50_000), 0);
    }
}
