//! The wake-up probe under SCHED_DEADLINE, whose releases are the kernel's, not the task's
//! ([`crate::releases`]): its loop, and its records as samples.
//!
//! Where the deadline cannot be read, releases are taken to lie a period apart in CLOCK_MONOTONIC,
//! through the earliest wake-ups of the warm-up: lateness is then against their lower envelope.

use super::drain::WakeupDrain;
use super::{SERVED, WARM_UP, WakeupSpec};
use crate::kind::{Drain, Drained, LoopResult, Window};
use crate::numbering::Numbering;
use crate::releases::{Count, Releases};
use crate::ring::{Packed, Record};
use sys::{clock, sched};

/// Precedes [`SERVED`] and [`WARM_UP`]: stamp = the release in CLOCK_MONOTONIC, ns; value = how far
/// it may be off, ns. The record that follows has the CLOCK_MONOTONIC time at which the task ran,
/// and the number of the release.
const RELEASE: u8 = 4;
/// As [`RELEASE`], of a job that ran out of its reserved runtime before its deadline could be read:
/// the kernel had postponed the deadline by then, by whole periods, which are taken off again.
const POSTPONED: u8 = 6;
/// Precedes them all where no deadline can be read: what follows has no [`RELEASE`]; stamp = first
/// wake-up, CLOCK_MONOTONIC ns.
const ENVELOPE: u8 = 5;

/// Serves the releases of a window until its end or until asked to stop.
pub(super) fn run(spec: &WakeupSpec, releases: &Releases, window: Window<'_>) -> LoopResult {
    let Window { ring, start_ns, duration_ns, .. } = window;
    let end = start_ns + duration_ns;
    clock::sleep_until(start_ns + spec.offset_ns);
    let mut count = Count::new(releases.period_ns(), spec.loops);
    if releases.unread().is_some() {
        sched::yield_now();
        ring.push(clock::now_ns() as u64, 0, ENVELOPE);
    }
    while count.goes_on() && !ring.stopped() {
        sched::yield_now();
        let now = clock::now_ns();
        let release = releases.of_job(now);
        let release_kind = if release.postponed { POSTPONED } else { RELEASE };
        if release.ns >= end {
            count.passed(end);
            break;
        }
        let number = count.served(release.ns);
        let kind = if number < u64::from(spec.warm_up) { WARM_UP } else { SERVED };
        let job = [(release.ns as u64, release.error_ns as u64, release_kind), (now as u64, number, kind)];
        ring.push_all(if releases.unread().is_none() { &job } else { &job[1..] });
        if now >= end {
            count.passed(end);
            break;
        }
    }
    LoopResult { t1_ns: clock::now_ns(), released: count.released, ..LoopResult::default() }
}

/// Records of the wake-up probe under SCHED_DEADLINE → samples. A probe to which the kernel refused
/// that policy gives those of the ordinary loop.
#[derive(Debug)]
pub(super) struct DeadlineDrain {
    plain: WakeupDrain,
    period_ns: i64,
    release: Option<(i64, u16)>,
    /// Estimates the releases from the wake-ups, where no deadline could be read.
    envelope: Option<Envelope>,
    numbering: Numbering,
    /// Jobs that ran out of the reserved runtime while they measured.
    postponed: u64,
    /// How far a release may be off at most, ns.
    error_ns: u64,
}

/// Releases are not known: they lie a period apart, through the earliest wake-ups of the warm-up.
#[derive(Debug, Default)]
struct Envelope {
    /// The warm-up so far.
    held: Vec<Wakeup>,
    /// Release 0, CLOCK_MONOTONIC ns, once the warm-up is over.
    first_ns: Option<i64>,
}

/// A wake-up whose release is not known.
#[derive(Debug)]
struct Wakeup {
    number: u64,
    woken_ns: i64,
    /// Served ones lost before it.
    lost: u64,
}

impl DeadlineDrain {
    /// For jobs a period apart; `plain` takes the records of a probe that was refused.
    pub(super) fn new(plain: WakeupDrain, period_ns: i64) -> Self {
        let numbering = Numbering::default();
        Self { plain, period_ns, release: None, envelope: None, numbering, postponed: 0, error_ns: 0 }
    }

    fn place(&mut self, job: Wakeup, warm_up: bool, out: &mut Drained) {
        let Some(envelope) = &mut self.envelope else { return };
        if warm_up && envelope.first_ns.is_none() {
            envelope.held.push(job);
            return;
        }
        if envelope.first_ns.is_none() && envelope.held.is_empty() {
            envelope.first_ns = Some(job.woken_ns - job.number as i64 * self.period_ns);
        }
        self.flush(out);
        self.give(&job, warm_up, out);
    }

    /// Gives out a wake-up, once it is known where release 0 lies.
    fn give(&mut self, job: &Wakeup, warm_up: bool, out: &mut Drained) {
        let first_ns = self.envelope.as_ref().and_then(|envelope| envelope.first_ns).unwrap_or(0);
        let release_ns = first_ns + job.number as i64 * self.period_ns;
        let value_ns = job.woken_ns - release_ns;
        out.push(self.numbering.sample(job.number, job.lost, warm_up, release_ns, value_ns), &[]);
    }
}

impl Drain for DeadlineDrain {
    fn convert(&mut self, record: Record, out: &mut Drained) {
        let Packed { value, kind, lost } = Packed::from_word(record.packed);
        let warm_up = kind == WARM_UP;
        match kind {
            RELEASE | POSTPONED => {
                self.postponed += u64::from(kind == POSTPONED);
                self.error_ns = self.error_ns.max(value);
                self.release = Some((record.stamp as i64, lost));
            }
            ENVELOPE => self.envelope = Some(Envelope::default()),
            _ if self.envelope.is_some() => {
                let job = Wakeup { number: value, woken_ns: record.stamp as i64, lost: lost.into() };
                self.place(job, warm_up, out);
            }
            _ => match self.release.take() {
                None => self.plain.convert(record, out),
                Some((release_ns, lost_before)) => {
                    let lost = u64::from(lost) + u64::from(lost_before);
                    let value_ns = record.stamp as i64 - release_ns;
                    out.push(self.numbering.sample(value, lost, warm_up, release_ns, value_ns), &[]);
                }
            },
        }
    }

    /// What waits for the warm-up to end: all of it, of a probe that was stopped in it.
    fn flush(&mut self, out: &mut Drained) {
        let Some(envelope) = &mut self.envelope else { return };
        let held = std::mem::take(&mut envelope.held);
        let earliest = held.iter().map(|job| job.woken_ns - job.number as i64 * self.period_ns).min();
        envelope.first_ns = envelope.first_ns.or(earliest);
        held.iter().for_each(|job| self.give(job, true, out));
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
    use super::*;
    use model::Sample;
    use model::sample::flag;

    fn record(stamp: u64, value: u64, kind: u8, lost: u16) -> Record {
        Record { stamp, packed: Packed { value, kind, lost }.word() }
    }

    fn deadline_samples(records: &[Record]) -> (DeadlineDrain, Vec<Sample>) {
        let mut drain = DeadlineDrain::new(WakeupDrain::new(1000, 1000), 1000);
        let mut out = Drained::default();
        records.iter().for_each(|record| drain.convert(*record, &mut out));
        (drain, out.samples)
    }

    #[test]
    fn a_deadline_job_is_late_against_the_release_the_kernel_holds() {
        let (drain, samples) = deadline_samples(&[
            record(50_000, 7, RELEASE, 0),
            record(50_012, 0, WARM_UP, 0),
            record(51_000, 3, RELEASE, 0),
            record(53_500, 1, SERVED, 0),
            // The kernel began a new row: two releases passed.
            record(54_500, 3, RELEASE, 0),
            record(54_490, 4, SERVED, 0),
        ]);
        let seen: Vec<_> = samples.iter().map(|one| (one.t_ns, one.value_ns, one.missed)).collect();
        assert_eq!(seen, [(50_000, 12, 0), (51_000, 2_500, 0), (54_500, -10, 2)]);
        assert_eq!((drain.error_ns, drain.envelope.is_some()), (7, false));
        assert_eq!(samples[0].flags, flag::FIRST | flag::WARM_UP);
    }

    #[test]
    fn without_deadlines_the_earliest_wake_ups_of_the_warm_up_are_the_releases() {
        let (drain, samples) = deadline_samples(&[
            record(9_000, 0, ENVELOPE, 0),
            record(10_030, 0, WARM_UP, 0),
            record(11_010, 1, WARM_UP, 0),
            record(14_015, 4, SERVED, 0),
        ]);
        let seen: Vec<_> = samples.iter().map(|one| (one.t_ns, one.value_ns, one.missed)).collect();
        assert_eq!(seen, [(10_010, 20, 0), (11_010, 0, 0), (14_010, 5, 2)]);
        assert!(drain.envelope.is_some());
        // Stopped while it warms up, it still gives out what it holds.
        let (mut stopped, samples) =
            deadline_samples(&[record(0, 0, ENVELOPE, 0), record(10, 0, WARM_UP, 0)]);
        assert!(samples.is_empty());
        let mut out = Drained::default();
        stopped.flush(&mut out);
        assert_eq!(out.samples.len(), 1);
    }

    #[test]
    fn a_probe_that_was_refused_the_policy_is_an_ordinary_one() {
        let (_, samples) = deadline_samples(&[record(1_020, 0, SERVED, 0), record(4_010, 3, SERVED, 0)]);
        assert_eq!(samples.iter().map(|one| one.value_ns).collect::<Vec<_>>(), [20, 10]);
        assert_eq!(samples[1].missed, 2);
    }
}
