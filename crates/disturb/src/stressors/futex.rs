//! `futex`: a storm between two threads that wake each other in turn.
//!
//! Each handover is a futex wake-up of a thread on another CPU and the sleep of its own
//! (kernel/futex/, `try_to_wake_up`): run-queue locks, reschedule interrupts, idle entry and exit.
//! A pair shares one word, so that its hash bucket is no other's business.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::children_switches;
use crate::spec::StressorSpec;
use crate::workers::repeat_in;
use rustix::io::Errno;
use rustix::thread::futex::{Flags, Timespec, wait, wake};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::Builder;

const MAX_PAIRS: usize = 4;
/// Whose turn it is.
const FIRST: u32 = 0;
const SECOND: u32 = 1;
/// A partner that keeps the turn for this long is gone.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "futex",
    title: "futex storm: pairs of threads that wake each other in turn",
    class: "sched",
    operation: "a handover to the other thread and back",
    needs: "two threads a pair, at most 4 pairs",
    kernel_paths: &["futex_wait", "futex_wake", "try_to_wake_up", "reschedule IPI", "schedule"],
    witness: "context switches of the pairs (getrusage): one in ten operations at the least, for a waiter may be faster than its sleep",
    danger: "run-queue locks and reschedule interrupts; bounded by the pairs and the rate",
    default_rate: Some(20_000.0),
    peer: Some("--futex"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let pairs = job.workers.unwrap_or_else(|| (job.cpus.len() / 2).clamp(1, MAX_PAIRS) as u32);
    let before = job.begin_counting(children_switches()?)?;
    let done = repeat_in(job, pairs, |_| {
        let turn = Arc::new(AtomicU32::new(FIRST));
        let others = Arc::clone(&turn);
        let partner = Builder::new()
            .stack_size(64 << 10)
            .spawn(move || while give(&others, FIRST, SECOND, None).is_ok() {});
        partner.map_err(Error::refused("start a thread"))?;
        Ok(move || give(&turn, SECOND, FIRST, Some(&PATIENCE)))
    })?;
    let witness = before.grown(done.tally.ok.div_ceil(10))?;
    Ok(done.account(job, witness))
}

/// Gives the turn to `other` and sleeps until it is `own` again. A partner that waits for its first
/// turn gives nothing away: then the turn is not its own.
fn give(turn: &AtomicU32, other: u32, own: u32, patience: Option<&Timespec>) -> io::Result<()> {
    if turn.compare_exchange(own, other, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        wake(turn, Flags::PRIVATE, 1)?;
    }
    while turn.load(Ordering::Acquire) != own {
        match wait(turn, Flags::PRIVATE, other, patience) {
            // Changed before it could sleep, or woken by a signal: look again.
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_comes_back_as_often_as_it_is_given() {
        let turn = Arc::new(AtomicU32::new(FIRST));
        let others = Arc::clone(&turn);
        let taken = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&taken);
        // It waits for its turn for ever, and ends with the test.
        std::thread::spawn(move || {
            while give(&others, FIRST, SECOND, None).is_ok() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..1000 {
            give(&turn, SECOND, FIRST, None).unwrap();
            assert_eq!(turn.load(Ordering::Relaxed), FIRST);
        }
        assert!(taken.load(Ordering::Relaxed) >= 999, "{taken:?}");
    }
}
