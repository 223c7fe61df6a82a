//! Global fixed priorities by response times, every task above with carry-in.
//!
//! Bertogna and Cirinei, "Response-time analysis for globally scheduled symmetric multiprocessor platforms", RTSS 2007, with blocking as
//! Easwaran and Andersson add it ("Resource sharing in global fixed-priority preemptive multiprocessor scheduling", RTSS 2009):
//! the least R = C_k + B_k + floor(sum W_i(R) / m) over the tasks above, W_i(R) with their response times in place of their deadlines. No
//! share is cut at R - C_k + 1 here, as blocking takes that bound away.

use super::{Case, Effort, downwards};
use crate::fractions::Open;
use crate::task::Task;

/// Response times down to the first task that may be late; nothing below it.
pub(super) fn responses(case: Case<'_>, effort: &mut Effort) -> Result<Vec<Option<u64>>, Open> {
    downwards(case, |index, above| response(case, index, above, effort))
}

fn response(case: Case<'_>, index: usize, above: &[u64], effort: &mut Effort) -> Result<Option<u64>, Open> {
    let task = &case.tasks[index];
    let own = task.cost_ns + task.blocking_ns;
    let mut window = own;
    if (index as u64) < case.cores {
        return Ok((window <= task.deadline_ns).then_some(window));
    }
    while window <= task.deadline_ns {
        effort.spend()?;
        let sum: u128 =
            case.tasks.iter().zip(above).map(|(other, &bound)| workload(other, bound, window)).sum();
        let next = u128::from(own) + sum / u128::from(case.cores);
        if next == u128::from(window) {
            return Ok(Some(window));
        }
        let Ok(next) = u64::try_from(next) else { break };
        window = next;
    }
    Ok(None)
}

/// What a task executes at most in a window of this length if no job responds later than
/// `response`.
fn workload(task: &Task, response: u64, window: u64) -> u128 {
    let length = u128::from(window) + u128::from(response - task.cost_ns);
    let (period, cost) = (u128::from(task.period_ns), u128::from(task.cost_ns));
    length / period * cost + cost.min(length % period)
}
