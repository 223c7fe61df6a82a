//! The wake-up probe: a periodic task that sleeps until its next release and looks at the clock when it runs again.
//!
//! Latency counts from the intended release. A release that has passed before the task could serve it is not skipped in silence:
//! the record carries the number of the release it served, so the ones between are counted and can be charged.
//! (cyclictest moves on without a count; see `docs/run-directory.md`.)

use super::ring::Ring;
use super::spec::{LoopResult, WakeupSpec};
use sys::clock::{self, ClockId};

/// Kind of a record that statistics include: stamp = when the task ran, in the clock of the
/// releases, ns; value = number of the release.
pub(crate) const SERVED: u8 = 0;
/// The same, while warming up.
pub(crate) const WARM_UP: u8 = 1;
/// Precedes either where the releases are not in CLOCK_MONOTONIC: stamp = CLOCK_MONOTONIC ns of the same moment.
pub(crate) const MOMENT: u8 = 2;
/// Precedes them all there: stamp = the first release, in its clock, ns.
pub(crate) const BEGIN: u8 = 3;

/// Serves the releases of a window that begins at `start_ns` (CLOCK_MONOTONIC), until its end or
/// until asked to stop.
pub(crate) fn run(ring: &mut Ring, spec: &WakeupSpec, start_ns: i64, duration_ns: i64) -> LoopResult {
    let mut first = start_ns + spec.offset_ns;
    if spec.clock != ClockId::Monotonic {
        first += spec.clock.now_ns() - clock::now_ns();
        ring.push(first as u64, 0, BEGIN);
    }
    let wanted = ((duration_ns - spec.offset_ns).max(0) as u64).div_ceil(spec.period_ns as u64);
    let wanted = if spec.loops == 0 { wanted } else { wanted.min(spec.loops) };
    let served = match spec.clock {
        ClockId::Monotonic => serve(ring, spec, first, wanted, |_| {}),
        // Both clocks are read at once, so that the drain can place the sample and see the clock step.
        _ => serve(ring, spec, first, wanted, |ring| {
            ring.push(clock::now_ns() as u64, 0, MOMENT);
        }),
    };
    // Releases before the end that passed while the last one was served late count as requested.
    let released = if ring.stopped() { served } else { wanted };
    LoopResult { t1_ns: clock::now_ns(), released, iterations: 0 }
}

/// Releases `first + k · period`, k = 0, 1, …, below `wanted`. Gives the number of the next release.
#[inline(always)]
fn serve(ring: &mut Ring, spec: &WakeupSpec, first: i64, wanted: u64, moment: impl Fn(&mut Ring)) -> u64 {
    let (clock, period_ns) = (spec.clock, spec.period_ns);
    let mut number: u64 = 0;
    let mut warm_up = u64::from(spec.warm_up);
    let mut release = first;
    while number < wanted && !ring.stopped() {
        clock.sleep_until(release);
        let now = clock.now_ns();
        if now < release && ring.stopped() {
            break;
        }
        moment(ring);
        ring.push(now as u64, number, if warm_up > 0 { WARM_UP } else { SERVED });
        warm_up = warm_up.saturating_sub(1);
        // The releases that have passed meanwhile are skipped; the next record's number shows how
        // many.
        let step = 1 + (now - release).max(0) / period_ns;
        number += step as u64;
        release += step * period_ns;
    }
    number.min(wanted)
}
