//! From ring records to jobs: the samples of the periodic probe with their own columns.

use super::{MORE, REFUSED, STAMPS, WARM_UP};
use crate::kind::{Drain, Drained};
use crate::numbering::Numbering;
use crate::ring::{Packed, Record};

/// How far a release may be off, ns, and whether its job was postponed, in the value of a record.
pub(super) struct Placed {
    pub(super) error_ns: u64,
    pub(super) postponed: bool,
}

impl Placed {
    pub(super) fn word(&self) -> u64 {
        self.error_ns << 1 | u64::from(self.postponed)
    }

    fn from_word(word: u64) -> Self {
        Self { error_ns: word >> 1, postponed: word & 1 == 1 }
    }
}

/// Records → samples with their own columns.
#[derive(Debug)]
pub(super) struct PeriodicDrain {
    parts: Vec<(u64, Packed)>,
    /// Records of a job.
    whole: usize,
    numbering: Numbering,
    /// Jobs that ran out of the runtime reserved for them.
    postponed: u64,
    /// How far a release may be off at most, ns.
    error_ns: u64,
}

impl PeriodicDrain {
    /// For jobs with so many counters.
    pub(super) fn new(counters: usize) -> Self {
        Self {
            parts: Vec::with_capacity(STAMPS + counters),
            whole: STAMPS + counters,
            numbering: Numbering::default(),
            postponed: 0,
            error_ns: 0,
        }
    }

    fn job(&mut self, out: &mut Drained) {
        let stamp = |part: usize| self.parts[part].0 as i64;
        let value = |part: usize| self.parts[part].1.value;
        let head = self.parts[0].1;
        let (release_ns, end_ns, placed) = (stamp(0), stamp(3), Placed::from_word(value(3)));
        self.postponed += u64::from(placed.postponed);
        self.error_ns = self.error_ns.max(placed.error_ns);
        let mut own = vec![stamp(1), stamp(2), end_ns, value(2) as i64, value(1) as i64];
        own.extend((STAMPS..self.whole).map(|part| if value(part) == 0 { stamp(part) } else { REFUSED }));
        let (lost, warm_up) = (u64::from(head.lost), head.kind == WARM_UP);
        let sample = self.numbering.sample(head.value, lost, warm_up, release_ns, end_ns - release_ns);
        out.push(sample, &own);
    }
}

impl Drain for PeriodicDrain {
    /// The last record of a job gives out its sample.
    fn convert(&mut self, record: Record, out: &mut Drained) {
        let packed = Packed::from_word(record.packed);
        if packed.kind != MORE {
            self.parts.clear();
        }
        self.parts.push((record.stamp, packed));
        if self.parts.len() == self.whole {
            self.job(out);
        }
    }

    fn error_ns(&self) -> u64 {
        self.error_ns
    }

    fn postponed(&self) -> u64 {
        self.postponed
    }
}

#[cfg(test)]
mod tests {
    use super::super::SERVED;
    use super::*;
    use model::Sample;
    use model::sample::flag;

    fn job_records(release: i64, number: u64, kind: u8, lost: u16, counters: &[(u64, u64)]) -> Vec<Record> {
        let record = |stamp: i64, value, kind, lost| Record {
            stamp: stamp as u64,
            packed: Packed { value, kind, lost }.word(),
        };
        let mut records = vec![
            record(release, number, kind, lost),
            record(release + 10, 3, MORE, 0),
            record(release + 20, 500, MORE, 0),
            record(release + 900, Placed { error_ns: 40, postponed: number > 0 }.word(), MORE, 0),
        ];
        records.extend(counters.iter().map(|&(count, refused)| record(count as i64, refused, MORE, 0)));
        records
    }

    #[test]
    fn records_become_rows_and_lost_jobs_are_distinguished_from_missed_ones() {
        let mut drain = PeriodicDrain::new(2);
        let records = [
            job_records(1_000, 0, WARM_UP, 0, &[(7, 0), (8, 0)]),
            // Of the releases 1 to 5 two were served and lost, three missed.
            job_records(7_000, 6, SERVED, 2, &[(9, 0), (0, 1)]),
        ];
        let mut out = Drained::default();
        records.concat().into_iter().for_each(|record| drain.convert(record, &mut out));
        assert_eq!(
            out.samples[0],
            Sample { t_ns: 1_000, value_ns: 900, seq: 0, missed: 0, flags: flag::FIRST | flag::WARM_UP }
        );
        assert_eq!(out.own[..7], [1_010, 1_020, 1_900, 500, 3, 7, 8]);
        assert_eq!(
            out.samples[1],
            Sample { t_ns: 7_000, value_ns: 900, seq: 3, missed: 3, flags: flag::RING_GAP }
        );
        assert_eq!(out.own[12..], [9, REFUSED]);
        assert_eq!((drain.error_ns, drain.postponed), (40, 1));
    }
}
