//! What a stressor's loop works with: its CPUs, its pace, its end, and the line that says it has
//! begun.
//!
//! Pace is a token bucket that holds 20 ms of the rate: short bursts, no catching up after a stall,
//! so that a starved stressor does not turn into a storm later.

use super::Error;
use super::rates::Meter;
use super::settle::arm_alarm;
use super::tally::Tally;
use super::witness::{Counter, Growth};
use crate::account::{Account, asked};
use crate::protocol::Line;
use model::Cpus;
use model::stressor::Witness;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use sys::clock::{SECOND_NS, now_ns, sleep_until};
use sys::signals::EndSignals;

/// How often a loop that never waits looks for a signal; in between it only reads the clock, which
/// costs no system call.
const LOOK_NS: i64 = 5_000_000;
/// How often it is looked whether the word to begin has come.
const NAP_NS: i64 = 20_000_000;
/// The longest wait for the word to begin.
const HELD_NS: i64 = 60 * SECOND_NS;
/// How much later the alarm of a stressor that was held comes: its operations are to end whole, and
/// whoever measures waits for that.
const OVER_NS: i64 = 20 * SECOND_NS;
/// What the bucket holds, as a part of a second.
const BURST_S: f64 = 0.02;

/// One stressor's run.
pub(super) struct Job<'a> {
    /// What it was ordered as.
    pub(super) name: String,
    /// Where it may run.
    pub(super) cpus: Cpus,
    /// Operations per second; `None` is as fast as it goes.
    pub(super) rate: Option<f64>,
    /// Bytes to work on; `None` is the stressor's own choice.
    pub(super) bytes: Option<u64>,
    /// Loops or parts, whatever the stressor has several of; `None` is its own choice.
    pub(super) workers: Option<u32>,
    /// Where to make files; `None` is the stressor's own choice.
    pub(super) dir: Option<PathBuf>,
    /// CPUs that are measured, for stressors that have to have a thread there.
    pub(super) measured: Cpus,
    /// How long to run, ns.
    pub(super) duration_ns: i64,
    /// CLOCK_MONOTONIC, ns: when to end if nobody says so earlier. Known once operations begin.
    pub(super) end_ns: i64,
    /// What its supervisor undoes: the targets of its entry's `leaves`.
    pub(super) leaves: Vec<String>,
    /// The process that started it; 0 where that is not known.
    pub(super) supervisor: i32,
    /// Counts successful operations where the supervisor sees them.
    pub(super) meter: Meter,
    /// Whether operations begin only when the supervisor says so, on standard input.
    pub(super) held: bool,
    /// How long to do nothing after the last operation, ns: its effects end before anything is
    /// removed.
    pub(super) linger_ns: i64,
    /// How the process is confined so far; a stressor adds what it does itself.
    pub(super) confined_by: Vec<String>,
    pub(super) end: EndSignals,
    pub(super) out: &'a mut dyn Write,
}

impl Job<'_> {
    /// Reports to the supervisor that everything is prepared, and returns when operations begin:
    /// now, or at its word. The duration counts from then: creating a network namespace alone can
    /// take longer than a short run.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        self.await_word()?;
        self.set_end();
        Ok(())
    }

    fn await_word(&mut self) -> Result<(), Error> {
        Line::Ready { confined_by: self.confined_by.clone() }.write(self.out)?;
        if self.held && !hold(&self.end)? {
            self.duration_ns = 0;
        }
        Ok(())
    }

    fn set_end(&mut self) {
        self.end_ns = now_ns().saturating_add(self.duration_ns);
        let over_ns = if self.held { OVER_NS } else { 0 };
        arm_alarm(self.duration_ns.saturating_add(self.linger_ns).saturating_add(over_ns));
    }

    /// As [`begin`](Self::begin), with a witness that counts from the word on. Reading it takes
    /// nothing of the duration.
    pub(super) fn begin_counting<F: Fn() -> Result<u64, Error>>(
        &mut self,
        witness: Counter<F>,
    ) -> Result<Growth<F>, Error> {
        self.await_word()?;
        let growth = witness.start()?;
        self.set_end();
        Ok(growth)
    }

    /// Repeats an operation at the job's pace until the end. The job must have
    /// [begun](Self::begin).
    pub(super) fn repeat(&self, mut operation: impl FnMut() -> io::Result<()>) -> Done {
        let mut pace = self.pace(1);
        let mut tally = Tally::default();
        let t0_ns = now_ns();
        while pace.proceed(1) {
            if tally.count(operation()) {
                self.meter.add(1);
            } else {
                recover();
            }
        }
        Done { tally, t0_ns, t1_ns: now_ns() }
    }

    /// Does nothing for as long as is to be done after the last operation: for loops with a
    /// [`Pace`] of their own.
    pub(super) fn linger(&self) {
        sleep_until(now_ns().saturating_add(self.linger_ns));
    }

    /// A pace for one of `shares` equal loops.
    pub(super) fn pace(&self, shares: u32) -> Pace<'_> {
        let rate = self.rate.map(|rate| rate / f64::from(shares.max(1)));
        Pace { linger_ns: self.linger_ns, ..Pace::new(&self.end, rate, self.end_ns) }
    }
}

/// Waits for the word to begin; false where the stressor is to end instead. A supervisor that is
/// gone says neither: then it is an error.
fn hold(end: &EndSignals) -> Result<bool, Error> {
    let refused = |error: io::Error| Error::refused("wait for the word to begin")(error);
    arm_alarm(HELD_NS);
    let stdin = io::stdin();
    loop {
        if end.arrived().is_some() {
            return Ok(false);
        }
        let nap = Timespec::try_from(Duration::from_nanos(NAP_NS as u64)).ok();
        let mut waited = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut waited, nap.as_ref()) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(refused(error.into())),
        }
        // Read past the standard library's buffer, which would take what others are to read.
        return match rustix::io::read(&stdin, &mut [0; 1]) {
            Ok(1) => Ok(true),
            Ok(_) => Err(refused(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(refused(error.into())),
        };
    }
}

/// What a loop has done, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) tally: Tally,
    /// CLOCK_MONOTONIC, ns: first operation.
    pub(super) t0_ns: i64,
    /// CLOCK_MONOTONIC, ns: last operation.
    pub(super) t1_ns: i64,
}

impl Done {
    /// The account of it, with the operations due by the job's rate.
    pub(super) fn account(self, job: &Job<'_>, witness: Witness) -> Account {
        let Self { tally, t0_ns, t1_ns } = self;
        Account { asked: asked(job.rate, t0_ns, t1_ns), tally, t0_ns, t1_ns, witness, wrong: None }
    }

    /// What several loops have done together; nothing where there are none.
    pub(super) fn together(all: &[Self]) -> Self {
        let mut tally = Tally::default();
        all.iter().for_each(|done| tally.add(&done.tally));
        let t0_ns = all.iter().map(|done| done.t0_ns).min().unwrap_or_default();
        Self { tally, t0_ns, t1_ns: all.iter().map(|done| done.t1_ns).max().unwrap_or_default() }
    }
}

/// Decides when the next operation may begin, and when the last one was.
#[derive(Debug)]
pub(super) struct Pace<'a> {
    end: &'a EndSignals,
    end_ns: i64,
    looked_ns: i64,
    ended: bool,
    /// Left to do nothing for at the end.
    linger_ns: i64,
    bucket: Option<Bucket>,
}

impl<'a> Pace<'a> {
    pub(super) fn new(end: &'a EndSignals, rate: Option<f64>, end_ns: i64) -> Self {
        let now = now_ns();
        Self {
            end,
            end_ns,
            looked_ns: now,
            ended: false,
            linger_ns: 0,
            bucket: rate.map(|rate| Bucket::new(rate, now)),
        }
    }

    /// Waits until `operations` may begin; false when the loop must end instead.
    pub(super) fn proceed(&mut self, operations: u32) -> bool {
        loop {
            let now = now_ns();
            if now.saturating_sub(self.looked_ns) >= LOOK_NS {
                self.looked_ns = now;
                self.ended |= self.end.arrived().is_some();
            }
            if self.ended || now >= self.end_ns {
                sleep_until(now.saturating_add(std::mem::take(&mut self.linger_ns)));
                return false;
            }
            let wait_ns = self.bucket.as_mut().map_or(0, |bucket| bucket.take(f64::from(operations), now));
            if wait_ns == 0 {
                return true;
            }
            let wait_ns = wait_ns.min(self.end_ns - now);
            if wait_ns < LOOK_NS {
                sleep_until(now + wait_ns);
            } else {
                // Where that fails, the loop ends on time all the same.
                let _ = self.end.wait_for(Duration::from_nanos(wait_ns as u64));
                self.looked_ns = i64::MIN;
            }
        }
    }
}

/// Lets a resource recover after a failed operation, so that failing does not become the load.
pub(super) fn recover() {
    sleep_until(now_ns() + 1_000_000);
}

/// A token bucket.
#[derive(Debug, Clone)]
struct Bucket {
    rate: f64,
    tokens: f64,
    filled_ns: i64,
}

impl Bucket {
    fn new(rate: f64, now_ns: i64) -> Self {
        Self { rate, tokens: 0.0, filled_ns: now_ns }
    }

    /// Takes `wanted` tokens and returns 0, or returns the ns until there are enough. A bucket
    /// holds at least what is wanted at once, or nobody would ever get it.
    fn take(&mut self, wanted: f64, now_ns: i64) -> i64 {
        let elapsed_s = (now_ns - self.filled_ns).max(0) as f64 / SECOND_NS as f64;
        self.filled_ns = now_ns;
        self.tokens = (self.tokens + elapsed_s * self.rate).min((self.rate * BURST_S).max(wanted));
        // Less than a millionth is rounding; without this the last wait could be for 0 ns, for
        // ever.
        if self.tokens + 1e-6 >= wanted {
            self.tokens -= wanted;
            return 0;
        }
        ((wanted - self.tokens) / self.rate * SECOND_NS as f64).ceil() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_never_gives_more_than_its_rate_and_a_burst(
            rate in 0.5f64..100_000.0,
            wanted in 1u32..20,
            gaps_ns in proptest::collection::vec(0i64..50_000_000, 1..200),
        ) {
            let wanted = f64::from(wanted);
            let mut bucket = Bucket::new(rate, 0);
            let (mut now, mut given) = (0, 0.0);
            for gap_ns in gaps_ns {
                now += gap_ns;
                if bucket.take(wanted, now) == 0 {
                    given += wanted;
                }
                let allowed = now as f64 / 1e9 * rate + (rate * BURST_S).max(wanted);
                prop_assert!(given <= allowed + 1e-3, "{given} given of {allowed}");
            }
        }

        #[test]
        fn the_wait_it_names_is_enough_and_not_much_too_long(rate in 0.5f64..100_000.0, wanted in 1u32..20) {
            let mut bucket = Bucket::new(rate, 0);
            let wait_ns = bucket.take(f64::from(wanted), 0);
            prop_assert!(wait_ns > 0);
            prop_assert!(bucket.clone().take(f64::from(wanted), wait_ns / 2) > 0 || wait_ns < 10);
            prop_assert_eq!(bucket.take(f64::from(wanted), wait_ns), 0);
        }
    }
}
