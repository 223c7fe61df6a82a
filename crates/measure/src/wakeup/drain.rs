//! Records of the wake-up probe as samples.

use super::{BEGIN, MOMENT, WARM_UP};
use crate::kind::{Drain, Drained};
use crate::numbering::Numbering;
use crate::ring::{Packed, Record};
use model::sample::flag;

/// Wake-up records → samples.
#[derive(Debug)]
pub(super) struct WakeupDrain {
    /// First release, in its clock, ns; the probe says which where that is not CLOCK_MONOTONIC.
    first_ns: i64,
    period_ns: i64,
    numbering: Numbering,
    moment: Option<(i64, u16)>,
    ahead_ns: Option<i64>,
}

/// Two clocks that both follow NTP drift apart by less than this between two reads; what is more is
/// a step.
const STEP_NS: i64 = 20_000;

impl WakeupDrain {
    /// For releases `first + k · period`.
    pub(super) fn new(first_ns: i64, period_ns: i64) -> Self {
        Self { first_ns, period_ns, numbering: Numbering::default(), moment: None, ahead_ns: None }
    }
}

impl Drain for WakeupDrain {
    fn convert(&mut self, record: Record, out: &mut Drained) {
        let Packed { value: number, kind, lost } = Packed::from_word(record.packed);
        if kind == BEGIN {
            self.first_ns = record.stamp as i64;
            return;
        }
        if kind == MOMENT {
            self.moment = Some((record.stamp as i64, lost));
            return;
        }
        let (moment, lost_before) = self.moment.take().unzip();
        // Of a pair whose first half was lost nothing can be placed; records in pairs are lost in
        // pairs or by halves.
        let lost = u64::from(lost) + u64::from(lost_before.unwrap_or(0));
        let lost = if moment.is_some() { lost.div_ceil(2) } else { lost };
        let release_ns = self.first_ns + number as i64 * self.period_ns;
        let value_ns = record.stamp as i64 - release_ns;
        let t_ns = moment.map_or(release_ns, |now_ns| now_ns - value_ns);
        let mut sample = self.numbering.sample(number, lost, kind == WARM_UP, t_ns, value_ns);
        if let Some(now_ns) = moment {
            let ahead = record.stamp as i64 - now_ns;
            let stepped = self.ahead_ns.replace(ahead).is_some_and(|last| (ahead - last).abs() > STEP_NS);
            sample.flags |= if stepped { flag::CLOCK_STEP } else { 0 };
        }
        out.push(sample, &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::SERVED;
    use super::*;
    use model::Sample;

    fn record(stamp: u64, value: u64, kind: u8, lost: u16) -> Record {
        Record { stamp, packed: Packed { value, kind, lost }.word() }
    }

    fn convert(drain: &mut WakeupDrain, record: Record) -> Option<Sample> {
        let mut out = Drained::default();
        drain.convert(record, &mut out);
        out.samples.pop()
    }

    #[test]
    fn a_hog_of_forty_periods_is_forty_missed_releases() {
        let mut drain = WakeupDrain::new(1_000_000_000, 1_000_000);
        let first = convert(&mut drain, record(1_000_010_000, 0, WARM_UP, 0)).unwrap();
        assert_eq!((first.value_ns, first.flags), (10_000, flag::FIRST | flag::WARM_UP));
        // Release 1 is served 40.2 ms late; releases 2 to 41 pass meanwhile.
        let late = convert(&mut drain, record(1_041_200_000, 1, SERVED, 0)).unwrap();
        assert_eq!((late.value_ns, late.missed), (40_200_000, 0));
        let next = convert(&mut drain, record(1_042_005_000, 42, SERVED, 0)).unwrap();
        assert_eq!((next.value_ns, next.missed, next.seq), (5_000, 40, 2));
    }

    #[test]
    fn records_lost_to_the_ring_are_not_missed_releases() {
        let mut drain = WakeupDrain::new(0, 1000);
        convert(&mut drain, record(10, 0, SERVED, 0));
        let sample = convert(&mut drain, record(6_020, 6, SERVED, 3)).unwrap();
        assert_eq!((sample.missed, sample.seq, sample.flags), (2, 4, flag::RING_GAP));
    }

    #[test]
    fn an_early_wake_up_is_negative() {
        let mut drain = WakeupDrain::new(1000, 1000);
        assert_eq!(convert(&mut drain, record(990, 0, SERVED, 0)).unwrap().value_ns, -10);
    }

    #[test]
    fn a_clock_that_is_set_is_flagged_and_samples_stay_on_the_monotonic_clock() {
        let mut drain = WakeupDrain::new(0, 1_000_000);
        assert_eq!(convert(&mut drain, record(500_000_000, 0, BEGIN, 0)), None);
        let mut pair = |mono: u64, stamp: u64, number: u64| {
            assert_eq!(convert(&mut drain, record(mono, 0, MOMENT, 0)), None);
            convert(&mut drain, record(stamp, number, SERVED, 0)).unwrap()
        };
        let first = pair(10_005_000, 500_005_000, 0);
        assert_eq!((first.t_ns, first.value_ns, first.flags), (10_000_000, 5_000, flag::FIRST));
        // Set forward by 3 ms: releases 1 to 3 are in the past at once.
        let next = pair(10_105_000, 503_105_000, 1);
        assert_eq!((next.value_ns, next.flags & flag::CLOCK_STEP), (2_105_000, flag::CLOCK_STEP));
        let after = pair(12_000_000, 505_000_000, 4);
        assert_eq!((after.missed, after.flags), (2, 0));
    }
}
