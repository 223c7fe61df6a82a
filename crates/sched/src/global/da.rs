//! Global EDF, soft: by how much jobs of tasks with D = T can be late, on any number of cores that
//! are not overloaded.
//!
//! Devi and Anderson, "Tardiness bounds under global EDF scheduling on a multiprocessor", RTSS
//! 2005, with the refinement of Devi's thesis (University of North Carolina 2006), corollary 4.11:
//! no job ends later than x + C after its deadline, with x = (the L largest costs - the smallest) /
//! (m - the L - 1 largest utilizations), L = ceil(U) - 1.

use super::Case;
use crate::fractions::{Fraction, Open, sign};
use crate::task::Task;
use std::cmp::Ordering;

/// Bounds of the response times, D + C + x, or nothing where tardiness is not bounded. Utilization
/// is known to be at most the cores.
pub(super) fn responses(case: Case<'_>) -> Result<Vec<Option<u64>>, Open> {
    let Some(late) = lateness(case)? else { return Ok(vec![None; case.tasks.len()]) };
    let response = |task: &Task| task.deadline_ns.checked_add(task.cost_ns)?.checked_add(late);
    Ok(case.tasks.iter().map(response).collect())
}

/// x, rounded up; none where it has no bound.
fn lateness(case: Case<'_>) -> Result<Option<u64>, Open> {
    if case.cores == 1 {
        return Ok(Some(0));
    }
    let carrying = carrying(case)?;
    let mut costs: Vec<u64> = case.tasks.iter().map(|task| task.cost_ns).collect();
    costs.sort_unstable_by(|a, b| b.cmp(a));
    let largest: u128 = costs.iter().take(carrying).map(|cost| u128::from(*cost)).sum();
    let work = largest.saturating_sub(u128::from(costs.last().copied().unwrap_or(0)));
    if work == 0 {
        return Ok(Some(0));
    }
    let mut heavy: Vec<&Task> = case.tasks.iter().collect();
    heavy.sort_by(|a, b| {
        let cross = |one: &Task, other: &Task| u128::from(one.cost_ns) * u128::from(other.period_ns);
        cross(b, a).cmp(&cross(a, b))
    });
    heavy.truncate(carrying.saturating_sub(1));
    // x is enough iff work - x (m - U) <= 0.
    let enough = |x: u64| {
        let given =
            heavy.iter().map(|task| Fraction::new(i128::from(task.cost_ns) * i128::from(x), task.period_ns));
        let taken = i128::try_from(work).map_err(|_| Open)? - i128::from(case.cores) * i128::from(x);
        Ok(sign(given.chain([Fraction::whole(taken)]))? != Ordering::Greater)
    };
    let (mut below, mut above) = (0, 1u64 << 62);
    if !enough(above)? {
        return Ok(None);
    }
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if enough(middle)? {
            above = middle;
        } else {
            below = middle;
        }
    }
    Ok(Some(above))
}

/// L: the largest whole number below the utilization.
fn carrying(case: Case<'_>) -> Result<usize, Open> {
    let (mut low, mut high) = (0, case.tasks.len().min(case.cores as usize));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let all = case.tasks.iter().map(|task| Fraction::new(task.cost_ns, task.period_ns));
        if sign(all.chain([Fraction::whole(-(middle as i128))]))? == Ordering::Greater {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(low)
}
