//! The releases of SCHED_DEADLINE, which the kernel sets: a job ends by `sched_yield`, and the next
//! begins a period later.
//!
//! They lie a period apart in the scheduler's clock, which no NTP touches
//! (`kernel/sched/deadline.c`: each replenishment adds the period to the deadline, and the release
//! is the deadline minus the relative deadline), so lateness is measured against the deadline that
//! the kernel holds, read anew in every job and brought to CLOCK_MONOTONIC. A job that ends after
//! its deadline has the kernel begin a new row of releases; those that passed between are missed.

use model::sample::Reservation;
use sys::schedclock::DeadlineReader;

/// What the loop needs besides its order.
#[derive(Debug)]
pub(crate) struct Releases {
    reservation: Reservation,
    reader: Result<DeadlineReader, String>,
}

impl Releases {
    /// For the calling thread, which is under SCHED_DEADLINE with this reservation.
    pub(crate) fn open(reservation: Reservation) -> Self {
        Self { reservation, reader: DeadlineReader::open() }
    }

    /// Why deadlines cannot be read.
    pub(crate) fn unread(&self) -> Option<&str> {
        self.reader.as_ref().err().map(String::as_str)
    }

    /// Interval of releases, ns.
    pub(crate) fn period_ns(&self) -> i64 {
        self.reservation.period_ns as i64
    }

    /// The release of the job that is running and began at `began_ns`; without a reading, when it
    /// began.
    #[inline]
    pub(crate) fn of_job(&self, began_ns: i64) -> Release {
        let read = self.reader.as_ref().ok().and_then(DeadlineReader::read);
        let Some((deadline, error_ns)) = read else {
            return Release { ns: began_ns, error_ns: 0, postponed: false };
        };
        let ns = deadline - self.reservation.deadline_ns as i64;
        let postponed = postponed(ns - began_ns - error_ns, self.period_ns());
        Release { ns: ns - postponed, error_ns, postponed: postponed > 0 }
    }
}

/// A release of the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Release {
    /// When, CLOCK_MONOTONIC ns.
    pub(crate) ns: i64,
    /// How far that may be off, ns.
    pub(crate) error_ns: i64,
    /// Whether the job had run out of its reserved runtime, so that the kernel had postponed its
    /// deadline.
    pub(crate) postponed: bool,
}

/// By how much the kernel has postponed the deadline of a job that was running `early` ns before
/// what reads as its release. No job runs before its release; what is less than a few µs is the
/// reading.
fn postponed(early: i64, period: i64) -> i64 {
    const READING_NS: i64 = 5_000;
    if early > READING_NS { early.div_euclid(period) * period + period } else { 0 }
}

/// Numbers releases, those that nobody served included.
pub(crate) struct Count {
    period: i64,
    /// Releases requested; 0 for as many as there are.
    limit: u64,
    last: Option<i64>,
    /// Releases so far.
    pub(crate) released: u64,
}

impl Count {
    /// For releases a period apart.
    pub(crate) fn new(period: i64, limit: u64) -> Self {
        Self { period, limit, last: None, released: 0 }
    }

    /// Whether there are more to serve.
    pub(crate) fn goes_on(&self) -> bool {
        self.limit == 0 || self.released < self.limit
    }

    /// The number of a release that is served. One nearer than half a period to the last is one of
    /// a new row: the kernel gave up the old.
    pub(crate) fn served(&mut self, release: i64) -> u64 {
        let steps = self.last.map_or(1, |last| periods(release - last, self.period).max(1));
        self.last = Some(release);
        self.released += steps;
        self.released - 1
    }

    /// Counts those that lie before the end and were not served.
    pub(crate) fn passed(&mut self, end: i64) {
        if let Some(last) = self.last {
            self.released += ((end - last - 1).max(0) / self.period) as u64;
        }
    }
}

/// The nearest whole number of periods.
fn periods(distance: i64, period: i64) -> u64 {
    ((distance + period / 2).max(0) / period) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(period: i64) -> Count {
        Count::new(period, 0)
    }

    #[test]
    fn releases_that_the_kernel_skipped_have_numbers_of_their_own() {
        let mut count = count(1000);
        assert_eq!([10_000, 11_000, 12_003].map(|release| count.served(release)), [0, 1, 2]);
        // A job ended 3.4 periods late; the new row begins there.
        assert_eq!(count.served(15_400), 5);
        assert_eq!(count.served(16_400), 6);
        // The last was served so late that two more passed before the end, at 19,400 exactly.
        count.passed(19_400);
        assert_eq!(count.released, 9);
    }

    #[test]
    fn a_job_never_runs_before_its_release() {
        assert_eq!([-70, 300, 4_999].map(|early| postponed(early, 1_000_000)), [0; 3]);
        assert_eq!(postponed(479_000, 1_000_000), 1_000_000);
        assert_eq!(postponed(1_479_000, 1_000_000), 2_000_000);
    }

    proptest! {
        #[test]
        fn numbers_grow_and_count_all(gaps in proptest::collection::vec(1i64..10_000, 1..50)) {
            let (mut count, mut at, mut last) = (count(1000), 0, None);
            for gap in gaps {
                at += gap;
                let number = count.served(at);
                prop_assert!(last.is_none_or(|last| number > last));
                prop_assert_eq!(count.released, number + 1);
                last = Some(number);
            }
        }
    }
}
