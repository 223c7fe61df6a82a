//! Global EDF by load and largest density.
//!
//! Baker and Baruah, "An analysis of global EDF schedulability for arbitrary-deadline sporadic task
//! systems", Real-Time Systems 43, 2009, corollary 2: with d = max C/D and u = m - (m - 1) d, a
//! load of at most max(u - (ceil u - 1) d, (ceil u - 1) - (ceil u - 2) d) is schedulable. The load,
//! the largest demand of an interval over its length, is bounded from above within 0.1 as by
//! Fisher, Baker and Baruah, "Algorithms for determining the demand-based load of a sporadic task
//! system", RTCSA 2006: exact demand for the first steps of a task, then its line.

use super::{Case, Effort, densest};
use crate::fractions::{Fraction, Open, at_most_zero, sign};
use crate::task::Task;
use std::cmp::Ordering;

/// One over the error that the bound of the load may have.
const PRECISION: u64 = 10;

/// Most intervals looked at.
const MOST_POINTS: u128 = 1 << 24;

/// Whether the load is within the bound.
pub(super) fn schedulable(case: Case<'_>, effort: &mut Effort) -> Result<bool, Open> {
    let Some(densest) = densest(case.tasks) else { return Ok(true) };
    let bound = bound(case, &densest);
    let negative = Fraction::new(-bound.over, bound.under);
    let utilization = || case.tasks.iter().map(|task| Fraction::new(task.cost_ns, task.period_ns));
    let density = || case.tasks.iter().map(|task| Fraction::new(task.cost_ns, task.deadline_ns));
    let minus_density =
        || case.tasks.iter().map(|task| Fraction::new(-i128::from(task.cost_ns), task.deadline_ns));
    if sign(utilization().chain(minus_density()))? != Ordering::Less {
        return at_most_zero(utilization().chain([negative]));
    }
    // The load is not above the density either.
    if at_most_zero(density().chain([negative]))? {
        return Ok(true);
    }
    let error = Fraction::new(1, PRECISION);
    if !at_most_zero(utilization().chain([error, negative]))? {
        return Ok(false);
    }
    let steps: Vec<u64> = case
        .tasks
        .iter()
        .map(|task| exact_steps(task, case.tasks.len()))
        .collect::<Option<_>>()
        .ok_or(Open)?;
    if steps.iter().map(|steps| u128::from(*steps) + 1).sum::<u128>() > MOST_POINTS {
        return Err(Open);
    }
    for (task, &count) in case.tasks.iter().zip(&steps) {
        for step in 0..=count {
            effort.spend()?;
            let length =
                step.checked_mul(task.period_ns).and_then(|before| before.checked_add(task.deadline_ns));
            let length = length.ok_or(Open)?;
            let demand: u128 =
                case.tasks.iter().zip(&steps).map(|(task, steps)| demand(task, length, *steps)).sum();
            // demand / length <= over / under
            let asked = i128::try_from(demand).map_err(|_| Open)?.checked_mul(i128::from(bound.under));
            let allowed = bound.over.checked_mul(i128::from(length));
            if asked.ok_or(Open)? > allowed.ok_or(Open)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The load that corollary 2 admits.
fn bound(case: Case<'_>, densest: &Task) -> Fraction {
    let (cost, deadline) = (i128::from(densest.cost_ns), i128::from(densest.deadline_ns));
    let cores = i128::from(case.cores);
    let mu = cores * deadline - (cores - 1) * cost;
    let whole = mu.div_euclid(deadline) + i128::from(mu.rem_euclid(deadline) > 0);
    let first = mu - (whole - 1) * cost;
    let second = (whole - 1) * deadline - (whole - 2) * cost;
    Fraction { over: first.max(second), under: densest.deadline_ns }
}

/// How many steps of a task's demand have to be exact: n U / error - D / T, rounded up.
fn exact_steps(task: &Task, tasks: usize) -> Option<u64> {
    let jobs = u128::from(PRECISION) * tasks as u128 * u128::from(task.cost_ns);
    let steps = jobs.saturating_sub(u128::from(task.deadline_ns)).div_ceil(u128::from(task.period_ns));
    u64::try_from(steps).ok()
}

/// Demand of a task in an interval, the line above it from step `exact` on.
fn demand(task: &Task, length: u64, exact: u64) -> u128 {
    let Some(room) = length.checked_sub(task.deadline_ns) else { return 0 };
    let (cost, period) = (u128::from(task.cost_ns), u128::from(task.period_ns));
    let jobs = u128::from(room) / period;
    let after =
        if jobs < u128::from(exact) { jobs * cost } else { (u128::from(room) * cost).div_ceil(period) };
    cost + after
}
