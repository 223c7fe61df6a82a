//! From a load to the tasks of `stillcore sched`: each of its threads under a real-time policy.

use super::system::{Of, Tasks};
use model::load::{Cycle, Load, LoadThread};
use model::{Cpus, Error};
use sched::asked::{Question, Unit};
use sched::{MAX_NS, System, SystemTask, Task, equals};
use std::collections::BTreeMap;

/// The tasks, deadlines at the end of the period; refused with the name of the thread that is none.
pub fn tasks_of(load: &Load) -> Result<Tasks, Error> {
    let mut all = Vec::new();
    for (at, thread) in load.threads.iter().enumerate().filter(|(_, thread)| thread.policy.priority > 0) {
        let (cycle, cpu) = task(thread).map_err(|why| {
            let expected = "threads under real-time policies that can be analysed, each on one CPU";
            Error::invalid(&thread.name, why, expected)
        })?;
        // As the kernel counts: the most urgent first.
        all.push((99 - i32::try_from(thread.policy.priority).unwrap_or(99), at, cpu, cycle));
    }
    if all.is_empty() {
        let expected = "a thread under SCHED_FIFO or SCHED_RR";
        return Err(Error::invalid("the load", "no thread of it has a real-time priority", expected));
    }
    all.sort_by_key(|(prio, at, ..)| (*prio, *at));
    let cpus: Cpus = all.iter().map(|(_, _, cpu, _)| *cpu).collect();
    let cpus: Vec<u32> = cpus.iter().collect();
    let prios: Vec<i32> = all.iter().map(|(prio, ..)| *prio).collect();
    let mut distinct = prios.clone();
    distinct.dedup();
    let tasks: Vec<SystemTask> = all
        .iter()
        .map(|(_, _, cpu, cycle)| SystemTask {
            core: cpus.iter().position(|one| one == cpu).unwrap_or(0) as u32,
            suspension_ns: cycle.suspension_ns.min(MAX_NS),
            ..of_cycle(cycle).into()
        })
        .collect();
    Ok(Tasks {
        of: all.iter().map(|(_, at, ..)| Of::Thread(*at)).collect(),
        ranks: prios.iter().filter_map(|prio| distinct.binary_search(prio).ok()).collect(),
        question: Question {
            unit: Unit::Ns,
            places: (0..tasks.len()).collect(),
            placed: true,
            equals: equals(&prios),
            system: System { cores: cpus.len() as u32, tasks },
        },
        cpus,
        locks: None,
        unbounded: BTreeMap::new(),
    })
}

fn of_cycle(cycle: &Cycle) -> Task {
    let period_ns = cycle.period_ns.clamp(1, MAX_NS);
    Task {
        jitter_ns: cycle.jitter_ns.min(MAX_NS),
        ..Task::implicit(period_ns, cycle.cost_ns.clamp(1, MAX_NS))
    }
}

fn task(thread: &LoadThread) -> Result<(Cycle, u32), String> {
    let cycle = thread.cycle()?;
    if cycle.waits_for.is_some() {
        return Err("another thread releases it, and how late is not known before it runs".to_owned());
    }
    if cycle.meets_others {
        return Err("it takes a mutex or waits at a barrier, and for how long is not known".to_owned());
    }
    let cpus = thread.cpus.as_ref().filter(|cpus| cpus.len() == 1);
    let cpu = cpus.and_then(|cpus| cpus.iter().next()).ok_or("it is not pinned to one CPU")?;
    Ok((cycle, cpu))
}
