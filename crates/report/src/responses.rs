//! Calculated response times beside measured ones: fixed priorities, all tasks released together
//! (Joseph and Pandya 1986, see crate `sched`).

use analysis::taskset::MeasuredTask;
use sched::{Limits, Task, TaskError, TaskSet, response_times};

/// The response time of each task, ns, when all are released together; none where it lies behind
/// the deadline. Tasks come with their priorities, a higher number first.
///
/// The tests order tasks strictly. Of equal priorities SCHED_FIFO serves the first to come, so each
/// may have to wait for all the others: every task is analysed as the last of its equals.
pub fn bounds(tasks: &[(u32, Task)]) -> Result<Vec<Option<u64>>, TaskError> {
    let of = |(index, (priority, task)): (usize, &(u32, Task))| {
        let others = tasks.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other);
        let above = others.filter(|(other, _)| other >= priority).map(|(_, task)| *task);
        let set = TaskSet::new(above.chain([*task]).collect())?;
        Ok(response_times(&set, Limits::default()).response_times.last().copied().flatten())
    };
    tasks.iter().enumerate().map(of).collect()
}

/// The same for tasks that were measured; empty where they are no task set.
pub(crate) fn of_measured(tasks: &[MeasuredTask]) -> Vec<Option<u64>> {
    let task = |one: &MeasuredTask| {
        let set = Task::implicit(one.period_ns, one.task.cost_ns);
        (one.priority, Task { deadline_ns: one.task.deadline_ns, ..set })
    };
    bounds(&tasks.iter().map(task).collect::<Vec<_>>()).unwrap_or_default()
}
