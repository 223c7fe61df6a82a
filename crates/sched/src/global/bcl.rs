//! Global EDF by how much each task can interfere in the window of one job.
//!
//! Bertogna, Cirinei and Lipari, "Improved schedulability analysis of EDF on multiprocessor
//! platforms", ECRTS 2005, theorem 7: in [r, r + D_k] task i executes at most W_i = N C_i +
//! min(C_i, max(0, D_k - N T_i)), N = floor((D_k - D_i) / T_i) + 1. Task k meets its deadlines if
//! sum min(W_i, D_k - C_k) is below m (D_k - C_k), or equal to it while some 0 < W_i <= D_k - C_k.

use super::{Case, Effort};
use crate::fractions::Open;
use crate::task::Task;

/// Whether every task passes.
pub(super) fn schedulable(case: Case<'_>, effort: &mut Effort) -> Result<bool, Open> {
    for index in 0..case.tasks.len() {
        effort.spend()?;
        if !meets_deadline(case, index) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn meets_deadline(case: Case<'_>, index: usize) -> bool {
    let task = &case.tasks[index];
    let slack = u128::from(task.deadline_ns - task.cost_ns);
    let (mut sum, mut some_small) = (0u128, false);
    for (at, other) in case.tasks.iter().enumerate() {
        if at != index {
            let work = workload(other, task.deadline_ns);
            sum += work.min(slack);
            some_small |= 0 < work && work <= slack;
        }
    }
    let room = u128::from(case.cores) * slack;
    sum < room || (some_small && sum == room)
}

fn workload(task: &Task, window: u64) -> u128 {
    let jobs = match window.checked_sub(task.deadline_ns) {
        Some(room) => u128::from(room / task.period_ns) + 1,
        None => 0,
    };
    let whole = jobs * u128::from(task.period_ns);
    jobs * u128::from(task.cost_ns) + u128::from(task.cost_ns).min(u128::from(window).saturating_sub(whole))
}
