//! Whether Linux would let a set of `SCHED_DEADLINE` tasks in.
//!
//! `sched_setattr` refuses reservations out of range and whatever would bring the sum of runtime/period of a root domain above
//! cores * `sched_rt_runtime_us` / `sched_rt_period_us`, 95 % unless changed (`Documentation/scheduler/sched-deadline.rst`, sections 3 and 4;
//! `__checkparam_dl`, `to_ratio` and `__dl_overflow` of the kernel's sources). Ratios are whole multiples of 2^-20, rounded down, as there. A root
//! domain is all cores, or the cores of an exclusive cpuset.
//!
//! To be let in is not to meet deadlines: on several cores it bounds tardiness, and it promises deadlines only on one core with D = T.

use crate::task::Task;

/// Binary digits of the kernel's ratios (`BW_SHIFT`).
const DIGITS: u32 = 20;
/// Least runtime, ns (`DL_SCALE`).
pub const LEAST_RUNTIME_NS: u64 = 1 << 10;
/// Least and longest period, ns (`sched_deadline_period_min_us` and `_max_us`, since Linux 5.6).
pub const PERIOD_NS: (u64, u64) = (100_000, (1 << 22) * 1_000);

/// What real-time tasks may take of each core: `sched_rt_runtime_us` of every `sched_rt_period_us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealTimeShare {
    /// Runtime, us.
    pub runtime_us: u64,
    /// Period, us; at least 1.
    pub period_us: u64,
}

impl RealTimeShare {
    /// That of Linux unless changed.
    pub const LINUX: Self = Self { runtime_us: 950_000, period_us: 1_000_000 };
}

impl Default for RealTimeShare {
    fn default() -> Self {
        Self::LINUX
    }
}

/// Whether all tasks are admitted to one root domain of `cores` equal cores.
pub fn admits(tasks: &[Task], cores: u32, share: RealTimeShare) -> bool {
    let limit = ratio(share.runtime_us, share.period_us) * u128::from(cores);
    let valid = |task: &Task| {
        (LEAST_RUNTIME_NS..=task.deadline_ns).contains(&task.cost_ns)
            && task.deadline_ns <= task.period_ns
            && (PERIOD_NS.0..=PERIOD_NS.1).contains(&task.period_ns)
    };
    tasks.iter().all(valid)
        && tasks.iter().map(|task| ratio(task.cost_ns, task.period_ns)).sum::<u128>() <= limit
}

fn ratio(runtime: u64, period: u64) -> u128 {
    (u128::from(runtime) << DIGITS) / u128::from(period.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn nineteen_twentieths_of_every_core_and_not_one_step_more() {
        let task = Task::implicit(1_000 * MS, 50 * MS);
        let share = RealTimeShare::default();
        for cores in [1, 2, 8] {
            let most = 19 * cores as usize;
            assert!(admits(&vec![task; most], cores, share));
            assert!(!admits(&vec![task; most + 1], cores, share));
        }
        // One of 95 % is as the limit; a ratio of 2^-20 more is not.
        let full = Task::implicit(1_000 * MS, 950 * MS);
        assert!(admits(&[full], 1, share));
        assert!(admits(&[Task { cost_ns: full.cost_ns + 700, ..full }], 1, share));
        assert!(!admits(&[Task { cost_ns: full.cost_ns + 2_000, ..full }], 1, share));
        assert!(admits(
            &[Task { cost_ns: full.period_ns, ..full }],
            1,
            RealTimeShare { runtime_us: 1, period_us: 1 }
        ));
    }

    #[test]
    fn reservations_out_of_range_are_refused() {
        let good = Task::implicit(MS, 1024);
        let bad = [
            Task { cost_ns: 1023, ..good },
            Task { deadline_ns: 1023, ..good },
            Task { deadline_ns: MS + 1, ..good },
            Task::implicit(99_999, 1024),
            Task::implicit(PERIOD_NS.1 + 1, 1024),
        ];
        assert!(admits(&[good], 1, RealTimeShare::default()));
        for bad in bad {
            assert!(!admits(&[bad], 1, RealTimeShare::default()), "{bad:?}");
        }
    }
}
