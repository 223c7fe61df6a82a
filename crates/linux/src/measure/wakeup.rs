//! The wake-up probe: a periodic task that sleeps until its next release and looks at the clock when it runs again.
//!
//! Latency counts from the intended release. A release that has passed before the task could serve it is not skipped in silence:
//! the record carries the number of the release it served, so the ones between are counted and can be charged.
//! (cyclictest moves on without a count; see `docs/run-directory.md`.)

use super::ring::Ring;
use super::spec::LoopResult;
use crate::sys::clock;

/// Kind of a record that figures count: stamp = when the task ran (CLOCK_MONOTONIC ns), value = number of the release.
pub const SERVED: u8 = 0;
/// The same, while warming up.
pub const WARM_UP: u8 = 1;

/// Serves releases `start + k · period`, k = 0, 1, …, until `end` or until told to stop.
pub fn run(ring: &mut Ring, start_ns: i64, end_ns: i64, period_ns: i64, warm_up: u32) -> LoopResult {
    let mut number: u64 = 0;
    let mut warm_up = u64::from(warm_up);
    let mut release = start_ns;
    while release < end_ns && !ring.stopped() {
        clock::sleep_until(release);
        let now = clock::now_ns();
        if now < release && ring.stopped() {
            break;
        }
        ring.push(now as u64, number, if warm_up > 0 { WARM_UP } else { SERVED });
        warm_up = warm_up.saturating_sub(1);
        // The releases that have passed meanwhile are swallowed; the next record's number tells how many.
        let step = 1 + (now - release).max(0) / period_ns;
        number += step as u64;
        release += step * period_ns;
    }
    // Releases before the end that passed while the last one was served late are asked for, too.
    let t1_ns = clock::now_ns();
    let asked = if ring.stopped() { number } else { ((end_ns - start_ns) as u64).div_ceil(period_ns as u64) };
    LoopResult { t1_ns, released: asked, iterations: 0 }
}
