//! The largest factor by which costs may grow while a core still meets all deadlines. Exact, in
//! millionths.
//!
//! Sensitivity of costs (E. Bini, M. Di Natale and G. Buttazzo, "Sensitivity analysis for
//! fixed-priority real-time systems", Real-Time Systems 39, 2008). The factor of all tasks gives
//! the breakdown utilization (J. Lehoczky, L. Sha and Y. Ding, "The rate monotonic scheduling
//! algorithm: exact characterization and average case behavior", RTSS 1989). Neither test accepts
//! more where a cost grows: no window and no demand falls. A set therefore tolerates all factors
//! from 0 to some largest one, which a binary search finds. A cost times a factor is rounded up to
//! the nanosecond.

use crate::edf_qpa::edf_qpa;
use crate::fp_quick::is_schedulable;
use crate::largest::largest;
use crate::task::{MAX_NS, Task, TaskSet};
use crate::window::Limits;

/// Unchanged costs, in millionths.
pub const UNCHANGED_PPM: u64 = 1_000_000;

/// How much costs may grow. Factors in millionths: 1,000,000 is as given, less is a set that is
/// late as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostMargin {
    /// Largest factor of all costs at once; none where even the smallest, 1 ns a job, is late, and
    /// for no tasks.
    pub factor_ppm: Option<u64>,
    /// For each task, largest factor of its cost alone at which *all* deadlines of the core are
    /// met.
    pub per_task_ppm: Vec<Option<u64>>,
}

/// The margins of one core under fixed priorities. A question left open at the cap counts as late.
pub fn cost_margin(set: &TaskSet, limits: Limits) -> CostMargin {
    cost_margin_where(set, |set| is_schedulable(set, limits))
}

/// The same under EDF.
pub fn cost_margin_edf(set: &TaskSet, limits: Limits) -> CostMargin {
    cost_margin_where(set, |set| edf_qpa(set, limits).schedulable)
}

/// The set with the cost of one task, or of all, times a factor in millionths, rounded up to the
/// nanosecond; none beyond [`MAX_NS`].
pub fn with_costs(set: &TaskSet, only: Option<usize>, factor_ppm: u64) -> Option<TaskSet> {
    let scaled = |(index, task): (usize, &Task)| {
        if only.is_some_and(|only| only != index) {
            return *task;
        }
        let cost = (u128::from(task.cost_ns) * u128::from(factor_ppm)).div_ceil(UNCHANGED_PPM.into());
        Task { cost_ns: u64::try_from(cost).unwrap_or(u64::MAX), ..*task }
    };
    TaskSet::new(set.tasks().iter().enumerate().map(scaled).collect()).ok()
}

/// The same for any test that accepts no more where a cost grows.
pub fn cost_margin_where(set: &TaskSet, holds: impl Fn(&TaskSet) -> bool) -> CostMargin {
    let search = |only: Option<usize>| {
        let grown = |factor_ppm| with_costs(set, only, factor_ppm);
        let factor_ppm =
            largest(most(set, only)?, |factor_ppm| grown(factor_ppm).is_some_and(|set| holds(&set)));
        (factor_ppm > 0).then_some(factor_ppm)
    };
    CostMargin {
        factor_ppm: search(None),
        per_task_ppm: (0..set.tasks().len()).map(|at| search(Some(at))).collect(),
    }
}

/// A factor that no cost survives: it exceeds its deadline.
fn most(set: &TaskSet, only: Option<usize>) -> Option<u64> {
    let tasks = set.tasks().iter().enumerate().filter(|(index, _)| only.is_none_or(|only| only == *index));
    let factor = |task: &Task| {
        let deadline = u128::from(task.deadline_ns.min(MAX_NS)) * u128::from(UNCHANGED_PPM);
        u64::try_from(deadline / u128::from(task.cost_ns) + 1).unwrap_or(u64::MAX)
    };
    tasks.map(|(_, task)| factor(task)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{paper_sets, response_times};
    use proptest::prelude::*;

    fn set(rows: &[(u64, u64)]) -> TaskSet {
        TaskSet::new(rows.iter().map(|&(t, c)| Task::implicit(t, c)).collect()).unwrap()
    }

    #[test]
    fn by_hand() {
        // Harmonic: rate monotonic priorities fill the core. 0.3 + 0.25 + 0.25 = 0.8, times 1.25.
        let paper = paper_sets::IEEE_ACCESS_2020.task_set();
        let margin = cost_margin(&paper, Limits::default());
        assert_eq!(margin.factor_ppm, Some(1_250_000));
        // What is left, 0.2 of the core, is 2, 4 or 8 ms.
        assert_eq!(margin.per_task_ppm, [Some(1_666_666), Some(1_800_000), Some(1_800_000)]);
        assert_eq!(cost_margin_edf(&paper, Limits::default()), margin);
        // Half of the cost would fit; rounding leaves at least 1 ns per job of any factor.
        assert_eq!(cost_margin(&set(&[(10, 20)]), Limits::default()).factor_ppm, Some(500_000));
        let none = CostMargin { factor_ppm: None, per_task_ppm: vec![None] };
        let late = TaskSet::new(vec![Task { jitter_ns: 11, ..Task::implicit(10, 1) }]).unwrap();
        assert_eq!(cost_margin(&late, Limits::default()), none);
        assert_eq!(cost_margin(&TaskSet::default(), Limits::default()).factor_ppm, None);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let margin = cost_margin(&set(&[(MAX_NS, 1)]), Limits::default());
        assert!(margin.factor_ppm.unwrap() > 1 << 62);
        let margin = cost_margin_edf(&set(&[(MAX_NS, MAX_NS), (1, 1)]), Limits::default());
        assert_eq!(margin.factor_ppm, None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Small costs times millionths change in steps: between two steps of any cost, the verdict
        /// cannot change.
        #[test]
        fn the_next_cost_is_late(
            rows in prop::collection::vec((20u64..200, 1u64..40, 40u64..160, 0u64..10, 0u64..10), 1..6), edf in any::<bool>(),
        ) {
            let task = |&(period_ns, cost_ns, percent, jitter_ns, blocking_ns): &(u64, u64, u64, u64, u64)| Task {
                period_ns, deadline_ns: period_ns * percent / 100, cost_ns, jitter_ns, blocking_ns,
            };
            let set = TaskSet::new(rows.iter().map(task).collect()).unwrap();
            let holds = |set: &TaskSet| {
                if edf { edf_qpa(set, Limits::default()).schedulable } else { response_times(set, Limits::default()).schedulable }
            };
            let margin = if edf { cost_margin_edf(&set, Limits::default()) } else { cost_margin(&set, Limits::default()) };
            // All factors at which some cost changes, one after the other: a scan, not a search.
            let scan = |only: Option<usize>| {
                let steps = |task: &Task| {
                    let cost = task.cost_ns;
                    (1..=task.deadline_ns).map(move |grown| grown * UNCHANGED_PPM / cost)
                };
                let mut factors: Vec<u64> = set.tasks().iter().enumerate()
                    .filter(|(index, _)| only.is_none_or(|only| only == *index))
                    .flat_map(|(_, task)| steps(task)).collect();
                factors.sort_unstable();
                factors.into_iter().take_while(|&factor| with_costs(&set, only, factor).is_some_and(|set| holds(&set))).last()
            };
            prop_assert_eq!(margin.factor_ppm, scan(None));
            for (index, factor) in margin.per_task_ppm.iter().enumerate() {
                prop_assert_eq!(*factor, scan(Some(index)));
            }
        }
    }
}
