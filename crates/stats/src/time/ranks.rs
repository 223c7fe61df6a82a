//! Values as ranks: what every test of this room works on, so that one outlier neither makes nor
//! hides anything.

/// Ranks from 1; equal values share the mean of theirs.
pub(crate) fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for same in order.chunk_by(|&a, &b| values[a].total_cmp(&values[b]).is_eq()) {
        let rank = before as f64 + f64::midpoint(1.0, same.len() as f64);
        same.iter().for_each(|&at| ranks[at] = rank);
        before += same.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_values_share() {
        assert_eq!(mid_ranks(&[5.0, 1.0, 5.0, 9.0]), [2.5, 1.0, 2.5, 4.0]);
    }

    proptest! {
        #[test]
        fn ranks_keep_the_order_and_their_sum(values in proptest::collection::vec(-5i32..5, 0..40)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let ranks = mid_ranks(&values);
            let n = values.len() as f64;
            prop_assert!((ranks.iter().sum::<f64>() - n * (n + 1.0) / 2.0).abs() < 1e-9);
            for (a, x) in values.iter().enumerate() {
                for (b, y) in values.iter().enumerate() {
                    prop_assert_eq!(x < y, ranks[a] < ranks[b]);
                }
            }
        }
    }
}
