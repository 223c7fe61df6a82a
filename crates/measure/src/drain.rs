//! From ring records to samples: the only place that knows what a probe's records mean.

use super::ring::{Packed, Record};
use super::{noise, own, wakeup};
use model::growth::Growth;
use model::sample::{Sample, flag};
use model::usage::Stretch;

/// What a converter has counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    /// Releases that passed unserved (wake-up).
    pub missed: u64,
    /// ns that the loop was running (noise).
    pub spin_ns: u64,
    /// Largest error of the counter's fit to CLOCK_MONOTONIC (noise) or of a release's (SCHED_DEADLINE), ns.
    pub clock_error_ns: u64,
}

/// Wake-up records → samples.
#[derive(Debug)]
pub(crate) struct WakeupDrain {
    /// First release, in its clock, ns; the probe says which where that is not CLOCK_MONOTONIC.
    first_ns: i64,
    period_ns: i64,
    next_number: u64,
    seq: u64,
    moment: Option<(i64, u16)>,
    ahead_ns: Option<i64>,
    /// What was counted.
    pub tally: Tally,
}

/// Two clocks that both follow NTP drift apart by less than this between two reads; what is more is a step.
const STEP_NS: i64 = 20_000;

impl WakeupDrain {
    /// For releases `first + k · period`.
    pub(crate) fn new(first_ns: i64, period_ns: i64) -> Self {
        let tally = Tally::default();
        Self { first_ns, period_ns, next_number: 0, seq: 0, moment: None, ahead_ns: None, tally }
    }

    /// The sample of a record; none where another record belongs to it.
    pub(crate) fn convert(&mut self, record: Record) -> Option<Sample> {
        let Packed { value: number, kind, lost } = Packed::from_word(record.packed);
        if kind == wakeup::BEGIN {
            self.first_ns = record.stamp as i64;
            return None;
        }
        if kind == wakeup::MOMENT {
            self.moment = Some((record.stamp as i64, lost));
            return None;
        }
        let (moment, lost_before) = self.moment.take().unzip();
        // Of a pair whose first half was lost nothing can be placed; records in pairs are lost in pairs or by halves.
        let lost = u64::from(lost) + u64::from(lost_before.unwrap_or(0));
        let lost = if moment.is_some() { lost.div_ceil(2) } else { lost };
        // Releases between the last record and this one were either served and lost to a full ring, or missed.
        let missed = number.saturating_sub(self.next_number).saturating_sub(lost);
        self.seq += lost;
        let release_ns = self.first_ns + number as i64 * self.period_ns;
        let value_ns = record.stamp as i64 - release_ns;
        let mut flags = 0;
        flags |= if self.seq == 0 { flag::FIRST } else { 0 };
        flags |= if kind == wakeup::WARM_UP { flag::WARM_UP } else { 0 };
        flags |= if lost > 0 { flag::RING_GAP } else { 0 };
        let t_ns = moment.map_or(release_ns, |now_ns| now_ns - value_ns);
        if let Some(now_ns) = moment {
            let ahead = record.stamp as i64 - now_ns;
            let stepped = self.ahead_ns.replace(ahead).is_some_and(|last| (ahead - last).abs() > STEP_NS);
            flags |= if stepped { flag::CLOCK_STEP } else { 0 };
        }
        self.tally.missed += missed;
        let missed = u32::try_from(missed).unwrap_or(u32::MAX);
        let sample = Sample { t_ns, value_ns, seq: self.seq, missed, flags };
        self.next_number = number + 1;
        self.seq += 1;
        Some(sample)
    }
}

/// Noise records → samples. Gaps wait until their stretch is closed, because only then the counter's rate is known.
#[derive(Debug, Default)]
pub(crate) struct NoiseDrain {
    gaps: Vec<(u64, Packed)>,
    frame: Option<(u8, u64, u64)>,
    open: Option<Moment>,
    seq: u64,
    /// Where the preheat ends, CLOCK_MONOTONIC ns.
    measured_ns: i64,
    assembler: own::Assembler,
    /// How the thread's own counters grew, since these were last taken away.
    pub growths: Vec<Growth>,
    /// The stretches so far, CLOCK_MONOTONIC ns.
    pub slices: Vec<Stretch>,
    /// What was counted.
    pub tally: Tally,
}

#[derive(Debug, Clone, Copy)]
struct Moment {
    ticks: u64,
    mono_ns: i64,
    error_ns: u64,
}

/// A stretch begins where its counter says, to the ns; so much of rounding does not make it one of the preheat.
const ROUNDING_NS: i64 = 1_000;

impl NoiseDrain {
    /// For a measurement that begins, once it has preheated, at this time.
    pub(crate) fn new(measured_ns: i64) -> Self {
        Self { measured_ns, ..Self::default() }
    }

    /// Takes a record; a closed stretch yields its samples to `emit`.
    pub(crate) fn convert<E>(
        &mut self,
        record: Record,
        mut emit: impl FnMut(Sample) -> Result<(), E>,
    ) -> Result<(), E> {
        let packed = Packed::from_word(record.packed);
        match packed.kind {
            noise::LATE => {
                let (t_ns, value_ns) = (record.stamp as i64, packed.value as i64);
                self.ran(t_ns, t_ns + value_ns);
                let sample = self.next(t_ns, value_ns, packed.lost);
                return emit(sample);
            }
            noise::GAP => self.gaps.push((record.stamp, packed)),
            noise::OPEN | noise::CLOSE => self.frame = Some((packed.kind, record.stamp, packed.value)),
            own::BEGAN..=own::CPU_TIME => {
                self.growths.extend(self.assembler.add(record.stamp, packed.value, packed.kind));
            }
            _ => {
                let Some((kind, ticks, error_ns)) = self.frame.take() else { return Ok(()) };
                let moment = Moment { ticks, mono_ns: record.stamp as i64, error_ns };
                if kind == noise::OPEN {
                    self.open = Some(moment);
                } else if let Some(open) = self.open.take() {
                    return self.close(open, moment, emit);
                }
            }
        }
        Ok(())
    }

    fn close<E>(
        &mut self,
        open: Moment,
        close: Moment,
        mut emit: impl FnMut(Sample) -> Result<(), E>,
    ) -> Result<(), E> {
        let ticks = close.ticks.wrapping_sub(open.ticks).max(1);
        let ns_per_tick = (close.mono_ns - open.mono_ns) as f64 / ticks as f64;
        self.ran(open.mono_ns, close.mono_ns);
        self.tally.clock_error_ns = self.tally.clock_error_ns.max(open.error_ns).max(close.error_ns);
        for (start, packed) in std::mem::take(&mut self.gaps) {
            let t_ns = open.mono_ns + (start.wrapping_sub(open.ticks) as f64 * ns_per_tick) as i64;
            let value_ns = (packed.value as f64 * ns_per_tick).round() as i64;
            emit(self.next(t_ns, value_ns, packed.lost))?;
        }
        Ok(())
    }

    fn next(&mut self, t_ns: i64, value_ns: i64, lost: u16) -> Sample {
        let seq = self.seq + u64::from(lost);
        self.seq = seq + 1;
        let gap = if lost > 0 { flag::RING_GAP } else { 0 };
        let warm_up = if self.preheats(t_ns) { flag::WARM_UP } else { 0 };
        Sample { t_ns, value_ns, seq, missed: 0, flags: gap | warm_up }
    }

    /// Counts a stretch, or a part of one in which the loop should have run, if it is not of the preheat.
    fn ran(&mut self, t0_ns: i64, t1_ns: i64) {
        if !self.preheats(t0_ns) {
            self.slices.push(Stretch { t0_ns, t1_ns });
            self.tally.spin_ns += (t1_ns - t0_ns).max(0) as u64;
        }
    }

    fn preheats(&self, t_ns: i64) -> bool {
        t_ns < self.measured_ns - ROUNDING_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn record(stamp: u64, value: u64, kind: u8, lost: u16) -> Record {
        Record { stamp, packed: Packed { value, kind, lost }.word() }
    }

    #[test]
    fn a_hog_of_forty_periods_is_forty_missed_releases() {
        let mut drain = WakeupDrain::new(1_000_000_000, 1_000_000);
        let first = drain.convert(record(1_000_010_000, 0, wakeup::WARM_UP, 0)).unwrap();
        assert_eq!((first.value_ns, first.flags), (10_000, flag::FIRST | flag::WARM_UP));
        // Release 1 is served 40.2 ms late; releases 2 to 41 pass meanwhile.
        let late = drain.convert(record(1_041_200_000, 1, wakeup::SERVED, 0)).unwrap();
        assert_eq!((late.value_ns, late.missed), (40_200_000, 0));
        let next = drain.convert(record(1_042_005_000, 42, wakeup::SERVED, 0)).unwrap();
        assert_eq!((next.value_ns, next.missed, next.seq), (5_000, 40, 2));
        assert_eq!(drain.tally.missed, 40);
    }

    #[test]
    fn records_lost_to_the_ring_are_not_missed_releases() {
        let mut drain = WakeupDrain::new(0, 1000);
        drain.convert(record(10, 0, wakeup::SERVED, 0));
        let sample = drain.convert(record(6_020, 6, wakeup::SERVED, 3)).unwrap();
        assert_eq!((sample.missed, sample.seq, sample.flags), (2, 4, flag::RING_GAP));
    }

    #[test]
    fn an_early_wake_up_is_negative() {
        let mut drain = WakeupDrain::new(1000, 1000);
        assert_eq!(drain.convert(record(990, 0, wakeup::SERVED, 0)).unwrap().value_ns, -10);
    }

    #[test]
    fn a_clock_that_is_set_is_flagged_and_samples_stay_on_the_monotonic_clock() {
        let mut drain = WakeupDrain::new(0, 1_000_000);
        assert_eq!(drain.convert(record(500_000_000, 0, wakeup::BEGIN, 0)), None);
        let mut pair = |mono: u64, stamp: u64, number: u64| {
            assert_eq!(drain.convert(record(mono, 0, wakeup::MOMENT, 0)), None);
            drain.convert(record(stamp, number, wakeup::SERVED, 0)).unwrap()
        };
        let first = pair(10_005_000, 500_005_000, 0);
        assert_eq!((first.t_ns, first.value_ns, first.flags), (10_000_000, 5_000, flag::FIRST));
        // Set forward by 3 ms: releases 1 to 3 are in the past at once.
        let next = pair(10_105_000, 503_105_000, 1);
        assert_eq!((next.value_ns, next.flags & flag::CLOCK_STEP), (2_105_000, flag::CLOCK_STEP));
        let after = pair(12_000_000, 505_000_000, 4);
        assert_eq!((after.missed, after.flags), (2, 0));
    }

    #[test]
    fn gaps_are_placed_between_their_frames() {
        let mut drain = NoiseDrain::default();
        let mut samples = Vec::new();
        let records = [
            record(1_000, 40, noise::OPEN, 0),
            record(500_000, 0, noise::CLOCK, 0),
            record(3_000, 2_000, noise::GAP, 0),
            record(9_000, 1_000, noise::GAP, 2),
            record(21_000, 30, noise::CLOSE, 0),
            record(510_000, 0, noise::CLOCK, 0),
        ];
        // The next stretch began 700 ns late.
        let late = record(520_000, 700, noise::LATE, 1);
        for next in records.into_iter().chain([late]) {
            drain
                .convert(next, |sample| {
                    samples.push(sample);
                    Ok::<_, Infallible>(())
                })
                .unwrap();
        }
        // Two ticks a ns.
        let seen: Vec<_> = samples.iter().map(|sample| (sample.t_ns, sample.value_ns, sample.seq)).collect();
        assert_eq!(seen, [(501_000, 1_000, 0), (504_000, 500, 3), (520_000, 700, 5)]);
        let slices: Vec<[i64; 2]> = drain.slices.iter().map(|one| (*one).into()).collect();
        assert_eq!(slices, [[500_000, 510_000], [520_000, 520_700]]);
        assert_eq!(drain.tally, Tally { missed: 0, spin_ns: 10_700, clock_error_ns: 40 });
    }
}
