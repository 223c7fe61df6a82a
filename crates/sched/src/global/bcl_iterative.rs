//! Global EDF by interference, slack by slack.
//!
//! Bertogna, Cirinei and Lipari, "Schedulability analysis of global scheduling algorithms on
//! multiprocessor platforms", IEEE Transactions on Parallel and Distributed Systems 20(4), 2009: a
//! task that is known to end s before its deadline carries less into the windows of others. Slacks
//! only grow, round after round, until all tasks pass or nothing changes. Times are integers: a job
//! is late only if others keep all cores busy for D - C + 1.

use super::{Case, Effort};
use crate::fractions::Open;
use crate::task::Task;

/// Whether slacks are found for all tasks.
pub(super) fn schedulable(case: Case<'_>, effort: &mut Effort) -> Result<bool, Open> {
    let mut slacks = vec![0u64; case.tasks.len()];
    loop {
        let (mut all, mut changed) = (true, false);
        for index in 0..slacks.len() {
            effort.spend()?;
            match slack(case, index, &slacks) {
                None => all = false,
                Some(slack) if slack > slacks[index] => {
                    slacks[index] = slack;
                    changed = true;
                }
                Some(_) => {}
            }
        }
        if all || !changed {
            return Ok(all);
        }
    }
}

/// The slack of a task under those of the others; `None` where it may be late.
fn slack(case: Case<'_>, index: usize, slacks: &[u64]) -> Option<u64> {
    let task = &case.tasks[index];
    let most = u128::from(task.deadline_ns - task.cost_ns) + 1;
    let others = case.tasks.iter().zip(slacks).enumerate().filter(|(at, _)| *at != index);
    let sum: u128 =
        others.map(|(_, (other, slack))| workload(other, task.deadline_ns, *slack).min(most)).sum();
    let response = u128::from(task.cost_ns) + sum / u128::from(case.cores);
    u64::try_from(u128::from(task.deadline_ns).checked_sub(response)?).ok()
}

/// What a task with this slack executes at most in a window that ends with one of its deadlines.
pub(super) fn workload(task: &Task, window: u64, slack: u64) -> u128 {
    let jobs = u128::from(window / task.period_ns);
    let rest = (window % task.period_ns).saturating_sub(slack);
    jobs * u128::from(task.cost_ns) + u128::from(rest.min(task.cost_ns))
}
