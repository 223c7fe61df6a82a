//! From the four stamps of an exchange to its two ways. Pure.
//!
//! With the offset of the two counters known well enough, each way is the difference of two stamps.
//! Where the offset is too vague beside what it corrects, half of the round trip without the
//! target's own time needs no offset, but takes both ways as equally long (the assumption of NTP,
//! RFC 5905).

use crate::offset::Offset;

/// The share of the median that the offset's bound may be: a tenth.
const BOUND_SHARE: u64 = 10;

/// One exchange, in ticks of the counters: `sent` and `returned` of the sender's, `received` and
/// `answered` of the target's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    /// Before the wake-up.
    pub sent: u64,
    /// The target runs.
    pub received: u64,
    /// The target answers.
    pub answered: u64,
    /// The sender runs again.
    pub returned: u64,
}

impl Trip {
    /// From the wake-up to the running target, ticks.
    pub fn there(self, offset: Offset) -> i64 {
        (self.received.wrapping_sub(self.sent) as i64).wrapping_sub(offset.ticks)
    }

    /// From the answer to the running sender, ticks.
    pub fn back(self, offset: Offset) -> i64 {
        (self.returned.wrapping_sub(self.answered) as i64).wrapping_add(offset.ticks)
    }

    /// Half of both ways together, ticks.
    pub fn half(self) -> i64 {
        let round = self.returned.wrapping_sub(self.sent) as i64;
        (round - self.answered.wrapping_sub(self.received) as i64) / 2
    }
}

/// Whether the offset is too vague for the median of the one way.
pub fn too_vague(trips: &[Trip], offset: Offset) -> bool {
    let mut ways: Vec<i64> = trips.iter().map(|trip| trip.there(offset)).collect();
    ways.sort_unstable();
    let Some(median) = ways.get(ways.len().saturating_sub(1) / 2) else { return false };
    *median <= 0 || offset.bound * BOUND_SHARE > median.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_known_offset_gives_both_ways_back(
            sent in 1u64 << 40..1 << 50, there in 1u64..1 << 30, hold in 0u64..999, back in 1u64..1 << 30,
            apart in -(1i64 << 39)..1 << 39,
        ) {
            let received = (sent + there).wrapping_add_signed(apart);
            let trip = Trip { sent, received, answered: received + hold, returned: sent + there + hold + back };
            let offset = Offset { ticks: apart, bound: 0 };
            prop_assert_eq!((trip.there(offset), trip.back(offset)), (there as i64, back as i64));
            prop_assert_eq!(trip.half(), i64::midpoint(there as i64, back as i64));
        }
    }

    #[test]
    fn a_bound_over_a_tenth_of_the_median_is_too_vague() {
        let trip = |way| Trip { sent: 0, received: way, answered: way, returned: 2 * way };
        let trips: Vec<_> = [1000, 1000, 90_000].map(trip).to_vec();
        let offset = |bound| Offset { ticks: 0, bound };
        assert!(!too_vague(&trips, offset(100)));
        assert!(too_vague(&trips, offset(101)));
        assert!(too_vague(&trips, Offset { ticks: 2000, bound: 1 }), "a way of less than nothing");
        assert!(!too_vague(&[], offset(5)));
    }
}
