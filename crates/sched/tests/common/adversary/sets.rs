//! Systems for the tests: small, near the border between yes and no, all times whole ticks.

use super::Numbers;
use super::TICK_NS;
use sched::{Access, Bounds, Request, Supply, System, SystemTask, Task};

/// What sets are like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) cores: (u64, u64),
    /// Tasks of a set.
    pub(crate) tasks: (u64, u64),
    /// Utilization, percent of all cores.
    pub(crate) utilization: (u64, u64),
    /// Deadlines, percent of the period.
    pub(crate) deadlines: (u64, u64),
    /// Most jitter, percent of the period.
    pub(crate) jitter: u64,
    /// Most suspension, percent of the period.
    pub(crate) suspension: u64,
    /// Whether jobs have sections without preemption.
    pub(crate) sections: bool,
    /// Whether jobs share resources.
    pub(crate) shares: bool,
    /// Whether tasks have curves of arrivals and costs.
    pub(crate) curves: bool,
    /// Whether cores supply less than all of their time.
    pub(crate) supplies: bool,
    /// Whether data goes through a chain of tasks, whose bounds are looked at.
    pub(crate) chains: bool,
}

impl Kind {
    /// Independent tasks on one core, D <= T.
    pub(crate) const ONE_CORE: Self = Self {
        cores: (1, 1),
        tasks: (2, 5),
        utilization: (55, 105),
        deadlines: (50, 120),
        jitter: 25,
        suspension: 0,
        sections: false,
        shares: false,
        curves: false,
        supplies: false,
        chains: false,
    };
    /// Any task on any core.
    pub(crate) const GLOBAL: Self =
        Self { cores: (2, 3), tasks: (3, 7), utilization: (20, 85), jitter: 0, ..Self::ONE_CORE };
    /// Tasks that share resources across cores.
    pub(crate) const SHARING: Self = Self {
        cores: (2, 3),
        tasks: (3, 7),
        utilization: (15, 60),
        deadlines: (60, 120),
        jitter: 12,
        shares: true,
        ..Self::ONE_CORE
    };
}

/// A system of a kind, in order of deadlines.
pub(crate) fn draw(kind: Kind, numbers: &mut Numbers) -> System {
    let cores = numbers.between(kind.cores.0, kind.cores.1);
    let count = numbers.between(kind.tasks.0, kind.tasks.1);
    let utilization = numbers.between(kind.utilization.0, kind.utilization.1) * cores;
    let supplies: Vec<Option<Supply>> =
        (0..cores).map(|_| if kind.supplies { supply(utilization / cores, numbers) } else { None }).collect();
    let weights: Vec<u64> = (0..count).map(|_| numbers.between(1, 20)).collect();
    let all: u64 = weights.iter().sum();
    let mut tasks: Vec<SystemTask> = weights
        .into_iter()
        .map(|weight| {
            let period = numbers.between(4, 30);
            let share = |percent: u64| period * percent / 100;
            let cost = (period * utilization * weight + all * 50) / (all * 100);
            let cost = cost.clamp(1, period);
            let deadline = share(numbers.between(kind.deadlines.0, kind.deadlines.1));
            let jitter = numbers.between(0, 1) * numbers.between(0, share(kind.jitter));
            let suspension = numbers.between(0, 1) * numbers.between(0, share(kind.suspension));
            let within = kind.deadlines.1 <= 120 || suspension > 0;
            let deadline = if within { deadline.min(period) } else { deadline };
            let section = if kind.sections { numbers.between(0, 1) * numbers.between(1, cost) } else { 0 };
            let core = numbers.between(0, cores - 1) as u32;
            let bounds = Bounds {
                intervals_ns: if kind.curves { intervals(period, numbers) } else { Vec::new() },
                costs_ns: if kind.curves { costs(cost, numbers) } else { Vec::new() },
                supply: supplies[core as usize],
            };
            let cost_ns = bounds.costs_ns.first().copied().unwrap_or(cost * TICK_NS);
            let period_ns = bounds.intervals_ns.first().map_or(period * TICK_NS, |&ns| ns.max(1));
            SystemTask {
                suspension_ns: suspension * TICK_NS,
                // As many as the scripts have at most.
                suspensions: if suspension > 0 { 2 } else { 0 },
                non_preemptive_ns: section * TICK_NS,
                core,
                lock_priority: Some(numbers.between(0, 2) as u32),
                requests: if kind.shares { requests(cost, numbers) } else { Vec::new() },
                bounds: (!bounds.is_empty()).then(|| Box::new(bounds)),
                ..Task {
                    deadline_ns: (deadline * TICK_NS).max(cost_ns),
                    jitter_ns: jitter * TICK_NS,
                    ..Task::implicit(period_ns, cost_ns)
                }
                .into()
            }
        })
        .collect();
    tasks.sort_by_key(|one| one.task.deadline_ns);
    System { cores: cores as u32, tasks }
}

/// Requests that the cost has room for, one kind of access a resource and task.
fn requests(cost: u64, numbers: &mut Numbers) -> Vec<Request> {
    let mut left = cost;
    let mut requests = Vec::new();
    for resource in 0..3 {
        if left == 0 || numbers.between(0, 2) == 0 {
            continue;
        }
        let length = numbers.between(1, left.min(4));
        let count = numbers.between(1, (left / length).min(2));
        left -= count * length;
        let access = if numbers.between(0, 1) == 0 { Access::Read } else { Access::Write };
        requests.push(Request { resource, count, length_ns: length * TICK_NS, access });
    }
    requests
}

/// A curve of releases a period apart in the long run, ns; empty for every other task.
fn intervals(period: u64, numbers: &mut Numbers) -> Vec<u64> {
    let count = numbers.between(0, 4);
    let mut steps: Vec<u64> = (1..count).map(|_| numbers.between(0, period * count / 2)).collect();
    steps.sort_unstable();
    steps.extend((count > 0).then_some(period * count));
    steps.into_iter().map(|ticks| ticks * TICK_NS).collect()
}

/// A curve of costs around this one, ns; empty for every other task.
fn costs(cost: u64, numbers: &mut Numbers) -> Vec<u64> {
    let count = numbers.between(0, 1) * numbers.between(2, 4);
    let mut most = numbers.between(cost, 2 * cost);
    let mut next = |at: u64| {
        if at > 0 {
            most += numbers.between(1, 2 * cost);
        }
        most * TICK_NS
    };
    (0..count).map(&mut next).collect()
}

/// A supply that this load has room in, more or less; none for one core in four.
fn supply(percent: u64, numbers: &mut Numbers) -> Option<Supply> {
    let period = numbers.between(2, 16);
    let least = (period * percent / 100).clamp(1, period);
    let budget = numbers.between(least, period);
    (numbers.between(0, 3) > 0).then_some(Supply { budget_ns: budget * TICK_NS, period_ns: period * TICK_NS })
}
