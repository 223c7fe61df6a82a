//! Operations over time: a page that the stressor's processes count in and its supervisor reads.
//!
//! A total at the end does not distinguish a steady disturbance from a burst that then hung. The
//! stressor counts successes only, with one relaxed addition per operation; the supervisor reads
//! the page at each poll. It makes one entry per second, in runs longer than an hour one every few
//! seconds, so that their number has a bound.

use super::Error;
use model::stressor::Rate;
use rustix::fd::{AsFd, FromRawFd, OwnedFd};
use rustix::param::page_size;
use std::sync::atomic::{AtomicU64, Ordering};
use sys::clock::{SECOND_NS, now_ns};
use sys::memory::{Mapping, shared_file};
use sys::spawn::SHARED_FD;

/// The least rate, operations per second, at which a second without any is a stall and not a matter
/// of pace. A stressor without a rate has its own way of working.
const STEADY: f64 = 2.0;

/// Entries that are kept.
const MOST: usize = 3600;

/// The stressor's side. One that is not shared counts nothing.
#[derive(Debug, Default)]
pub(super) struct Meter(Option<Mapping>);

impl Meter {
    /// The page that the supervisor gave as [`SHARED_FD`].
    pub(super) fn shared() -> Result<Self, Error> {
        // SAFETY: the supervisor said that it put its page there, and nothing else of this process
        // knows the number.
        let file = unsafe { OwnedFd::from_raw_fd(SHARED_FD) };
        map(&file).map(|mapping| Self(Some(mapping)))
    }

    /// Counts operations that have succeeded.
    pub(super) fn add(&self, operations: u64) {
        if let Some(mapping) = &self.0 {
            counter(mapping).fetch_add(operations, Ordering::Relaxed);
        }
    }
}

/// The supervisor's side.
#[derive(Debug)]
pub(super) struct Rates {
    file: OwnedFd,
    page: Mapping,
    /// Operations per second that were requested.
    rate: Option<f64>,
    history: History,
}

impl Rates {
    pub(super) fn new(rate: Option<f64>) -> Result<Self, Error> {
        let failed = Error::refused("make a page for counting operations");
        let file = shared_file("stillcore-rates", page_size()).map_err(failed)?;
        Ok(Self { page: map(&file)?, file, rate, history: History::default() })
    }

    /// What the child gets.
    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Successful operations so far.
    pub(super) fn total(&self) -> u64 {
        counter(&self.page).load(Ordering::Relaxed)
    }

    /// Notes how many there are now.
    pub(super) fn look(&mut self, now_ns: i64) {
        self.history.look(now_ns, self.total());
    }

    /// All entries, the last one until `end_ns`, and the stalls among them.
    pub(super) fn finish(&mut self, end_ns: i64) -> (Vec<Rate>, u64) {
        let total = self.total();
        if total == 0 {
            return (Vec::new(), 0);
        }
        let stalls = self.history.stalls(self.rate);
        self.history.end(end_ns.min(now_ns()), total);
        (std::mem::take(&mut self.history.entries), stalls)
    }
}

/// What several looks have seen.
#[derive(Debug, Default, PartialEq, Eq)]
struct History {
    entries: Vec<Rate>,
    /// How many seconds an entry is made of, as a power of two.
    doubled: u32,
    /// Seconds in the entry that is being made.
    seconds: u32,
    /// Seconds without an operation.
    still: u64,
    /// When the second that is being made began, and what had been counted by then.
    since: Option<(i64, u64)>,
    /// What is in the entry that is being made.
    operations: i64,
}

impl History {
    fn look(&mut self, now_ns: i64, total: u64) {
        let (since_ns, before) = *self.since.get_or_insert((now_ns, 0));
        if now_ns - since_ns < SECOND_NS {
            return;
        }
        let operations = total.saturating_sub(before) as i64;
        self.still += u64::from(operations == 0);
        self.since = Some((now_ns, total));
        self.operations += operations;
        self.seconds += 1;
        if self.seconds >> self.doubled > 0 {
            let operations = std::mem::take(&mut self.operations);
            self.entries.push(Rate { t_ns: now_ns, operations });
            self.seconds = 0;
        }
        if self.entries.len() == MOST {
            self.halve();
        }
    }

    /// Entries of twice the length.
    fn halve(&mut self) {
        let (pairs, _) = self.entries.as_chunks();
        let both = |[one, next]: &[Rate; 2]| Rate { operations: one.operations + next.operations, ..*next };
        self.entries = pairs.iter().map(both).collect();
        self.doubled += 1;
    }

    /// The rest of the last entry.
    fn end(&mut self, end_ns: i64, total: u64) {
        let (since_ns, before) = self.since.unwrap_or((end_ns, 0));
        let rest = self.operations + total.saturating_sub(before) as i64;
        if rest > 0 {
            self.entries.push(Rate { t_ns: end_ns.max(since_ns), operations: rest });
        }
    }

    fn stalls(&self, rate: Option<f64>) -> u64 {
        if rate.is_none_or(|rate| rate < STEADY) { 0 } else { self.still }
    }
}

fn map(file: &impl AsFd) -> Result<Mapping, Error> {
    Mapping::new(file, page_size()).map_err(Error::refused("map the page for counting operations"))
}

fn counter(page: &Mapping) -> &AtomicU64 {
    // SAFETY: the mapping is at least a page, aligned to a page, lives as long as the reference,
    // and both sides use it atomically.
    unsafe { AtomicU64::from_ptr(page.start().as_ptr().cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_counts_the_other_reads() {
        let mut rates = Rates::new(Some(100.0)).unwrap();
        let meter = Meter(Some(map(rates.file()).unwrap()));
        meter.add(3);
        rates.look(0);
        meter.add(4);
        assert_eq!(rates.total(), 7);
        rates.look(SECOND_NS);
        assert_eq!(rates.finish(SECOND_NS + 5), (vec![Rate { t_ns: SECOND_NS, operations: 7 }], 0));
        Meter::default().add(1);
    }

    #[test]
    fn entries_add_up_and_a_second_without_operations_is_a_stall() {
        let mut history = History::default();
        for (tenths, total) in [(0, 0), (1, 5), (10, 50), (15, 50), (20, 50), (31, 60)] {
            history.look(tenths * SECOND_NS / 10, total);
        }
        assert_eq!((history.stalls(Some(10.0)), history.stalls(Some(1.0)), history.stalls(None)), (1, 0, 0));
        history.end(32 * SECOND_NS / 10, 61);
        let sum: i64 = history.entries.iter().map(|rate| rate.operations).sum();
        assert_eq!((history.entries.len(), sum), (4, 61));
        assert!(history.entries.windows(2).all(|pair| pair[0].t_ns < pair[1].t_ns));
    }

    #[test]
    fn a_run_of_days_has_few_entries_that_add_up() {
        let mut history = History::default();
        let seconds = 86_401;
        for second in 0..=seconds {
            // Three per second, none in every tenth.
            history.look(second * SECOND_NS, (second * 3 - second / 10 * 3) as u64);
        }
        history.end(seconds * SECOND_NS + 1, (seconds * 3 - seconds / 10 * 3) as u64 + 1);
        let sum: i64 = history.entries.iter().map(|rate| rate.operations).sum();
        assert_eq!(sum, seconds * 3 - seconds / 10 * 3 + 1);
        assert!(history.entries.len() <= MOST, "{}", history.entries.len());
        assert!(history.entries.len() > MOST / 2, "{}", history.entries.len());
        assert_eq!(history.stalls(Some(3.0)), 8_640);
        assert!(history.entries.windows(2).all(|pair| pair[0].t_ns < pair[1].t_ns));
    }
}
