//! Overheads under EDF: interrupts make the core slower, and cost one allowance an interval.
//!
//! In an interval of length t a source of cost c, period T and jitter J takes ceil((t + J) / T) c,
//! which is at most t c / T + (c + J c / T): a share of the core, u = 1 - sum c / T of which is
//! left, and a constant K. Demand fits, with interrupts, where it is at most t - t (1 - u) - K:
//! that of costs C / u with a blocking of (B + K) / u on a core without interrupts (K. Jeffay and
//! D. Stone, "Accounting for interrupt handling costs in dynamic priority task systems", RTSS 1993,
//! with the linear bound).
//!
//! K / u is what Brandenburg's thesis (2011, section 3.4) calls the cost of one preemption in
//! preemption-centric accounting,
//!
//! > `c_pre = (c_tick + J u_tick + sum (c_rel + J u_rel)) / (1 - u_tick - sum u_rel)`,
//!
//! and charges twice to every job, since on several cores the stretches of one job's execution are
//! apart. On one core the stretches of an interval follow each other, and once is enough. Whatever
//! the thesis' accounting accepts is accepted here.

use super::Overheads;
use crate::task::{MAX_NS, Task, TaskSet};

/// Shares of a core are counted in units of 2^-60, rounded up.
const WHOLE: u128 = 1 << 60;

/// The set of one core with costs and blocking as on a core without interrupts; none where
/// interrupts leave no time, or so little that a charged value exceeds [`MAX_NS`] and with it any
/// deadline.
pub fn charge_edf(set: &TaskSet, overheads: &Overheads) -> Option<TaskSet> {
    let (mut share, mut constant) = (0u128, 0u128);
    for source in overheads.interrupts(set.tasks()) {
        let [cost, period, jitter] = [source.cost_ns, source.period_ns, source.jitter_ns].map(u128::from);
        share += (cost * WHOLE).div_ceil(period);
        constant += cost + (cost * jitter).div_ceil(period);
    }
    let left = WHOLE.checked_sub(share).filter(|left| *left > 0)?;
    let slowed = |ns: u128| {
        let ns = ns.min(u128::from(MAX_NS) + 1);
        u64::try_from((ns * WHOLE).div_ceil(left)).unwrap_or(u64::MAX)
    };
    let charge = |task: &Task| Task {
        cost_ns: slowed(overheads.cost_with_switches(task).into()),
        jitter_ns: overheads.jitter(task),
        blocking_ns: slowed(constant + u128::from(task.blocking_ns)),
        ..*task
    };
    TaskSet::new(set.tasks().iter().map(charge).collect()).ok()
}
