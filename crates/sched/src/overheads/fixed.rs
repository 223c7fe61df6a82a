//! Overheads under fixed priorities: interrupts are tasks above all others.
//!
//! Every interrupt source is sporadic and runs before any task, so that it interferes as a task of
//! the highest priorities does (D. Katcher, H. Arakawa and J. Strosnider, "Engineering and analysis
//! of fixed priority schedulers", IEEE Transactions on Software Engineering 19(9), 1993;
//! Brandenburg 2011, chapter 3). In which order interrupts are served does not matter to tasks.
//!
//! Release jitter ends where the release interrupt begins, not where it ends: from there on the
//! core works for the job, and the interference already includes the interrupt. Charging it as
//! jitter as well would be safe, too.

use super::Overheads;
use crate::task::{Task, TaskError, TaskSet};

/// A set with its overheads: sources of interrupts first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charged {
    /// So many sources come before the tasks.
    pub interrupts: usize,
    /// Sources and tasks, highest priority first.
    pub set: TaskSet,
}

/// The set of one core in which jobs cost what they cost with switches, and interrupts are tasks.
pub fn charge_fixed(set: &TaskSet, overheads: &Overheads) -> Result<Charged, TaskError> {
    let mut tasks = overheads.interrupts(set.tasks());
    let interrupts = tasks.len();
    tasks.extend(set.tasks().iter().map(|task| Task {
        cost_ns: overheads.cost_with_switches(task),
        jitter_ns: overheads.jitter(task),
        ..*task
    }));
    Ok(Charged { interrupts, set: TaskSet::new(tasks)? })
}
