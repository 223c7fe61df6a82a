//! A series over time made short enough for a chart: least and most of slots of equal length, so
//! that no peak is lost.

use crate::serialize_as_array;
use serde::Deserialize;

/// The values of one slot; in JSON `[t_ns, least, most]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Slot {
    /// Start of the slot, or of a slot with one value the time of that.
    pub t_ns: i64,
    /// The least value.
    pub least: i64,
    /// The greatest.
    pub most: i64,
}

serialize_as_array!(Slot { t_ns, least, most });

impl Slot {
    /// A slot of one value.
    pub fn single(t_ns: i64, value: i64) -> Self {
        Self { t_ns, least: value, most: value }
    }
}

/// The most slots of a series.
const SLOTS: i64 = 240;

/// Slots of a series of (time, value), times ascending; a series that is short enough keeps every
/// value.
pub fn slots(points: &[(i64, i64)]) -> Vec<Slot> {
    let (Some(&(first, _)), Some(&(last, _))) = (points.first(), points.last()) else { return Vec::new() };
    if points.len() as i64 <= SLOTS {
        return points.iter().map(|&(t_ns, value)| Slot::single(t_ns, value)).collect();
    }
    let length = i128::from(last.saturating_sub(first).max(0)) + 1;
    let slot = |t_ns: i64| {
        let since = i128::from(t_ns.saturating_sub(first).max(0)).min(length - 1);
        (since * i128::from(SLOTS) / length) as i64
    };
    let start = |slot: i64| first.saturating_add((i128::from(slot) * length / i128::from(SLOTS)) as i64);
    points
        .chunk_by(|a, b| slot(a.0) == slot(b.0))
        .map(|chunk| {
            let values = || chunk.iter().map(|&(_, value)| value);
            let t_ns = if let [(t_ns, _)] = chunk { *t_ns } else { start(slot(chunk[0].0)) };
            Slot { t_ns, least: values().min().unwrap_or(0), most: values().max().unwrap_or(0) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_extreme_is_lost_and_slots_are_few(steps in prop::collection::vec((0i64..1_000_000, any::<i64>()), 0..2_000)) {
            let mut t_ns = 0;
            let points: Vec<(i64, i64)> = steps.iter().map(|(step, value)| { t_ns += step; (t_ns, *value) }).collect();
            let slots = slots(&points);
            prop_assert!(slots.len() as i64 <= SLOTS.max(1));
            prop_assert_eq!(slots.iter().map(|slot| slot.least).min(), points.iter().map(|point| point.1).min());
            prop_assert_eq!(slots.iter().map(|slot| slot.most).max(), points.iter().map(|point| point.1).max());
            prop_assert!(slots.windows(2).all(|two| two[0].t_ns <= two[1].t_ns));
        }
    }
}
