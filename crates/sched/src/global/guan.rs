//! Global fixed priorities by response times, with carry-in from at most m - 1 tasks.
//!
//! Guan, Stigge, Yi and Yu, "New response time bounds for fixed priority multiprocessor
//! scheduling", RTSS 2009, for deadlines up to periods: the least x = C_k + floor(W(x) / m), where
//! of the tasks above, the m - 1 that gain most from it bring in a job from before the window, and
//! the others start with it.

use super::{Case, Effort, downwards, stride};
use crate::fractions::Open;
use crate::task::Task;
use std::cmp::Reverse;

/// Response times down to the first task that may be late; nothing below it.
pub(super) fn responses(case: Case<'_>, effort: &mut Effort) -> Result<Vec<Option<u64>>, Open> {
    downwards(case, |index, above| response(case, index, above, effort))
}

fn response(case: Case<'_>, index: usize, above: &[u64], effort: &mut Effort) -> Result<Option<u64>, Open> {
    let task = &case.tasks[index];
    let mut window = task.cost_ns;
    if (index as u64) < case.cores {
        // There is always a core for it.
        return Ok((window <= task.deadline_ns).then_some(window));
    }
    let carriers = case.cores as usize - 1;
    let mut terms: Vec<Term> = Vec::with_capacity(index);
    while window <= task.deadline_ns {
        effort.spend()?;
        let most = u128::from(window - task.cost_ns) + 1;
        terms.clear();
        terms.extend(case.tasks.iter().zip(above).map(|(other, &bound)| Term {
            without: starting(other, window),
            with: carrying(other, bound, window),
            most,
        }));
        if carriers > 0 && carriers < terms.len() {
            terms.select_nth_unstable_by_key(carriers - 1, |term| Reverse(term.gain()));
        }
        let carried = |at: usize, term: &Term| if at < carriers { term.with } else { term.without };
        let works = || terms.iter().enumerate().map(|(at, term)| carried(at, term));
        let sum: u128 = works().map(|work| work.min(most)).sum();
        let next = u128::from(task.cost_ns) + sum / u128::from(case.cores);
        if next == u128::from(window) {
            return Ok(Some(window));
        }
        let Ok(next) = u64::try_from(next + stride(works(), most, case.cores)) else { break };
        window = next;
    }
    Ok(None)
}

/// What one task may execute in the window.
struct Term {
    /// If it starts with it.
    without: u128,
    /// With a job from before.
    with: u128,
    /// What counts of either.
    most: u128,
}

impl Term {
    fn gain(&self) -> u128 {
        self.with.min(self.most) - self.without.min(self.most)
    }
}

/// Workload of a task whose first job is released with the window.
fn starting(task: &Task, window: u64) -> u128 {
    let jobs = u128::from(window / task.period_ns);
    jobs * u128::from(task.cost_ns) + u128::from((window % task.period_ns).min(task.cost_ns))
}

/// Workload of a task that brings in a job from before the window, its response time bounded. Never
/// below [`starting`].
fn carrying(task: &Task, response: u64, window: u64) -> u128 {
    let after = window.saturating_sub(task.cost_ns);
    let jobs = u128::from(after / task.period_ns) + 1;
    let idle = task.period_ns.saturating_sub(response);
    let head = (after % task.period_ns).saturating_sub(idle).min(task.cost_ns - 1);
    jobs * u128::from(task.cost_ns) + u128::from(head)
}
