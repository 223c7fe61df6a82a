//! A system: cores and the tasks on them, with all that the tests of this crate need.
//!
//! A [`TaskSet`] is what runs on one core under fixed priorities; a system is the question as a
//! user puts it: tasks in any order, with priorities, cores, suspensions, sections that cannot be
//! preempted, and requests for shared resources.

use crate::bounds::Bounds;
use crate::task::{Task, TaskError, TaskSet};
use serde::{Deserialize, Serialize};

/// Most cores that a system may have.
pub const MAX_CORES: u32 = 4096;

/// Whether a request changes the resource or only reads it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Excludes everybody.
    #[default]
    Write,
    /// Excludes writers only, under reader-writer locks.
    Read,
}

/// The requests of one task for one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// Which resource, from 0.
    pub resource: u32,
    /// Most requests of one job.
    pub count: u64,
    /// Longest critical section, ns; part of the task's cost.
    pub length_ns: u64,
    /// What it does there.
    pub access: Access,
}

/// One task of a system. All times in ns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SystemTask {
    /// Period, deadline, cost, jitter, blocking.
    pub task: Task,
    /// Longest total self-suspension of a job.
    pub suspension_ns: u64,
    /// Most suspensions of a job; 0 where it does not suspend itself, or that is not known.
    pub suspensions: u32,
    /// Longest section that cannot be preempted.
    pub non_preemptive_ns: u64,
    /// Its core, below [`System::cores`].
    pub core: u32,
    /// Its rank among the requests of priority-ordered locks, 0 first; its place in priority order
    /// where none is given.
    pub lock_priority: Option<u32>,
    /// A response time from elsewhere, for one pass of blocking.
    pub response_time_ns: Option<u64>,
    /// What it requests.
    pub requests: Vec<Request>,
    /// Curves in place of the period and the cost, and the supply of its core; none for a sporadic
    /// task on a whole core.
    pub bounds: Option<Box<Bounds>>,
}

impl From<Task> for SystemTask {
    fn from(task: Task) -> Self {
        Self {
            task,
            suspension_ns: 0,
            suspensions: 0,
            non_preemptive_ns: 0,
            core: 0,
            lock_priority: None,
            response_time_ns: None,
            requests: Vec::new(),
            bounds: None,
        }
    }
}

/// Tasks on cores, highest priority first over all cores.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct System {
    /// Number of cores, at least 1.
    pub cores: u32,
    /// The tasks, in priority order.
    pub tasks: Vec<SystemTask>,
}

impl System {
    /// The indices of the tasks of each core, in priority order.
    pub fn by_core(&self) -> Vec<Vec<usize>> {
        let mut cores = vec![Vec::new(); self.cores as usize];
        for (index, task) in self.tasks.iter().enumerate() {
            if let Some(core) = cores.get_mut(task.core as usize) {
                core.push(index);
            }
        }
        cores
    }

    /// The tasks of these indices as a set of one core.
    pub fn set_of(&self, indices: &[usize]) -> Result<TaskSet, TaskError> {
        TaskSet::new(indices.iter().map(|&index| self.tasks[index].task).collect())
    }

    /// All tasks as seen from their releases ([`Task::from_release`]).
    pub fn from_release(&self) -> Option<Self> {
        let one = |task: &SystemTask| Some(SystemTask { task: task.task.from_release()?, ..task.clone() });
        Some(Self { tasks: self.tasks.iter().map(one).collect::<Option<_>>()?, ..self.clone() })
    }

    /// Whether any task suspends itself.
    pub fn suspends(&self) -> bool {
        self.tasks.iter().any(|task| task.suspension_ns > 0)
    }

    /// Whether any task has a section that cannot be preempted.
    pub fn limits_preemption(&self) -> bool {
        self.tasks.iter().any(|task| task.non_preemptive_ns > 0)
    }

    /// What makes the system more than independent tasks that can be preempted anywhere, in words;
    /// none where nothing does.
    pub fn beyond_independent(&self) -> Option<&'static str> {
        match (self.suspends(), self.limits_preemption(), self.shares()) {
            (true, ..) => Some("self-suspension"),
            (_, true, _) => Some("sections that cannot be preempted"),
            (.., true) => Some("requests for resources"),
            _ => self.bounded(),
        }
    }

    /// Whether any task has curves, or any core a supply, in words.
    pub fn bounded(&self) -> Option<&'static str> {
        let any =
            |has: fn(&Bounds) -> bool| self.tasks.iter().filter_map(|one| one.bounds.as_deref()).any(has);
        match (any(|one| !one.intervals_ns.is_empty()), any(|one| !one.costs_ns.is_empty())) {
            (true, _) => Some("arrival curves"),
            (_, true) => Some("cost curves"),
            _ => any(|one| one.supply.is_some()).then_some("the supply of a core"),
        }
    }

    /// Whether any task requests a resource.
    pub fn shares(&self) -> bool {
        self.tasks.iter().any(|task| !task.requests.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_found_by_core_in_priority_order() {
        let task = |core| SystemTask { core, ..Task::implicit(10, 1).into() };
        let system = System { cores: 3, tasks: vec![task(2), task(0), task(2)] };
        assert_eq!(system.by_core(), [vec![1], vec![], vec![0, 2]]);
        assert_eq!(system.set_of(&[0, 2]).unwrap().tasks().len(), 2);
        assert!(!system.suspends() && !system.shares());
    }
}
