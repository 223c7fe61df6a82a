//! From ring records to samples: the only place that knows what a probe's records mean.

use super::noise;
use super::ring::{Packed, Record};
use super::wakeup;
use model::sample::{Sample, flag};

/// What a converter has counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Releases that passed unserved (wake-up).
    pub missed: u64,
    /// ns that the loop was running (noise).
    pub spin_ns: u64,
    /// Largest error of the counter's fit to CLOCK_MONOTONIC, ns (noise).
    pub clock_error_ns: u64,
}

/// Wake-up records → samples.
#[derive(Debug)]
pub struct WakeupDrain {
    start_ns: i64,
    period_ns: i64,
    next_number: u64,
    seq: u64,
    /// What was counted.
    pub tally: Tally,
}

impl WakeupDrain {
    /// For releases `start + k · period`.
    pub fn new(start_ns: i64, period_ns: i64) -> Self {
        Self { start_ns, period_ns, next_number: 0, seq: 0, tally: Tally::default() }
    }

    /// The sample of a record.
    pub fn convert(&mut self, record: Record) -> Sample {
        let Packed { value: number, kind, lost } = Packed::from_word(record.packed);
        let lost = u64::from(lost);
        // Releases between the last record and this one were either served and lost to a full ring, or missed.
        let missed = number.saturating_sub(self.next_number).saturating_sub(lost);
        self.seq += lost;
        let t_ns = self.start_ns + number as i64 * self.period_ns;
        let mut flags = 0;
        flags |= if self.seq == 0 { flag::FIRST } else { 0 };
        flags |= if kind == wakeup::WARM_UP { flag::WARM_UP } else { 0 };
        flags |= if lost > 0 { flag::RING_GAP } else { 0 };
        let value_ns = record.stamp as i64 - t_ns;
        let sample = Sample {
            t_ns,
            value_ns,
            seq: self.seq,
            missed: u32::try_from(missed).unwrap_or(u32::MAX),
            flags,
        };
        self.tally.missed += missed;
        self.next_number = number + 1;
        self.seq += 1;
        sample
    }
}

/// Noise records → samples. Gaps wait until their stretch is closed, because only then the counter's rate is known.
#[derive(Debug, Default)]
pub struct NoiseDrain {
    gaps: Vec<(u64, Packed)>,
    frame: Option<(u8, u64, u64)>,
    open: Option<Moment>,
    seq: u64,
    /// The stretches so far, CLOCK_MONOTONIC ns.
    pub slices: Vec<[i64; 2]>,
    /// What was counted.
    pub tally: Tally,
}

#[derive(Debug, Clone, Copy)]
struct Moment {
    ticks: u64,
    mono_ns: i64,
    error_ns: u64,
}

impl NoiseDrain {
    /// Takes a record; a closed stretch yields its samples to `emit`.
    pub fn convert<E>(
        &mut self,
        record: Record,
        mut emit: impl FnMut(Sample) -> Result<(), E>,
    ) -> Result<(), E> {
        let packed = Packed::from_word(record.packed);
        match packed.kind {
            noise::LATE => {
                let (t_ns, value_ns) = (record.stamp as i64, packed.value as i64);
                self.slices.push([t_ns, t_ns + value_ns]);
                self.tally.spin_ns += packed.value;
                let sample = self.next(t_ns, value_ns, packed.lost);
                return emit(sample);
            }
            noise::GAP => self.gaps.push((record.stamp, packed)),
            noise::OPEN | noise::CLOSE => self.frame = Some((packed.kind, record.stamp, packed.value)),
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
        self.slices.push([open.mono_ns, close.mono_ns]);
        self.tally.spin_ns += (close.mono_ns - open.mono_ns).max(0) as u64;
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
        Sample { t_ns, value_ns, seq, missed: 0, flags: if lost > 0 { flag::RING_GAP } else { 0 } }
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
        let first = drain.convert(record(1_000_010_000, 0, wakeup::WARM_UP, 0));
        assert_eq!((first.value_ns, first.flags), (10_000, flag::FIRST | flag::WARM_UP));
        // Release 1 is served 40.2 ms late; releases 2 to 41 pass meanwhile.
        let late = drain.convert(record(1_041_200_000, 1, wakeup::SERVED, 0));
        assert_eq!((late.value_ns, late.missed), (40_200_000, 0));
        let next = drain.convert(record(1_042_005_000, 42, wakeup::SERVED, 0));
        assert_eq!((next.value_ns, next.missed, next.seq), (5_000, 40, 2));
        assert_eq!(drain.tally.missed, 40);
    }

    #[test]
    fn records_lost_to_the_ring_are_not_missed_releases() {
        let mut drain = WakeupDrain::new(0, 1000);
        drain.convert(record(10, 0, wakeup::SERVED, 0));
        let sample = drain.convert(record(6_020, 6, wakeup::SERVED, 3));
        assert_eq!((sample.missed, sample.seq, sample.flags), (2, 4, flag::RING_GAP));
    }

    #[test]
    fn an_early_wake_up_is_negative() {
        let mut drain = WakeupDrain::new(1000, 1000);
        assert_eq!(drain.convert(record(990, 0, wakeup::SERVED, 0)).value_ns, -10);
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
        assert_eq!(drain.slices, [[500_000, 510_000], [520_000, 520_700]]);
        assert_eq!(drain.tally, Tally { missed: 0, spin_ns: 10_700, clock_error_ns: 40 });
    }
}
