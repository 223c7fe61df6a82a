//! The samples that stand out, each burst once: what periods are looked for in.
//!
//! A value is a spike where [`crate::peaks`] says so; a noise probe stores nothing but what stands
//! out. Neighbours are one spike, at its largest value: one long disturbance is late several
//! releases in a row, and that is no period.

use crate::peaks::stands_out_from;

/// One spike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spike {
    /// When, CLOCK_MONOTONIC ns.
    pub t_ns: i64,
    /// Its largest value.
    pub value_ns: i64,
}

/// The most spikes of one search.
const MOST: usize = 1024;
/// How many of the largest are looked at by themselves: close enough that few strays are added to
/// the spikes of a period from one to the next.
const LADDER: [usize; 12] = [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 640, MOST];
/// The widest gaps between heights, above which the large ones are looked at by themselves.
const GAPS: usize = 3;
/// Fewer are not looked at.
const LEAST: usize = super::search::LEAST;

/// The value at which samples stand out.
pub fn threshold(samples: &[(i64, i64)], all_stand_out: bool) -> i64 {
    if all_stand_out { i64::MIN } else { stands_out_from(samples.iter().map(|one| one.1)) }
}

/// Samples from a value on, by time; those nearer than `apart_ns` to the one before are one spike.
pub fn spikes(samples: &[(i64, i64)], from_ns: i64, apart_ns: i64) -> Vec<Spike> {
    let mut found: Vec<Spike> = Vec::new();
    let mut last_ns = i64::MIN;
    for &(t_ns, value_ns) in samples.iter().filter(|one| one.1 >= from_ns) {
        match found.last_mut() {
            Some(open) if t_ns.saturating_sub(last_ns) < apart_ns => {
                if value_ns > open.value_ns {
                    *open = Spike { t_ns, value_ns };
                }
            }
            _ => found.push(Spike { t_ns, value_ns }),
        }
        last_ns = t_ns;
    }
    found
}

/// Heights at which a set of spikes may be cut: so that the largest few, more and many are left,
/// and at the widest gaps between heights, as ratios. Descending, the last takes all or as many as
/// are looked at.
pub(crate) fn levels(spikes: &[Spike]) -> Vec<i64> {
    let mut heights: Vec<i64> = spikes.iter().map(|spike| spike.value_ns).collect();
    heights.sort_unstable_by_key(|height| std::cmp::Reverse(*height));
    heights.truncate(MOST);
    let mut levels: Vec<i64> = LADDER.iter().filter_map(|many| heights.get(many - 1)).copied().collect();
    levels.extend(heights.last());
    levels.extend(gaps(&heights).into_iter().map(|place| heights[place - 1]));
    levels.sort_unstable_by_key(|level| std::cmp::Reverse(*level));
    levels.dedup();
    levels
}

/// Places behind which the widest gaps lie, of heights that descend; at least [`LEAST`] are before
/// each.
pub(crate) fn gaps(heights: &[i64]) -> Vec<usize> {
    let ratio = |place: &usize| heights[*place - 1] as f64 / heights[*place].max(1) as f64;
    let mut places: Vec<usize> = (LEAST..heights.len()).filter(|place| ratio(place) > 1.1).collect();
    places.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
    places.truncate(GAPS);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_burst_is_one_spike_at_its_largest() {
        let samples = [(0, 10), (1, 900), (2, 2_000), (3, 700), (50, 10), (90, 800), (91, 10)];
        let found = spikes(&samples, 500, 4);
        assert_eq!(found, [Spike { t_ns: 2, value_ns: 2_000 }, Spike { t_ns: 90, value_ns: 800 }]);
    }

    #[test]
    fn heights_are_cut_where_they_part() {
        let spike = |k: i64| Spike { t_ns: k, value_ns: if k % 10 == 0 { 6_000 + k } else { 2_000 + k } };
        let levels = levels(&(0..60).map(spike).collect::<Vec<_>>());
        assert!(levels.contains(&6_000) && levels.last() == Some(&2_001), "{levels:?}");
    }

    proptest! {
        #[test]
        fn the_largest_is_never_lost(values in proptest::collection::vec(0i64..1_000, 1..100), apart in 1i64..20) {
            let samples: Vec<(i64, i64)> = values.iter().enumerate().map(|(k, value)| (k as i64, *value)).collect();
            let found = spikes(&samples, 500, apart);
            let most = values.iter().copied().filter(|value| *value >= 500).max();
            prop_assert_eq!(found.iter().map(|spike| spike.value_ns).max(), most);
            prop_assert!(found.windows(2).all(|pair| pair[0].t_ns < pair[1].t_ns));
            prop_assert!(levels(&found).windows(2).all(|pair| pair[0] > pair[1]));
        }
    }
}
