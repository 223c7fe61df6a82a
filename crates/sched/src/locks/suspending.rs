//! Response times of tasks that suspend while they wait for locks.
//!
//! While a job of task i is pending its core executes it, a local task above it, or a local section
//! of a task below; or the job is suspended. The last two are the bounds of the protocols. Tasks
//! above that request nothing of other cores interfere with their release jitter: going back from
//! the job's release as long as one of them is pending, no task below begins a section, so the
//! bound for the arrival covers the whole window. All others may be late by their waits and
//! interfere as if their jitter were R - C, which holds in any window (Chen et al., Real-Time
//! Systems 55, 2019, section 4). To count their waits as jitter alone, without what delays them
//! beside, was wrong (the same, section 6).

use super::answer::charged;
use super::{Blocking, Charge, Sharing};
use crate::fp_suspension::{Demand, response_times_of_demands};
use crate::system::System;
use crate::task::{Task, TaskError, TaskSet};
use crate::verdict::Verdict;
use crate::window::Limits;

/// Response times of one core under one bound.
pub(super) fn on_one_core(
    system: &System,
    indices: &[usize],
    sharing: &Sharing,
    bound: &Blocking,
    limits: Limits,
) -> Result<Verdict, TaskError> {
    let charge =
        |&at: &usize| charged(system.tasks[at].task, Charge::Suspension, bound.spin[at], bound.arrival[at]);
    let tasks: Vec<Task> = indices.iter().map(charge).collect();
    let demand = |&at: &usize| Demand { added_ns: 0, suspends: sharing.leaves_core(at) };
    let demands: Vec<Demand> = indices.iter().map(demand).collect();
    let set = TaskSet::new(tasks)?;
    Ok(response_times_of_demands(set.tasks(), &demands, limits))
}
