//! Global EDF by forced-forward demand.
//!
//! Baruah, Bonifaci, Marchetti-Spaccamela and Stiller, "Improved multiprocessor global
//! schedulability analysis", Real-Time Systems 46, 2010, theorem 3: a set with D <= T is
//! schedulable if for some s, not below any density, the demand of every interval t is at most (m -
//! (m - 1) s) t, where a job due after the interval counts with what it cannot do there at speed s.
//! As in section 4 of the paper s goes upwards in steps of 1/50 from the largest density to (m - U)
//! / (m - 1) - 1/10, and t up to 10 sum C.
//!
//! The condition changes where a job is due or begins to count, t = D + j T and t = D + j T - C /
//! s. Everything is an integer after multiplication by the denominators of s and t.

use super::{Case, Effort, densest};
use crate::fractions::{Fraction, Open, at_most_zero};
use crate::task::Task;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Steps of s in 1.
const STEPS: i128 = 50;
/// Reciprocal of the gap between s and its bound.
const DISTANCE: i128 = 10;

/// A number, `over / under`.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    over: i128,
    under: i128,
}

/// Whether some s is found.
pub(super) fn schedulable(case: Case<'_>, effort: &mut Effort) -> Result<bool, Open> {
    let Some(densest) = densest(case.tasks) else { return Ok(true) };
    let mut speed = Ratio { over: i128::from(densest.cost_ns), under: i128::from(densest.deadline_ns) };
    let longest = DISTANCE * case.tasks.iter().map(|task| i128::from(task.cost_ns)).sum::<i128>();
    let mut next_step = speed.over * STEPS / speed.under + 1;
    let start = Ratio { over: 0, under: 1 };
    let mut seen = start;
    while is_allowed(case, speed)? {
        let mut failed = first_violation(case, speed, seen, longest, effort)?;
        if failed.is_none() && seen.over > 0 {
            // What a smaller s passed has to be passed by this one, too.
            failed = first_violation(case, speed, start, longest, effort)?;
        }
        let Some(failed) = failed else { return Ok(true) };
        seen = failed;
        // No s in between helps at this t.
        loop {
            speed = Ratio { over: next_step, under: STEPS };
            next_step += 1;
            effort.spend()?;
            if !is_allowed(case, speed)? || holds(case, speed, seen)? {
                break;
            }
        }
    }
    Ok(false)
}

/// s <= 1 and s <= (m - U) / (m - 1) - 1/10.
fn is_allowed(case: Case<'_>, speed: Ratio) -> Result<bool, Open> {
    let others = i128::from(case.cores) - 1;
    let under = u64::try_from(speed.under).map_err(|_| Open)?;
    let used = case.tasks.iter().map(|task| Fraction::new(task.cost_ns, task.period_ns));
    let given = [
        Fraction::new(others * speed.over, under),
        Fraction::new(others, DISTANCE as u64),
        Fraction::whole(-i128::from(case.cores)),
    ];
    Ok(speed.over <= speed.under && at_most_zero(used.chain(given))?)
}

/// The first t after `after`, up to `longest`, at which the demand is too large.
fn first_violation(
    case: Case<'_>,
    speed: Ratio,
    after: Ratio,
    longest: i128,
    effort: &mut Effort,
) -> Result<Option<Ratio>, Open> {
    // Every t is a multiple of 1 / speed.over.
    let unit = speed.over;
    let mut points = Points::after(case.tasks, speed, after).ok_or(Open)?;
    let end = longest.checked_mul(unit).ok_or(Open)?;
    loop {
        let point = points.next().ok_or(Open)?;
        if point > end {
            return Ok(None);
        }
        effort.spend()?;
        let t = Ratio { over: point, under: unit };
        if !holds(case, speed, t)? {
            return Ok(Some(t));
        }
    }
}

/// Whether the demand at t is within (m - (m - 1) s) t.
fn holds(case: Case<'_>, speed: Ratio, t: Ratio) -> Result<bool, Open> {
    is_within(case, speed, t).ok_or(Open)
}

/// The same; none where a number does not fit.
fn is_within(case: Case<'_>, speed: Ratio, t: Ratio) -> Option<bool> {
    let scale = speed.under.checked_mul(t.under)?;
    let mut demand = 0i128;
    for task in case.tasks {
        let [cost, period, deadline] = [task.cost_ns, task.period_ns, task.deadline_ns].map(i128::from);
        let jobs = t.over / period.checked_mul(t.under)?;
        let rest = t.over % (period * t.under);
        // What is left to do at speed s when the interval ends, times the scale.
        let missing = speed.over.checked_mul(deadline.checked_mul(t.under)?.saturating_sub(rest).max(0))?;
        let whole = cost.checked_mul(scale)?;
        demand = demand.checked_add(jobs.checked_mul(whole)?)?.checked_add((whole - missing).max(0))?;
    }
    let cores = i128::from(case.cores);
    let rate = cores * speed.under - (cores - 1) * speed.over;
    Some(demand <= rate.checked_mul(t.over)?)
}

/// The points of all tasks in order, in units of 1 / speed.over.
struct Points {
    heap: BinaryHeap<Reverse<(i128, usize)>>,
    periods: Vec<i128>,
    last: Option<i128>,
}

impl Points {
    fn after(tasks: &[Task], speed: Ratio, after: Ratio) -> Option<Self> {
        let unit = speed.over;
        // The first whole point above `after`.
        let least = after.over.checked_mul(unit)? / after.under + 1;
        let mut heap = BinaryHeap::with_capacity(2 * tasks.len());
        let mut periods = Vec::with_capacity(2 * tasks.len());
        for task in tasks {
            let period = i128::from(task.period_ns).checked_mul(unit)?;
            let deadline = i128::from(task.deadline_ns).checked_mul(unit)?;
            let begins = deadline.checked_sub(i128::from(task.cost_ns).checked_mul(speed.under)?)?.max(0);
            for first in [begins, deadline] {
                let skipped = (least - first).max(0);
                let jobs = skipped / period + i128::from(skipped % period > 0);
                heap.push(Reverse((first.checked_add(jobs.checked_mul(period)?)?, periods.len())));
                periods.push(period);
            }
        }
        Some(Self { heap, periods, last: None })
    }

    /// The next one; none where a number does not fit, and without tasks.
    fn next(&mut self) -> Option<i128> {
        while let Some(Reverse((point, at))) = self.heap.pop() {
            self.heap.push(Reverse((point.checked_add(self.periods[at])?, at)));
            if self.last != Some(point) {
                self.last = Some(point);
                return Some(point);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn case_of(rows: &[(u64, u64, u64)], cores: u64) -> Vec<Task> {
        let share = |&(period, cost, deadline): &(u64, u64, u64)| {
            let cost_ns = (period * cost * cores / (rows.len() as u64 * 90)).clamp(1, period);
            Task {
                deadline_ns: cost_ns + (period - cost_ns) * deadline / 100,
                ..Task::implicit(period, cost_ns)
            }
        };
        rows.iter().map(share).collect()
    }

    fn answer(tasks: &[Task], cores: u64) -> Result<bool, Open> {
        schedulable(Case { tasks, cores }, &mut Effort { rounds: 0, cap: 1 << 30 })
    }

    #[test]
    fn half_loaded_cores_pass_and_full_ones_do_not() {
        assert_eq!(
            answer(&[Task::implicit(10, 3), Task::implicit(10, 3), Task::implicit(10, 3)], 2),
            Ok(true)
        );
        assert_eq!(
            answer(&[Task::implicit(10, 7), Task::implicit(10, 7), Task::implicit(10, 6)], 2),
            Ok(false)
        );
        assert_eq!(answer(&[], 2), Ok(true));
    }

    proptest! {
        /// A yes needs one speed that every interval passes: all whole t of a speed of 1/50 steps,
        /// and of the density.
        #[test]
        fn a_yes_holds_at_every_whole_interval_for_one_speed(
            rows in prop::collection::vec((4u64..30, 1u64..101, 0u64..101), 2..7), cores in 2u64..5,
        ) {
            let tasks = case_of(&rows, cores);
            prop_assume!(tasks.iter().map(Task::utilization).sum::<f64>() <= cores as f64);
            let case = Case { tasks: &tasks, cores };
            if answer(&tasks, cores) == Ok(true) {
                let densest = densest(&tasks).unwrap();
                let density = Ratio { over: densest.cost_ns.into(), under: densest.deadline_ns.into() };
                let above = (1..=STEPS).map(|over| Ratio { over, under: STEPS }).filter(|s| s.over * density.under > density.over * STEPS);
                let passes = |speed: Ratio| is_allowed(case, speed).unwrap()
                    && (1..3_000).all(|t| holds(case, speed, Ratio { over: t, under: 1 }).unwrap());
                prop_assert!(std::iter::once(density).chain(above).any(passes));
            }
        }
    }
}
