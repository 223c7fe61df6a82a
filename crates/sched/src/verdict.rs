//! The shape in which every schedulability test answers.

use serde::{Deserialize, Serialize};

use crate::system::System;
use crate::task::Task;

/// The result of a test on a task set. Arrays are indexed by task, in priority order; times in ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Every response time is known and within its deadline.
    pub schedulable: bool,
    /// Upper bound on each task's response time: from arrival to completion, own release jitter
    /// included (`Published::Replication` leaves the jitter out). `None`, in JSON `null`, where the
    /// test has no bound: it only decides (such as `edf-qpa`), the tasks do not fit on the cores, a
    /// busy window outgrows the deadline, or the task is in `undecided`. The bound is exact under
    /// `fp-rta` where it is at most the period and the set has no blocking, suspension, overheads
    /// or equal priorities; otherwise it may exceed the true maximum.
    pub response_times: Vec<Option<u64>>,
    /// Total blocking charged to the task, spinning and arrival blocking included.
    pub blocking: Vec<u64>,
    /// The part of `blocking` spent spinning for locks, or suspended for them.
    pub spin: Vec<u64>,
    /// The part of `blocking` that lock holders of the same core cause: on arrival, and after each
    /// suspension for a lock.
    pub arrival: Vec<u64>,
    /// Processor of each task.
    pub cores: Vec<u32>,
    /// How often the right-hand side of a busy-window equation was evaluated.
    pub rounds: u64,
    /// Tasks given up at the cap on rounds, counted as not schedulable: "unknown", not "late".
    pub undecided: Vec<usize>,
    /// The question, repeated so that a report can show what was answered.
    pub tasks: Vec<Task>,
}

impl Verdict {
    /// The answer before anything is known: no response time, nothing schedulable.
    pub(crate) fn unanswered(tasks: &[Task]) -> Self {
        Self {
            schedulable: false,
            response_times: vec![None; tasks.len()],
            blocking: tasks.iter().map(|task| task.blocking_ns).collect(),
            spin: vec![0; tasks.len()],
            arrival: vec![0; tasks.len()],
            cores: vec![0; tasks.len()],
            rounds: 0,
            undecided: Vec::new(),
            tasks: tasks.to_vec(),
        }
    }

    /// The answer where the tasks do not fit on the cores, or cannot be in time whatever runs
    /// beside them.
    pub fn not_placed(system: &System) -> Self {
        Self::unanswered(&system.tasks.iter().map(|task| task.task).collect::<Vec<_>>())
    }

    /// Whether every response time is known and within its deadline.
    pub(crate) fn meets_deadlines(&self) -> bool {
        meet_deadlines(&self.response_times, &self.tasks)
    }
}

/// Whether every response time is known and within the deadline of its task.
pub(crate) fn meet_deadlines(response_times: &[Option<u64>], tasks: &[Task]) -> bool {
    let in_time = |(response, task): (&Option<u64>, &Task)| {
        response.is_some_and(|response_ns| response_ns <= task.deadline_ns)
    };
    response_times.iter().zip(tasks).all(in_time)
}
