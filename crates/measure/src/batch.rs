//! Samples that a probe has finished itself, with columns of its own, on their way through the
//! ring.
//!
//! Probes that stamp on two CPUs know a sample only when the exchange is over and the counters are
//! compared. Their loops keep raw stamps in memory of their own; a row is several records, and
//! since nothing is being measured any more the producer waits for room.

use super::kind::{Drain, Drained, Loop, LoopResult, ProbeReport, Window};
use super::ring::{Packed, Record, Ring};
use model::Sample;
use model::probe::ProbeDetail;
use model::sample::flag;
use model::usage::Usage;
use std::io;
use sys::clock;
use sys::counter::Counter;

/// A column of the probe's own: stamp = its value, value = its index.
const COLUMN: u8 = 0;
/// Begins a row: stamp = time of the sample, value = flags in the low 32 bits, samples missed
/// before it above.
const BEGIN: u8 = 1;
/// Ends a row: stamp = the sample's value.
const END: u8 = 2;
/// Where the flags of a row end and the missed ones begin; 12 bits of a record's value are left for
/// those.
const FLAG_BITS: u32 = 32;

/// What the loop of such a probe has found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Finished {
    /// As of every loop.
    pub(crate) result: LoopResult,
    /// What the measuring loops used: what lies between them may fault.
    pub(crate) used: Usage,
    /// What it could not do, one sentence each.
    pub(crate) limits: Vec<String>,
}

/// The measuring side of such a probe: `measure` is its loop.
pub(crate) struct Batch<M> {
    detail: ProbeDetail,
    measure: M,
    finished: Finished,
}

impl<M: FnMut(Window<'_>) -> io::Result<Finished> + 'static> Batch<M> {
    /// For a probe that says this of itself.
    pub(crate) fn boxed(detail: ProbeDetail, measure: M) -> Box<dyn Loop> {
        Box::new(Self { detail, measure, finished: Finished::default() })
    }
}

impl<M: FnMut(Window<'_>) -> io::Result<Finished>> Loop for Batch<M> {
    fn run(&mut self, window: Window<'_>) -> io::Result<LoopResult> {
        self.finished = (self.measure)(window)?;
        Ok(self.finished.result)
    }

    fn counter(&self) -> Counter {
        Counter::choose()
    }

    fn detail(&self) -> ProbeDetail {
        self.detail.clone()
    }

    fn close(self: Box<Self>, report: &mut ProbeReport) -> io::Result<()> {
        report.used.faults = self.finished.used.faults;
        report.limits = self.finished.limits;
        Ok(())
    }
}

/// Sleeps until a time, or until asked to stop.
pub(crate) fn wait_until(ring: &Ring, t_ns: i64) {
    const STEP_NS: i64 = 10_000_000;
    while clock::now_ns() < t_ns && !ring.stopped() {
        clock::sleep_until(t_ns.min(clock::now_ns() + STEP_NS));
    }
}

/// Producer: stores a row, waiting for room. Gives up, with `false`, when the probe is asked to
/// stop while the ring is full.
pub(crate) fn push(ring: &mut Ring, t_ns: i64, value_ns: i64, flags: u32, missed: u64, own: &[i64]) -> bool {
    let begin = u64::from(flags) | missed.min(0xfff) << FLAG_BITS;
    let own = own.iter().zip(0..).map(|(value, index)| (*value as u64, index, COLUMN));
    let row = std::iter::once((t_ns as u64, begin, BEGIN)).chain(own).chain([(value_ns as u64, 0, END)]);
    for (stamp, value, kind) in row {
        while !ring.push_or_wait(stamp, value, kind) {
            if ring.stopped() {
                return false;
            }
            clock::sleep_until(clock::now_ns() + 1_000_000);
        }
    }
    true
}

/// Records → rows.
#[derive(Debug, Default)]
pub(crate) struct BatchDrain {
    row: Sample,
    own: Vec<i64>,
    seq: u64,
}

impl Drain for BatchDrain {
    fn convert(&mut self, record: Record, out: &mut Drained) {
        let Packed { value, kind, .. } = Packed::from_word(record.packed);
        match kind {
            BEGIN => {
                let missed = (value >> FLAG_BITS) as u32;
                let first = if self.seq == 0 { flag::FIRST } else { 0 };
                self.seq += u64::from(missed);
                let flags = value as u32 | first;
                self.row = Sample { t_ns: record.stamp as i64, value_ns: 0, seq: self.seq, missed, flags };
                self.own.clear();
            }
            COLUMN => self.own.push(record.stamp as i64),
            _ => {
                self.seq += 1;
                out.push(Sample { value_ns: record.stamp as i64, ..self.row }, &self.own);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::BYTES;
    use proptest::prelude::*;
    use sys::memory::shared_file;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rows_arrive_as_they_were_sent(
            rows in proptest::collection::vec((any::<i64>(), any::<i64>(), 0u32..16, 0u64..4096, proptest::collection::vec(any::<i64>(), 0..9)), 1..40)
        ) {
            let file = shared_file("batch-test", BYTES).unwrap();
            let (mut producer, mut consumer) = (Ring::map(&file).unwrap(), Ring::map(&file).unwrap());
            let mut drain = BatchDrain::default();
            let mut seq = 0;
            for (number, (t_ns, value_ns, flags, missed, own)) in rows.into_iter().enumerate() {
                prop_assert!(push(&mut producer, t_ns, value_ns, flags, missed, &own));
                let mut seen = Drained::default();
                while let Some(record) = consumer.pop() {
                    prop_assert!(seen.samples.is_empty(), "a row ends with its last record");
                    drain.convert(record, &mut seen);
                }
                seq += missed;
                let flags = flags | if number == 0 { flag::FIRST } else { 0 };
                let sample = Sample { t_ns, value_ns, seq, missed: missed as u32, flags };
                prop_assert_eq!((seen.samples, seen.own), (vec![sample], own));
                seq += 1;
            }
        }
    }
}
