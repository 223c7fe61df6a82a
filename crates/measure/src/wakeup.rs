//! The wake-up probe: a periodic task that sleeps until its next release and looks at the clock
//! when it runs again.
//!
//! Latency counts from the intended release. A release that has passed before the task could serve
//! it is not skipped in silence: the record carries the number of the release it served, so the
//! ones between are counted and can be charged. (cyclictest moves on without a count; see
//! `docs/run-directory.md`.)

mod deadline;
mod drain;

use super::kind::{Drain, Loop, LoopResult, Place, Probe, Window, rehearsed};
use super::ring::Ring;
use deadline::DeadlineDrain;
use drain::WakeupDrain;
use model::probe::{ProbeDetail, Releases};
use model::sample::Policy;
use serde::{Deserialize, Serialize};
use std::io;
use sys::clock::{self, ClockId};

/// Kind of a record that statistics include: stamp = when the task ran, in the clock of the
/// releases, ns; value = number of the release.
const SERVED: u8 = 0;
/// The same, while warming up.
const WARM_UP: u8 = 1;
/// Precedes either where the releases are not in CLOCK_MONOTONIC: stamp = CLOCK_MONOTONIC ns of the
/// same moment.
const MOMENT: u8 = 2;
/// Precedes them all there: stamp = the first release, in its clock, ns.
const BEGIN: u8 = 3;

/// The wake-up probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupSpec {
    /// Interval of releases, ns.
    pub period_ns: i64,
    /// First release after the window's start, ns.
    pub offset_ns: i64,
    /// Releases at the start that every statistic excludes, whether they were served or not.
    pub warm_up: u32,
    /// The clock that releases are set in.
    pub clock: ClockId,
    /// Ends after so many releases; 0 for as many as the duration holds.
    pub loops: u64,
}

impl Probe for WakeupSpec {
    fn period_ns(&self) -> Option<i64> {
        Some(self.period_ns)
    }

    fn clock(&self) -> ClockId {
        self.clock
    }

    fn yields(&self) -> bool {
        true
    }

    fn prepare(&self, _place: Place) -> io::Result<Box<dyn Loop>> {
        Ok(Box::new(self.clone()))
    }

    fn drain(&self, policy: &Policy, start_ns: i64) -> Box<dyn Drain> {
        let plain = WakeupDrain::new(start_ns + self.offset_ns, self.period_ns);
        if policy.is_deadline() {
            Box::new(DeadlineDrain::new(plain, self.period_ns))
        } else {
            Box::new(plain)
        }
    }
}

impl Loop for WakeupSpec {
    fn rehearse(&mut self, short: Window<'_>) {
        let (period_ns, clock) = (short.duration_ns / 4, self.clock);
        rehearsed(&mut Self { period_ns, offset_ns: 0, warm_up: 2, clock, loops: 0 }, short);
    }

    fn run(&mut self, window: Window<'_>) -> io::Result<LoopResult> {
        Ok(run(self, window))
    }

    fn detail(&self) -> ProbeDetail {
        ProbeDetail::Wakeup(Releases { warm_up: Some(self.warm_up.into()), ..Releases::default() })
    }
}

/// Serves the releases of a window until its end or until asked to stop.
fn run(spec: &WakeupSpec, window: Window<'_>) -> LoopResult {
    if let Some(releases) = window.releases {
        return deadline::run(spec, releases, window);
    }
    let Window { ring, start_ns, duration_ns, .. } = window;
    let mut first = start_ns + spec.offset_ns;
    if spec.clock != ClockId::Monotonic {
        first += spec.clock.now_ns() - clock::now_ns();
        ring.push(first as u64, 0, BEGIN);
    }
    let wanted = ((duration_ns - spec.offset_ns).max(0) as u64).div_ceil(spec.period_ns as u64);
    let wanted = if spec.loops == 0 { wanted } else { wanted.min(spec.loops) };
    let served = match spec.clock {
        ClockId::Monotonic => serve(ring, spec, first, wanted, |_| {}),
        // Both clocks are read at once, so that the drain can place the sample and see the clock
        // step.
        _ => serve(ring, spec, first, wanted, |ring| {
            ring.push(clock::now_ns() as u64, 0, MOMENT);
        }),
    };
    // Releases before the end that passed while the last one was served late count as requested.
    let released = if ring.stopped() { served } else { wanted };
    LoopResult { t1_ns: clock::now_ns(), released, iterations: 0 }
}

/// Releases `first + k · period`, k = 0, 1, …, below `wanted`. Gives the number of the next
/// release.
#[inline(always)]
fn serve(ring: &mut Ring, spec: &WakeupSpec, first: i64, wanted: u64, moment: impl Fn(&mut Ring)) -> u64 {
    let (clock, period_ns) = (spec.clock, spec.period_ns);
    let mut number: u64 = 0;
    let warm_up = u64::from(spec.warm_up);
    let mut release = first;
    // A clock that can be set makes samples late that are not: there only the drain, which sees
    // that, ends the measurement.
    let limit_ns = if clock == ClockId::Monotonic { ring.stop_over_ns() } else { i64::MAX };
    while number < wanted && !ring.stopped() {
        clock.sleep_until(release);
        let now = clock.now_ns();
        if now < release && ring.stopped() {
            break;
        }
        moment(ring);
        ring.push(now as u64, number, if number < warm_up { WARM_UP } else { SERVED });
        // The first sample counts no more than the warm-up does.
        if now - release >= limit_ns && number >= warm_up && number > 0 {
            ring.stop();
        }
        // The releases that have passed meanwhile are skipped; the next record's number shows how
        // many.
        let step = 1 + (now - release).max(0) / period_ns;
        number += step as u64;
        release += step * period_ns;
    }
    number.min(wanted)
}
