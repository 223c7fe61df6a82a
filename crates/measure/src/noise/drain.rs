//! Records of the noise probe as samples.

use super::{CLOSE, GAP, LATE, OPEN};
use crate::kind::{Drain, Drained, LoopResult};
use crate::own;
use crate::ring::{Packed, Record};
use model::probe::ProbeDetail;
use model::run::ProbeRecord;
use model::sample::{Sample, flag};
use model::usage::Stretch;

/// Noise records → samples. Gaps wait until their stretch is closed, because only then the
/// counter's rate is known.
#[derive(Debug, Default)]
pub(super) struct NoiseDrain {
    gaps: Vec<(u64, Packed)>,
    frame: Option<(u8, u64, u64)>,
    open: Option<Moment>,
    seq: u64,
    /// Where the preheat ends, CLOCK_MONOTONIC ns.
    measured_ns: i64,
    assembler: own::Assembler,
    /// The stretches so far.
    slices: Vec<Stretch>,
    /// Largest error of the counter's fit to CLOCK_MONOTONIC, ns.
    error_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Moment {
    ticks: u64,
    mono_ns: i64,
    error_ns: u64,
}

/// A stretch begins where its counter says, to the ns; so much of rounding does not make it one of
/// the preheat.
const ROUNDING_NS: i64 = 1_000;

impl NoiseDrain {
    /// For a measurement that begins, once it has preheated, at this time.
    pub(super) fn new(measured_ns: i64) -> Self {
        Self { measured_ns, ..Self::default() }
    }

    fn close(&mut self, open: Moment, close: Moment, out: &mut Drained) {
        let ticks = close.ticks.wrapping_sub(open.ticks).max(1);
        let ns_per_tick = (close.mono_ns - open.mono_ns) as f64 / ticks as f64;
        self.ran(open.mono_ns, close.mono_ns, out);
        self.error_ns = self.error_ns.max(open.error_ns).max(close.error_ns);
        for (start, packed) in std::mem::take(&mut self.gaps) {
            let t_ns = open.mono_ns + (start.wrapping_sub(open.ticks) as f64 * ns_per_tick) as i64;
            let value_ns = (packed.value as f64 * ns_per_tick).round() as i64;
            out.push(self.next(t_ns, value_ns, packed.lost), &[]);
        }
    }

    fn next(&mut self, t_ns: i64, value_ns: i64, lost: u16) -> Sample {
        let seq = self.seq + u64::from(lost);
        self.seq = seq + 1;
        let gap = if lost > 0 { flag::RING_GAP } else { 0 };
        let warm_up = if self.preheats(t_ns) { flag::WARM_UP } else { 0 };
        Sample { t_ns, value_ns, seq, missed: 0, flags: gap | warm_up }
    }

    /// Counts a stretch, or a part of one in which the loop should have run, if it is not of the
    /// preheat.
    fn ran(&mut self, t0_ns: i64, t1_ns: i64, out: &mut Drained) {
        if !self.preheats(t0_ns) {
            self.slices.push(Stretch { t0_ns, t1_ns });
            out.stretches.push(Stretch { t0_ns, t1_ns });
        }
    }

    fn preheats(&self, t_ns: i64) -> bool {
        t_ns < self.measured_ns - ROUNDING_NS
    }
}

impl Drain for NoiseDrain {
    /// A stretch that closes gives out its gaps.
    fn convert(&mut self, record: Record, out: &mut Drained) {
        let packed = Packed::from_word(record.packed);
        match packed.kind {
            LATE => {
                let (t_ns, value_ns) = (record.stamp as i64, packed.value as i64);
                self.ran(t_ns, t_ns + value_ns, out);
                out.push(self.next(t_ns, value_ns, packed.lost), &[]);
            }
            GAP => self.gaps.push((record.stamp, packed)),
            OPEN | CLOSE => self.frame = Some((packed.kind, record.stamp, packed.value)),
            own::BEGAN..=own::CPU_TIME => {
                out.growths.extend(self.assembler.add(record.stamp, packed.value, packed.kind));
            }
            _ => {
                let Some((kind, ticks, error_ns)) = self.frame.take() else { return };
                let moment = Moment { ticks, mono_ns: record.stamp as i64, error_ns };
                if kind == OPEN {
                    self.open = Some(moment);
                } else if let Some(open) = self.open.take() {
                    self.close(open, moment, out);
                }
            }
        }
    }

    /// What was stored after the kernel took the CPU is no part of the measurement.
    fn account(&self, record: &mut ProbeRecord, result: LoopResult) {
        let until_ns = record.taken_ns.unwrap_or(i64::MAX);
        let ProbeDetail::Noise(noise) = &mut record.detail else { return };
        let until = |slice: &Stretch| Stretch { t1_ns: slice.t1_ns.min(until_ns), ..*slice };
        noise.slices = self.slices.iter().map(until).collect();
        if record.taken_ns.is_some() {
            noise.slices.retain(|slice| slice.t0_ns < slice.t1_ns);
        }
        noise.spin_ns = noise.slices.iter().map(|slice| (slice.t1_ns - slice.t0_ns).max(0) as u64).sum();
        (noise.iterations, noise.clock_error_ns) = (result.iterations, Some(self.error_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::super::CLOCK;
    use super::*;
    use model::sample::{Policy, ProbeKind};

    fn record(stamp: u64, value: u64, kind: u8, lost: u16) -> Record {
        Record { stamp, packed: Packed { value, kind, lost }.word() }
    }

    #[test]
    fn gaps_are_placed_between_their_frames() {
        let mut drain = NoiseDrain::default();
        let mut out = Drained::default();
        let records = [
            record(1_000, 40, OPEN, 0),
            record(500_000, 0, CLOCK, 0),
            record(3_000, 2_000, GAP, 0),
            record(9_000, 1_000, GAP, 2),
            record(21_000, 30, CLOSE, 0),
            record(510_000, 0, CLOCK, 0),
        ];
        // The next stretch began 700 ns late.
        let late = record(520_000, 700, LATE, 1);
        for next in records.into_iter().chain([late]) {
            drain.convert(next, &mut out);
        }
        // Two ticks a ns.
        let seen: Vec<_> =
            out.samples.iter().map(|sample| (sample.t_ns, sample.value_ns, sample.seq)).collect();
        assert_eq!(seen, [(501_000, 1_000, 0), (504_000, 500, 3), (520_000, 700, 5)]);
        let mut record = ProbeRecord::of(ProbeKind::Noise, 0, Policy::other());
        drain.account(&mut record, LoopResult { iterations: 9, ..LoopResult::default() });
        assert_eq!(record.slices(), [[500_000, 510_000], [520_000, 520_700]]);
        let counted = |record: &ProbeRecord| {
            let noise = record.noise().unwrap();
            (noise.spin_ns, noise.iterations, noise.clock_error_ns)
        };
        assert_eq!(counted(&record), (10_700, 9, Some(40)));
        record.taken_ns = Some(505_000);
        drain.account(&mut record, LoopResult::default());
        assert_eq!((record.slices(), counted(&record)), (vec![[500_000, 505_000]], (5_000, 0, Some(40))));
    }
}
