//! Sporadic tasks and checked task sets: the input of every test.
//!
//! The model is that of Audsley, Burns, Richardson, Tindell and Wellings, "Applying new scheduling
//! theory to static priority pre-emptive scheduling", Software Engineering Journal 8(5), 1993: jobs
//! arrive at least a period apart, become ready at most `jitter_ns` after their arrival, and may be
//! blocked once by lower-priority work for at most `blocking_ns`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Largest value of any time field, in ns: 2^53 - 1, about 104 days.
///
/// Up to this value a time is exact as an `f64` and as a number in any JSON reader, and no test
/// overflows while it searches for a window that still meets its deadline.
pub const MAX_NS: u64 = (1 << 53) - 1;

/// Largest number of tasks in a set: the rounding margin of the floating-point bounds is sized for
/// it.
pub const MAX_TASKS: usize = 1 << 20;

/// One sporadic or periodic task. All times in ns, at most [`MAX_NS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Period, or least time between two arrivals; at least 1.
    pub period_ns: u64,
    /// Relative deadline, counted from the arrival; at least 1, may exceed the period.
    pub deadline_ns: u64,
    /// Worst-case execution time; at least 1, may exceed the deadline (the task then fails).
    pub cost_ns: u64,
    /// Release jitter: longest delay from arrival to readiness.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Blocking: longest time that lower-priority work can delay one busy window of this task.
    #[serde(default)]
    pub blocking_ns: u64,
}

impl Task {
    /// A task with deadline = period, no jitter and no blocking.
    pub const fn implicit(period_ns: u64, cost_ns: u64) -> Self {
        Self { period_ns, deadline_ns: period_ns, cost_ns, jitter_ns: 0, blocking_ns: 0 }
    }

    /// The task as seen from its releases: sporadic with T - J and D - J, without jitter. None
    /// where it may be released when it is due or when the next one arrives. Sound, and
    /// pessimistic: not every two releases are that close. (Brandenburg's thesis, 2011, section
    /// 3.4.)
    pub fn from_release(&self) -> Option<Self> {
        let left = |time_ns: u64| time_ns.checked_sub(self.jitter_ns).filter(|left| *left > 0);
        let (period_ns, deadline_ns) = (left(self.period_ns)?, left(self.deadline_ns)?);
        Some(Self { period_ns, deadline_ns, jitter_ns: 0, ..*self })
    }

    /// Share of a processor that this task needs, C/T.
    pub fn utilization(&self) -> f64 {
        self.cost_ns as f64 / self.period_ns as f64
    }
}

/// The field of a [`Task`] that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// [`Task::period_ns`].
    Period,
    /// [`Task::deadline_ns`].
    Deadline,
    /// [`Task::cost_ns`].
    Cost,
    /// [`Task::jitter_ns`].
    Jitter,
    /// [`Task::blocking_ns`].
    Blocking,
}

impl Field {
    /// The key of the field, as written in code and files.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Period => "period_ns",
            Self::Deadline => "deadline_ns",
            Self::Cost => "cost_ns",
            Self::Jitter => "jitter_ns",
            Self::Blocking => "blocking_ns",
        }
    }

    const fn minimum(self) -> u64 {
        match self {
            Self::Period | Self::Deadline | Self::Cost => 1,
            Self::Jitter | Self::Blocking => 0,
        }
    }
}

/// Why a list of tasks is not a task set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TaskError {
    /// A field of one task is out of its range.
    #[error("task {task}: {} is {value}, expected {} to {MAX_NS} ns", .field.key(), .field.minimum())]
    OutOfRange {
        /// Index of the task.
        task: usize,
        /// The offending field.
        field: Field,
        /// Its value, in ns; `u64::MAX` where a sum overflowed.
        value: u64,
    },
    /// More tasks than the bounds are sized for.
    #[error("{count} tasks, expected at most {MAX_TASKS}")]
    TooMany {
        /// How many were given.
        count: usize,
    },
}

/// Tasks in priority order, highest first, every field within its range.
///
/// An empty set is allowed (an empty core of a partition) and schedulable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Task>", into = "Vec<Task>")]
pub struct TaskSet {
    tasks: Vec<Task>,
}

impl TaskSet {
    /// Checks every field of every task. The order given is the priority order.
    pub fn new(tasks: Vec<Task>) -> Result<Self, TaskError> {
        if tasks.len() > MAX_TASKS {
            return Err(TaskError::TooMany { count: tasks.len() });
        }
        for (index, task) in tasks.iter().enumerate() {
            let fields = [
                (Field::Period, task.period_ns),
                (Field::Deadline, task.deadline_ns),
                (Field::Cost, task.cost_ns),
                (Field::Jitter, task.jitter_ns),
                (Field::Blocking, task.blocking_ns),
            ];
            for (field, value) in fields {
                if value < field.minimum() || value > MAX_NS {
                    return Err(TaskError::OutOfRange { task: index, field, value });
                }
            }
        }
        Ok(Self { tasks })
    }

    /// The tasks, highest priority first.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Sum of C/T. May exceed 1.
    pub fn utilization(&self) -> f64 {
        self.tasks.iter().map(Task::utilization).sum()
    }

    /// The set with `jitter_ns` added to the release jitter of every task, as when a wake-up
    /// latency measured on the core comes on top of what the application itself causes.
    pub fn with_added_jitter(&self, jitter_ns: u64) -> Result<Self, TaskError> {
        let add = |task: &Task| Task { jitter_ns: task.jitter_ns.saturating_add(jitter_ns), ..*task };
        Self::new(self.tasks.iter().map(add).collect())
    }
}

impl TryFrom<Vec<Task>> for TaskSet {
    type Error = TaskError;

    fn try_from(tasks: Vec<Task>) -> Result<Self, TaskError> {
        Self::new(tasks)
    }
}

impl From<TaskSet> for Vec<Task> {
    fn from(set: TaskSet) -> Self {
        set.tasks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Task = Task { period_ns: 10, deadline_ns: 9, cost_ns: 3, jitter_ns: 2, blocking_ns: 1 };

    #[test]
    fn every_field_has_its_own_error() {
        let cases = [
            (Task { period_ns: 0, ..GOOD }, "task 1: period_ns is 0, expected 1 to 9007199254740991 ns"),
            (Task { deadline_ns: 0, ..GOOD }, "task 1: deadline_ns is 0, expected 1 to 9007199254740991 ns"),
            (Task { cost_ns: 0, ..GOOD }, "task 1: cost_ns is 0, expected 1 to 9007199254740991 ns"),
            (
                Task { jitter_ns: MAX_NS + 1, ..GOOD },
                "task 1: jitter_ns is 9007199254740992, expected 0 to 9007199254740991 ns",
            ),
            (
                Task { blocking_ns: u64::MAX, ..GOOD },
                "task 1: blocking_ns is 18446744073709551615, expected 0 to 9007199254740991 ns",
            ),
        ];
        for (bad, message) in cases {
            assert_eq!(TaskSet::new(vec![GOOD, bad]).unwrap_err().to_string(), message);
        }
        assert_eq!(TaskSet::new(vec![GOOD]).unwrap().tasks(), [GOOD]);
    }

    #[test]
    fn json_is_checked_too() {
        let set: TaskSet =
            serde_json::from_str(r#"[{"period_ns":10,"deadline_ns":10,"cost_ns":3}]"#).unwrap();
        assert_eq!(set.tasks(), [Task::implicit(10, 3)]);
        let back = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<TaskSet>(&back).unwrap(), set);

        let zero = serde_json::from_str::<TaskSet>(r#"[{"period_ns":0,"deadline_ns":10,"cost_ns":3}]"#);
        assert!(zero.unwrap_err().to_string().contains("period_ns is 0"));
        let typo =
            serde_json::from_str::<TaskSet>(r#"[{"period_ns":1,"deadline_ns":1,"cost_ns":1,"jiter_ns":1}]"#);
        assert!(typo.unwrap_err().to_string().contains("jiter_ns"));
    }

    #[test]
    fn added_jitter_is_checked() {
        let set = TaskSet::new(vec![GOOD]).unwrap();
        assert_eq!(set.with_added_jitter(5).unwrap().tasks()[0].jitter_ns, 7);
        let error = set.with_added_jitter(u64::MAX).unwrap_err();
        assert_eq!(error, TaskError::OutOfRange { task: 0, field: Field::Jitter, value: u64::MAX });
    }
}
