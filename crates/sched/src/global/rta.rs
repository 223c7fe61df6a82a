//! Global EDF by response times.
//!
//! Bertogna and Cirinei, "Response-time analysis for globally scheduled symmetric multiprocessor
//! platforms", RTSS 2007: the least R = C_k + floor(sum min(W_i(R), E_i(D_k), R - C_k + 1) / m),
//! where W_i is what any work-conserving scheduler lets task i execute in a window of R, and E_i
//! what EDF lets it execute before the deadline of the job analysed. Slacks found for some tasks
//! tighten both for the others.

use super::{Case, Effort, bcl_iterative, stride};
use crate::fractions::Open;
use crate::task::Task;

/// Most rounds of slacks, as many as SchedCAT makes: a set that needs more is not called
/// schedulable.
const MOST_ROUNDS: usize = 25;

/// Response times of all tasks, or nothing for any: bounds hold only once every task meets its
/// deadline.
pub(super) fn responses(case: Case<'_>, effort: &mut Effort) -> Result<Vec<Option<u64>>, Open> {
    let mut slacks = vec![0u64; case.tasks.len()];
    for _ in 0..MOST_ROUNDS {
        let (mut all, mut changed) = (true, false);
        for index in 0..slacks.len() {
            match response(case, index, &slacks, effort)? {
                None => all = false,
                Some(response) => {
                    let slack = case.tasks[index].deadline_ns - response;
                    changed |= slack != slacks[index];
                    slacks[index] = slack;
                }
            }
        }
        if all {
            let bounds = case.tasks.iter().zip(&slacks).map(|(task, slack)| Some(task.deadline_ns - slack));
            return Ok(bounds.collect());
        }
        if !changed {
            break;
        }
    }
    Ok(vec![None; case.tasks.len()])
}

/// The least solution within the deadline, if there is one.
fn response(case: Case<'_>, index: usize, slacks: &[u64], effort: &mut Effort) -> Result<Option<u64>, Open> {
    let task = &case.tasks[index];
    let mut window = task.cost_ns;
    let mut works = Vec::with_capacity(slacks.len());
    loop {
        effort.spend()?;
        let most = u128::from(window - task.cost_ns) + 1;
        works.clear();
        let others = case.tasks.iter().zip(slacks).enumerate().filter(|(at, _)| *at != index);
        works.extend(others.map(|(_, (other, &slack))| {
            let by_deadline = bcl_iterative::workload(other, task.deadline_ns, slack);
            workload(other, window, slack).min(by_deadline)
        }));
        let sum: u128 = works.iter().map(|work| (*work).min(most)).sum();
        let next = u128::from(task.cost_ns) + sum / u128::from(case.cores);
        if next == u128::from(window) {
            return Ok(Some(window));
        }
        match u64::try_from(next + stride(works.iter().copied(), most, case.cores)) {
            Ok(next) if next <= task.deadline_ns => window = next,
            _ => return Ok(None),
        }
    }
}

/// What a task executes at most in a window of this length if each of its jobs ends this slack
/// before its deadline.
fn workload(task: &Task, window: u64, slack: u64) -> u128 {
    let length = u128::from(window) + u128::from(task.deadline_ns - task.cost_ns - slack);
    let (period, cost) = (u128::from(task.period_ns), u128::from(task.cost_ns));
    length / period * cost + cost.min(length % period)
}
