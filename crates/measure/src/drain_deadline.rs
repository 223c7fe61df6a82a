//! From ring records to samples for the wake-up probe under SCHED_DEADLINE, whose releases are the kernel's, not the task's.

use super::drain::{Tally, WakeupDrain};
use super::ring::{Packed, Record};
use super::{wakeup, wakeup_deadline};
use model::sample::{Sample, flag};

/// Records of the wake-up probe under SCHED_DEADLINE → samples. A probe to which the kernel refused that policy gives those of the
/// ordinary loop.
#[derive(Debug)]
pub(crate) struct DeadlineDrain {
    plain: WakeupDrain,
    period_ns: i64,
    release: Option<(i64, u16)>,
    /// Estimates the releases from the wake-ups, where no deadline could be read.
    envelope: Option<Envelope>,
    next_number: u64,
    seq: u64,
    /// Jobs that ran out of the reserved runtime while they measured.
    pub postponed: u64,
    /// What was counted.
    pub tally: Tally,
}

/// Releases are not known: they lie a period apart, through the earliest wake-ups of the warm-up.
#[derive(Debug, Default)]
struct Envelope {
    /// The warm-up so far: number, wake-up, lost before it.
    held: Vec<(u64, i64, u64)>,
    /// Release 0, CLOCK_MONOTONIC ns, once the warm-up is over.
    first_ns: Option<i64>,
}

impl DeadlineDrain {
    /// For jobs a period apart; `plain` takes the records of a probe that was refused.
    pub(crate) fn new(plain: WakeupDrain, period_ns: i64) -> Self {
        let (release, envelope, tally) = (None, None, Tally::default());
        Self { plain, period_ns, release, envelope, next_number: 0, seq: 0, postponed: 0, tally }
    }

    /// Takes a record; a job yields its sample to `emit`, with those that waited for it.
    pub(crate) fn convert<E>(
        &mut self,
        record: Record,
        mut emit: impl FnMut(Sample) -> Result<(), E>,
    ) -> Result<(), E> {
        let Packed { value, kind, lost } = Packed::from_word(record.packed);
        match kind {
            wakeup_deadline::RELEASE | wakeup_deadline::POSTPONED => {
                self.postponed += u64::from(kind == wakeup_deadline::POSTPONED);
                self.tally.clock_error_ns = self.tally.clock_error_ns.max(value);
                self.release = Some((record.stamp as i64, lost));
                return Ok(());
            }
            wakeup_deadline::ENVELOPE => {
                self.envelope = Some(Envelope::default());
                return Ok(());
            }
            _ => {}
        }
        if let Some(mut envelope) = self.envelope.take() {
            let job = (value, record.stamp as i64, u64::from(lost));
            let result = self.place(&mut envelope, job, kind == wakeup::WARM_UP, emit);
            self.envelope = Some(envelope);
            return result;
        }
        let Some((release_ns, lost_before)) = self.release.take() else {
            let sample = self.plain.convert(record);
            self.tally.missed = self.plain.tally.missed;
            return sample.map_or(Ok(()), emit);
        };
        let lost = u64::from(lost) + u64::from(lost_before);
        let sample = self.sample(value, release_ns, record.stamp as i64, lost, kind == wakeup::WARM_UP);
        emit(sample)
    }

    /// Gives out what waited for the warm-up to end: a probe that was stopped in it.
    pub(crate) fn flush<E>(&mut self, mut emit: impl FnMut(Sample) -> Result<(), E>) -> Result<(), E> {
        let Some(mut envelope) = self.envelope.take() else { return Ok(()) };
        let result = self.release_held(&mut envelope, &mut emit);
        self.envelope = Some(envelope);
        result.map(|_| ())
    }

    fn place<E>(
        &mut self,
        envelope: &mut Envelope,
        job: (u64, i64, u64),
        warm_up: bool,
        mut emit: impl FnMut(Sample) -> Result<(), E>,
    ) -> Result<(), E> {
        if warm_up && envelope.first_ns.is_none() {
            envelope.held.push(job);
            return Ok(());
        }
        if envelope.first_ns.is_none() && envelope.held.is_empty() {
            envelope.first_ns = Some(job.1 - job.0 as i64 * self.period_ns);
        }
        let first_ns = self.release_held(envelope, &mut emit)?;
        let (number, woken_ns, lost) = job;
        emit(self.sample(number, first_ns + number as i64 * self.period_ns, woken_ns, lost, warm_up))
    }

    fn release_held<E>(
        &mut self,
        envelope: &mut Envelope,
        emit: &mut impl FnMut(Sample) -> Result<(), E>,
    ) -> Result<i64, E> {
        let earliest = envelope
            .held
            .iter()
            .map(|(number, woken_ns, _)| woken_ns - *number as i64 * self.period_ns)
            .min();
        let first_ns = envelope.first_ns.or(earliest).unwrap_or(0);
        envelope.first_ns = Some(first_ns);
        for (number, woken_ns, lost) in std::mem::take(&mut envelope.held) {
            emit(self.sample(number, first_ns + number as i64 * self.period_ns, woken_ns, lost, true))?;
        }
        Ok(first_ns)
    }

    fn sample(&mut self, number: u64, release_ns: i64, woken_ns: i64, lost: u64, warm_up: bool) -> Sample {
        let missed = number.saturating_sub(self.next_number).saturating_sub(lost);
        self.seq += lost;
        let mut flags = if self.seq == 0 { flag::FIRST } else { 0 };
        flags |= if warm_up { flag::WARM_UP } else { 0 };
        flags |= if lost > 0 { flag::RING_GAP } else { 0 };
        self.tally.missed += missed;
        let missed = u32::try_from(missed).unwrap_or(u32::MAX);
        let sample =
            Sample { t_ns: release_ns, value_ns: woken_ns - release_ns, seq: self.seq, missed, flags };
        self.next_number = number + 1;
        self.seq += 1;
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn record(stamp: u64, value: u64, kind: u8, lost: u16) -> Record {
        Record { stamp, packed: Packed { value, kind, lost }.word() }
    }

    fn deadline_samples(records: &[Record]) -> (DeadlineDrain, Vec<Sample>) {
        let mut drain = DeadlineDrain::new(WakeupDrain::new(1000, 1000), 1000);
        let mut samples = Vec::new();
        for record in records {
            let mut take = |sample| {
                samples.push(sample);
                Ok::<_, Infallible>(())
            };
            drain.convert(*record, &mut take).unwrap();
        }
        (drain, samples)
    }

    #[test]
    fn a_deadline_job_is_late_against_the_release_the_kernel_holds() {
        let (drain, samples) = deadline_samples(&[
            record(50_000, 7, wakeup_deadline::RELEASE, 0),
            record(50_012, 0, wakeup::WARM_UP, 0),
            record(51_000, 3, wakeup_deadline::RELEASE, 0),
            record(53_500, 1, wakeup::SERVED, 0),
            // The kernel began a new row: two releases passed.
            record(54_500, 3, wakeup_deadline::RELEASE, 0),
            record(54_490, 4, wakeup::SERVED, 0),
        ]);
        let seen: Vec<_> = samples.iter().map(|one| (one.t_ns, one.value_ns, one.missed)).collect();
        assert_eq!(seen, [(50_000, 12, 0), (51_000, 2_500, 0), (54_500, -10, 2)]);
        assert_eq!((drain.tally.missed, drain.tally.clock_error_ns, drain.envelope.is_some()), (2, 7, false));
        assert_eq!(samples[0].flags, flag::FIRST | flag::WARM_UP);
    }

    #[test]
    fn without_deadlines_the_earliest_wake_ups_of_the_warm_up_are_the_releases() {
        let (mut drain, mut samples) = deadline_samples(&[
            record(9_000, 0, wakeup_deadline::ENVELOPE, 0),
            record(10_030, 0, wakeup::WARM_UP, 0),
            record(11_010, 1, wakeup::WARM_UP, 0),
            record(14_015, 4, wakeup::SERVED, 0),
        ]);
        let seen: Vec<_> = samples.iter().map(|one| (one.t_ns, one.value_ns, one.missed)).collect();
        assert_eq!(seen, [(10_010, 20, 0), (11_010, 0, 0), (14_010, 5, 2)]);
        assert!(drain.envelope.is_some());
        // Stopped while it warms up, it still gives out what it holds.
        (drain, samples) = deadline_samples(&[
            record(0, 0, wakeup_deadline::ENVELOPE, 0),
            record(10, 0, wakeup::WARM_UP, 0),
        ]);
        assert!(samples.is_empty());
        drain
            .flush(|sample| {
                samples.push(sample);
                Ok::<_, Infallible>(())
            })
            .unwrap();
        assert_eq!(samples.len(), 1);
    }

    #[test]
    fn a_probe_that_was_refused_the_policy_is_an_ordinary_one() {
        let (drain, samples) =
            deadline_samples(&[record(1_020, 0, wakeup::SERVED, 0), record(4_010, 3, wakeup::SERVED, 0)]);
        assert_eq!(samples.iter().map(|one| one.value_ns).collect::<Vec<_>>(), [20, 10]);
        assert_eq!(drain.tally.missed, 2);
    }
}
