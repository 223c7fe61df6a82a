//! Whether Linux would let a set of `SCHED_DEADLINE` tasks in.
//!
//! `sched_setattr` refuses reservations out of range and whatever would bring the sum of
//! runtime/period of a root domain above cores * `sched_rt_runtime_us` / `sched_rt_period_us`, 95 %
//! unless changed (`Documentation/scheduler/sched-deadline.rst`, sections 3 and 4;
//! `__checkparam_dl`, `to_ratio` and `__dl_overflow` of the kernel's sources). Ratios are whole
//! multiples of 2^-20, rounded down, as there. A root domain is all cores, or the cores of an
//! exclusive cpuset. Since 6.12 every core's fair server, 50 ms of each second unless changed in
//! debugfs, is a reservation among the others (`dl_server_apply_params` in
//! `kernel/sched/deadline.c`): 90 % are left.
//!
//! Admission does not guarantee deadlines: on several cores it bounds tardiness, and it guarantees
//! deadlines only on one core with D = T.

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

/// What each core's fair server has reserved for ordinary tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FairServer {
    /// Runtime, us; 0 where there is none, as before 6.12, or it is switched off.
    pub runtime_us: u64,
    /// Period, us; at least 1.
    pub period_us: u64,
}

impl FairServer {
    /// That of Linux from 6.12 on, unless changed.
    pub const LINUX: Self = Self { runtime_us: 50_000, period_us: 1_000_000 };
    /// None.
    pub const NONE: Self = Self { runtime_us: 0, period_us: 1_000_000 };
}

/// What the kernel goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// What may be reserved of each core.
    pub share: RealTimeShare,
    /// What is reserved of each core already.
    pub fair_server: FairServer,
}

impl Admission {
    /// That of Linux from 6.12 on, unless changed.
    pub const LINUX: Self = Self { share: RealTimeShare::LINUX, fair_server: FairServer::LINUX };
}

impl Default for Admission {
    fn default() -> Self {
        Self::LINUX
    }
}

/// Whether all tasks are admitted to one root domain of `cores` equal cores.
pub fn admits(tasks: &[Task], cores: u32, admission: Admission) -> bool {
    let Admission { share, fair_server } = admission;
    let limit = ratio(share.runtime_us, share.period_us) * u128::from(cores);
    let reserved = ratio(fair_server.runtime_us, fair_server.period_us) * u128::from(cores);
    let valid = |task: &Task| {
        (LEAST_RUNTIME_NS..=task.deadline_ns).contains(&task.cost_ns)
            && task.deadline_ns <= task.period_ns
            && (PERIOD_NS.0..=PERIOD_NS.1).contains(&task.period_ns)
    };
    tasks.iter().all(valid)
        && reserved + tasks.iter().map(|task| ratio(task.cost_ns, task.period_ns)).sum::<u128>() <= limit
}

fn ratio(runtime: u64, period: u64) -> u128 {
    (u128::from(runtime) << DIGITS) / u128::from(period.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const OLD: Admission = Admission { fair_server: FairServer::NONE, ..Admission::LINUX };

    /// Counted on Linux 6.18.44 with two CPUs: twice 950 and twice 905 ms of each second are
    /// refused, twice 900 let in.
    #[test]
    fn the_fair_servers_are_reservations_too() {
        let twice = |runtime| vec![Task::implicit(1_000 * MS, runtime * MS); 2];
        let admitted = |runtime, how| admits(&twice(runtime), 2, how);
        assert_eq!([950, 905, 900].map(|runtime| admitted(runtime, Admission::LINUX)), [false, false, true]);
        assert_eq!([951, 950, 905].map(|runtime| admitted(runtime, OLD)), [false, true, true]);
        let unlimited = Admission {
            share: RealTimeShare { runtime_us: u64::MAX, ..RealTimeShare::LINUX },
            ..Admission::LINUX
        };
        assert!(admitted(1_000, unlimited));
    }

    #[test]
    fn nineteen_twentieths_of_every_core_and_not_one_step_more() {
        let task = Task::implicit(1_000 * MS, 50 * MS);
        let share = OLD;
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
            Admission { share: RealTimeShare { runtime_us: 1, period_us: 1 }, ..OLD }
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
        assert!(admits(&[good], 1, Admission::default()));
        for bad in bad {
            assert!(!admits(&[bad], 1, Admission::default()), "{bad:?}");
        }
    }
}
