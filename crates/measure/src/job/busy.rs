//! Busy work: a counted loop that takes a given CPU time, calibrated and then verified.
//!
//! Calibrated loops are often wrong without anybody noticing: the frequency changes, a neighbour
//! shares the core, the calibration itself was preempted. So the loop's real time is measured anew
//! once everything is set up, and stored beside the requested one.

use model::probe::BusyFound;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use sys::clock;

/// The loop.
pub(super) struct Busy {
    asked_ns: u64,
    turns: u64,
}

/// CPU time of a job, requested and measured, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Requested.
    pub asked_ns: u64,
    /// What the trials took.
    pub found_ns: BusyFound,
}

/// Turns that calibration times: some hundred µs.
const BATCH: u64 = 200_000;
const TRIALS: usize = 9;
/// No verification takes longer than this.
const LIMIT_NS: i64 = 500_000_000;

impl Busy {
    /// By the fastest of several batches: what slows one down is not the loop's own.
    pub(super) fn calibrate(asked_ns: u64) -> Self {
        let batch = || cpu_time_ns(|| turn(BATCH)).max(1);
        let fastest = (0..TRIALS).map(|_| batch()).min().unwrap_or(1);
        Self { asked_ns, turns: (asked_ns as f64 * BATCH as f64 / fastest as f64).round() as u64 }
    }

    #[inline]
    pub(super) fn burn(&self) {
        turn(self.turns);
    }

    /// Runs the job some times and returns the CPU time it took.
    pub(super) fn verify(&self) -> Verified {
        let give_up = clock::now_ns() + LIMIT_NS;
        let mut found = Vec::with_capacity(TRIALS);
        while found.len() < TRIALS && (found.is_empty() || clock::now_ns() < give_up) {
            found.push(cpu_time_ns(|| self.burn()));
        }
        found.sort_unstable();
        let (min, median, max) = (found[0], found[found.len() / 2], found[found.len() - 1]);
        let found_ns = BusyFound { min, median, max };
        Verified { asked_ns: self.asked_ns, found_ns }
    }
}

impl Verified {
    /// Whether the median is more than a twentieth off.
    pub fn is_off(&self) -> bool {
        self.found_ns.median.abs_diff(self.asked_ns) > self.asked_ns / 20
    }
}

fn cpu_time_ns(work: impl FnOnce()) -> u64 {
    let before = clock::thread_cpu_ns();
    work();
    (clock::thread_cpu_ns() - before).max(0) as u64
}

/// A chain of dependent operations: as long on one core as on another of its kind.
#[inline(never)]
fn turn(turns: u64) {
    let mut word = black_box(1u64);
    for _ in 0..turns {
        word = black_box(word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(5));
    }
    black_box(word);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_work_is_twice_the_turns() {
        let busy = Busy { asked_ns: 1_000, turns: 10 };
        let found = busy.verify();
        assert_eq!(found.asked_ns, 1_000);
        let BusyFound { min, median, max } = found.found_ns;
        assert!(min <= median && median <= max);
        assert!(Busy::calibrate(2_000_000).turns > Busy::calibrate(20_000).turns);
    }

    #[test]
    fn a_loop_that_is_off_is_reported() {
        let off =
            |min, median, max| Verified { asked_ns: 1000, found_ns: BusyFound { min, median, max } }.is_off();
        assert!(!off(900, 1050, 9000) && off(1000, 1051, 1051));
    }
}
