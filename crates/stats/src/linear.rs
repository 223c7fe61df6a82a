//! Samples by whole microsecond: the bins of cyclictest's histograms, and of the plots that OSADL
//! draws of them.
//!
//! Logarithmic buckets hold more than a microsecond each from some 9 µs on, so counts of these bins
//! cannot be had from them. Bins are stored where they hold something, up to [`BINS`]; what lies
//! beyond is in no bin, and shows as n less their sum.

/// Number of bins: 0 to 999 µs.
pub const BINS: i64 = 1_000;

/// `[µs, count]`, ascending, of sorted values in ns; what came early is in the first bin.
pub fn by_us(sorted: &[i64]) -> Vec<[i64; 2]> {
    let mut bins: Vec<[i64; 2]> = Vec::new();
    for value_ns in sorted {
        let bin = (*value_ns).max(0) / 1_000;
        if bin >= BINS {
            break;
        }
        match bins.last_mut() {
            Some(last) if last[0] == bin => last[1] += 1,
            _ => bins.push([bin, 1]),
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bin_holds_from_a_whole_microsecond_to_below_the_next() {
        assert_eq!(by_us(&[-20, 999, 1_000, 1_999, 999_999, 1_000_000]), [[0, 2], [1, 2], [999, 1]]);
        assert!(by_us(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn every_sample_is_in_its_bin_or_beyond_all(mut values in proptest::collection::vec(-5_000i64..3_000_000, 0..200)) {
            values.sort_unstable();
            let bins = by_us(&values);
            prop_assert!(bins.windows(2).all(|two| two[0][0] < two[1][0]));
            let beyond = values.iter().filter(|value| **value >= BINS * 1_000).count() as i64;
            prop_assert_eq!(bins.iter().map(|bin| bin[1]).sum::<i64>() + beyond, values.len() as i64);
            for [bin, count] in bins {
                let here = values.iter().filter(|value| (**value).max(0).div_euclid(1_000) == bin).count() as i64;
                prop_assert_eq!(here, count);
            }
        }
    }
}
