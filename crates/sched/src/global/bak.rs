//! Global EDF by the load of a window that ends with a missed deadline.
//!
//! Baker, "An analysis of EDF schedulability on a multiprocessor", IEEE Transactions on Parallel
//! and Distributed Systems 16(8), 2005. A task k of density l = C_k/D_k meets its deadlines if sum
//! min(b_i, 1) <= m (1 - l) + l, where b_i = u_i (1 + (T_i - D_i) / D_k), and (C_i - l T_i) / D_k
//! more if u_i > l.
//!
//! Here everything is multiplied by D_k.

use super::{Case, Effort};
use crate::fractions::{Fraction, Open, at_most_zero};
use crate::task::Task;

/// Whether every task passes.
pub(super) fn schedulable(case: Case<'_>, effort: &mut Effort) -> Result<bool, Open> {
    for task in case.tasks {
        effort.spend()?;
        if !meets_deadline(case, task)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn meets_deadline(case: Case<'_>, task: &Task) -> Result<bool, Open> {
    let (cost, deadline) = (i128::from(task.cost_ns), i128::from(task.deadline_ns));
    let mut terms = Vec::with_capacity(3 * case.tasks.len() + 1);
    for other in case.tasks {
        let load = load(other, task);
        let capped = Fraction::whole(-deadline);
        if at_most_zero(load.into_iter().chain([capped]))? {
            terms.extend(load);
        } else {
            terms.push(Fraction::whole(deadline));
        }
    }
    let cores = i128::from(case.cores);
    terms.push(Fraction::whole(-(cores * (deadline - cost) + cost)));
    at_most_zero(terms)
}

/// D_k b_i as three fractions.
fn load(other: &Task, task: &Task) -> [Fraction; 3] {
    let [cost, period, deadline] = [other.cost_ns, other.period_ns, other.deadline_ns].map(i128::from);
    let window = i128::from(task.deadline_ns) + period - deadline;
    let always = Fraction::new(cost * window, other.period_ns);
    let heavy = cost * i128::from(task.deadline_ns) > i128::from(task.cost_ns) * period;
    if heavy {
        let given = Fraction::new(-i128::from(task.cost_ns) * period, task.deadline_ns);
        [always, Fraction::whole(cost), given]
    } else {
        [always, Fraction::whole(0), Fraction::whole(0)]
    }
}
