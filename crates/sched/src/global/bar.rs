//! Global EDF by the demand before and after the last idle instant.
//!
//! Baruah, "Techniques for multiprocessor global schedulability analysis", RTSS 2007: if a job of task k misses its deadline, then for some
//! length A before its release all cores were busy since an instant at which one was idle, so that at most m - 1 tasks carry work into
//! the window of A + D_k. Task k meets its deadlines if for every A up to a bound the work so bounded is at most m (A + D_k - C_k).
//!
//! The paper checks each A where the demand of some task steps. That is not enough: between two
//! steps, carried work grows, from m = 3 on faster than the right side, and then stops. Example:
//! costs 11, 3, 20, 5 with periods 23, 27, 27, 7 on 3 cores pass at every step, but the task of 20
//! fails at A = 3. This test checks each A where one of the sums begins to grow more slowly;
//! between these points the condition cannot fail.

use super::{Case, Effort, sum_of_largest};
use crate::fractions::Open;
use crate::task::Task;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rounds that the points of one task cost before the first of them is checked.
const LAYING_OUT: u32 = 4;

/// Binary digits of the fixed-point utilization, rounded up.
const DIGITS: u32 = 50;

/// Whether every task passes; undecided where the utilization is all of the cores, as A is not
/// bounded then.
pub(super) fn schedulable(case: Case<'_>, effort: &mut Effort) -> Result<bool, Open> {
    let bound = Bound::of(case);
    for task in case.tasks {
        // Laying out the points of one task costs as much as a few rounds.
        for _ in 0..LAYING_OUT {
            effort.spend()?;
        }
        if !meets_deadline(case, &bound, task, effort)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn meets_deadline(case: Case<'_>, bound: &Bound, task: &Task, effort: &mut Effort) -> Result<bool, Open> {
    let Some(longest) = bound.longest(task)? else { return Ok(true) };
    let start = u128::from(task.deadline_ns);
    let mut points: BinaryHeap<Reverse<Points>> = case
        .tasks
        .iter()
        .flat_map(|other| points(other, task))
        .filter_map(|points| points.from(start))
        .map(Reverse)
        .collect();
    let mut last = None;
    while let Some(Reverse(next)) = points.pop() {
        if next.window - start > longest {
            break;
        }
        if next.left > 1 {
            points.push(Reverse(Points { window: next.window + next.apart, left: next.left - 1, ..next }));
        }
        if last != Some(next.window) {
            last = Some(next.window);
            effort.spend()?;
            if !holds(case, task, next.window) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Windows at equal distances: the next one, how far apart, how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Points {
    window: u128,
    apart: u128,
    left: u128,
}

impl Points {
    /// Those not below `start`.
    fn from(self, start: u128) -> Option<Self> {
        let skipped = start.saturating_sub(self.window).div_ceil(self.apart);
        let left = self.left.checked_sub(skipped).filter(|left| *left > 0)?;
        Some(Self { window: self.window + skipped * self.apart, left, ..self })
    }
}

/// Where the work of `other` in windows of `task` begins to grow more slowly. First, after a step,
/// where a carried job is complete. Second, where the rest of the window beside the job analysed
/// ceases to be the lesser bound. These last points go up by C per job, what they are compared with
/// by T.
fn points(other: &Task, task: &Task) -> [Points; 3] {
    let (cost, period, deadline) =
        (u128::from(other.cost_ns), u128::from(other.period_ns), u128::from(other.deadline_ns));
    let (room, first) = if std::ptr::eq(other, task) {
        (deadline - cost, deadline)
    } else {
        (u128::from(task.cost_ns) - 1, u128::from(task.cost_ns) - 1 + cost)
    };
    let jobs = (room + period - deadline).checked_div(period - cost).map_or(u128::MAX, |jobs| jobs + 1);
    [
        Points { window: deadline, apart: period, left: u128::MAX },
        Points { window: cost, apart: period, left: u128::MAX },
        Points { window: first, apart: cost, left: jobs },
    ]
}

/// What the bound of A takes of the whole set.
struct Bound {
    cores: u128,
    /// m - U, in 2^-50, rounded down; none where nothing is left.
    idle: Option<u128>,
    /// Work carried in and work due early, rounded up.
    ahead: u128,
}

impl Bound {
    fn of(case: Case<'_>) -> Self {
        let one = 1u128 << DIGITS;
        let cores = u128::from(case.cores);
        let (mut utilization, mut early) = (0u128, 0u128);
        for other in case.tasks {
            let (cost, period) = (u128::from(other.cost_ns), u128::from(other.period_ns));
            utilization += (cost * one).div_ceil(period);
            early += (cost * u128::from(other.period_ns - other.deadline_ns)).div_ceil(period);
        }
        let mut costs: Vec<u128> = case.tasks.iter().map(|other| u128::from(other.cost_ns)).collect();
        let carried = sum_of_largest(&mut costs, case.cores as usize - 1);
        let idle = (cores * one).checked_sub(utilization).filter(|idle| *idle > 0);
        Self { cores, idle, ahead: carried + early }
    }

    /// No A above this can violate the condition. If there is no such A, none at all can. Rounded
    /// up.
    fn longest(&self, task: &Task) -> Result<Option<u128>, Open> {
        let work = self.ahead + self.cores * u128::from(task.cost_ns);
        let bound = work.checked_mul(1 << DIGITS).ok_or(Open)?.div_ceil(self.idle.ok_or(Open)?);
        Ok(bound.checked_sub(u128::from(task.deadline_ns)))
    }
}

/// The condition for one A = `window` - D_k.
fn holds(case: Case<'_>, task: &Task, window: u128) -> bool {
    let room = window - u128::from(task.cost_ns);
    let before = window - u128::from(task.deadline_ns);
    let mut sum = 0u128;
    let mut gains = Vec::with_capacity(case.tasks.len());
    for other in case.tasks {
        let (without, with) = (demand(other, window), carrying(other, window));
        let (without, with) = if std::ptr::eq(other, task) {
            let own = u128::from(task.cost_ns);
            ((without - own).min(before), (with - own).min(before))
        } else {
            (without.min(room + 1), with.min(room + 1))
        };
        sum += without;
        gains.push(with - without);
    }
    sum += sum_of_largest(&mut gains, case.cores as usize - 1);
    sum <= u128::from(case.cores) * room
}

/// Demand of jobs with release and deadline in a window of this length.
fn demand(task: &Task, window: u128) -> u128 {
    match window.checked_sub(u128::from(task.deadline_ns)) {
        Some(room) => (room / u128::from(task.period_ns) + 1) * u128::from(task.cost_ns),
        None => 0,
    }
}

/// The same with a job from before the window, whose deadlines end with it. Never below [`demand`]
/// for deadlines up to periods.
fn carrying(task: &Task, window: u128) -> u128 {
    let (period, cost) = (u128::from(task.period_ns), u128::from(task.cost_ns));
    window / period * cost + cost.min(window % period)
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn task(cost_ns: u64, deadline_ns: u64, period_ns: u64) -> Task {
        Task { deadline_ns, ..Task::implicit(period_ns, cost_ns) }
    }

    fn answer(tasks: &[Task], cores: u64) -> Result<bool, Open> {
        schedulable(Case { tasks, cores }, &mut Effort { rounds: 0, cap: 1 << 30 })
    }

    #[test]
    fn the_steps_of_the_demand_are_not_enough() {
        let tasks = [task(11, 23, 23), task(3, 27, 27), task(20, 27, 27), task(5, 7, 7)];
        let case = Case { tasks: &tasks, cores: 3 };
        let steps =
            |window: &u128| tasks.iter().any(|task| window.is_multiple_of(u128::from(task.period_ns)));
        for task in &tasks {
            let last = Bound::of(case).longest(task).unwrap().unwrap_or(0) + u128::from(task.deadline_ns);
            assert!(
                (u128::from(task.deadline_ns)..=last).filter(steps).all(|window| holds(case, task, window))
            );
        }
        assert!(!holds(case, &tasks[2], 30));
        assert_eq!(answer(&tasks, 3), Ok(false));
    }

    #[test]
    fn all_of_the_cores_leave_it_open() {
        assert_eq!(answer(&[task(5, 5, 5), task(7, 7, 7)], 2), Err(Open));
        assert_eq!(answer(&[task(4, 5, 5), task(6, 7, 7)], 2), Ok(true));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn as_with_every_window(
            rows in prop::collection::vec((4u64..44, 1u64..101, 0u64..101), 2..9), cores in 2u64..5, implicit in any::<bool>(),
        ) {
            let share = |(period, cost, deadline): &(u64, u64, u64)| {
                let cost = (period * cost * cores / (rows.len() as u64 * 80)).clamp(1, *period);
                task(cost, if implicit { *period } else { cost + (period - cost) * deadline / 100 }, *period)
            };
            let tasks: Vec<Task> = rows.iter().map(share).collect();
            let case = Case { tasks: &tasks, cores };
            prop_assume!(tasks.iter().map(Task::utilization).sum::<f64>() < cores as f64 - 0.01);
            let every = tasks.iter().all(|task| {
                let start = u128::from(task.deadline_ns);
                Bound::of(case).longest(task).unwrap().is_none_or(|longest| (start..=start + longest).all(|window| holds(case, task, window)))
            });
            prop_assert_eq!(answer(&tasks, cores), Ok(every));
        }
    }
}
