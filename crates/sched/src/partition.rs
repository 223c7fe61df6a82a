//! Which core a task gets: bin packing by utilization.
//!
//! First, worst, best and next fit over tasks in the order given, or by decreasing utilization (D.
//! Johnson, "Near-optimal bin packing algorithms", 1973; for processors: Dhall and Liu 1978). A
//! core takes tasks of a total utilization of at most 1; another test decides whether it meets its
//! deadlines. Utilizations are compared as doubles, as in SchedCAT, so that partitions are the
//! same.

use crate::system::System;
use crate::task::Task;

/// How a core is chosen among those that still have room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The first of them.
    First,
    /// That with the most room.
    Worst,
    /// That with the least room.
    Best,
    /// The last one used, else the next; never one before.
    Next,
}

/// A heuristic: how a core is chosen, and whether large tasks come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heuristic {
    /// How a core is chosen.
    pub fit: Fit,
    /// Whether tasks come by decreasing utilization; else in the order given.
    pub decreasing: bool,
}

impl Heuristic {
    /// All of them with their names: `ffd` is first fit decreasing.
    pub const ALL: [(&'static str, Self); 8] = [
        ("ff", Self { fit: Fit::First, decreasing: false }),
        ("wf", Self { fit: Fit::Worst, decreasing: false }),
        ("bf", Self { fit: Fit::Best, decreasing: false }),
        ("nf", Self { fit: Fit::Next, decreasing: false }),
        ("ffd", Self { fit: Fit::First, decreasing: true }),
        ("wfd", Self { fit: Fit::Worst, decreasing: true }),
        ("bfd", Self { fit: Fit::Best, decreasing: true }),
        ("nfd", Self { fit: Fit::Next, decreasing: true }),
    ];

    /// The heuristic of one name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, heuristic)| *heuristic)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }
}

/// Assigns cores, and returns whether every task found one; a set that does not fit keeps those it
/// has.
pub fn place(system: &mut System, heuristic: Heuristic) -> bool {
    let tasks: Vec<Task> = system.tasks.iter().map(|task| task.task).collect();
    let placed = partition(&tasks, system.cores, heuristic);
    for (task, core) in system.tasks.iter_mut().zip(placed.iter().flatten()) {
        task.core = *core;
    }
    placed.is_some()
}

/// A core for each task; none where one does not fit.
pub fn partition(tasks: &[Task], cores: u32, heuristic: Heuristic) -> Option<Vec<u32>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    if heuristic.decreasing {
        order.sort_by(|&one, &other| tasks[other].utilization().total_cmp(&tasks[one].utilization()));
    }
    let mut loads = vec![0.0f64; cores as usize];
    let mut placed = vec![0; tasks.len()];
    let mut current = 0;
    for index in order {
        let utilization = tasks[index].utilization();
        let core = choose(&loads, utilization, heuristic.fit, current)?;
        current = core;
        loads[core] += utilization;
        placed[index] = core as u32;
    }
    Some(placed)
}

fn choose(loads: &[f64], utilization: f64, fit: Fit, current: usize) -> Option<usize> {
    let fits = |core: &usize| loads[*core] + utilization <= 1.0;
    let mut cores = (0..loads.len()).filter(fits);
    match fit {
        Fit::First => cores.next(),
        Fit::Next => cores.find(|core| *core >= current),
        // The first of several that are equal.
        Fit::Worst => cores.min_by(|one, other| loads[*one].total_cmp(&loads[*other])),
        Fit::Best => cores.reduce(|best, core| if loads[core] > loads[best] { core } else { best }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tasks(costs: &[u64]) -> Vec<Task> {
        costs.iter().map(|&cost| Task::implicit(100, cost)).collect()
    }

    #[test]
    fn each_heuristic_has_its_own_choice() {
        let tasks = tasks(&[60, 50, 30, 40, 20]);
        let placed = |name: &str| partition(&tasks, 3, Heuristic::by_name(name).unwrap()).unwrap();
        assert_eq!(placed("ff"), [0, 1, 0, 1, 2]);
        assert_eq!(placed("nf"), [0, 1, 1, 2, 2]);
        assert_eq!(placed("bf"), [0, 1, 0, 1, 2]);
        assert_eq!(placed("wf"), [0, 1, 2, 2, 1]);
        assert_eq!(placed("ffd"), [0, 1, 1, 0, 1]);
        assert_eq!(placed("wfd"), [0, 1, 2, 2, 1]);
        assert!(Heuristic::by_name("random").is_none());
    }

    #[test]
    fn tasks_that_do_not_fit_have_no_partition() {
        assert_eq!(partition(&tasks(&[70, 70, 70]), 2, Heuristic::by_name("ffd").unwrap()), None);
        assert_eq!(partition(&[], 2, Heuristic::by_name("wfd").unwrap()), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn no_core_is_overloaded(costs in prop::collection::vec(1u64..100, 0..40), cores in 1u32..8) {
            let tasks = tasks(&costs);
            for (name, heuristic) in Heuristic::ALL {
                let Some(placed) = partition(&tasks, cores, heuristic) else { continue };
                for core in 0..cores {
                    let load: u64 = costs.iter().zip(&placed).filter(|(_, at)| **at == core).map(|(cost, _)| cost).sum();
                    prop_assert!(load <= 100, "{}: core {} has {}", name, core, load);
                }
            }
        }
    }
}
