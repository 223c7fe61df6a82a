//! Chains of tasks against the adversary: data is stamped where it is read first and followed to the
//! last task, nanosecond by nanosecond.

use super::Numbers;
use super::search::Effort;
use super::sets::{Kind, draw};
use sched::asked::{Question, Unit};
use sched::{Ask, Chain, ChainBound, Edge, Limits, System, SystemTask, bound_chains};

/// Jobs of a task whose costs and delays are drawn; later ones repeat them.
const DRAWN: usize = 8;

/// What came of one set.
pub(crate) enum Seen {
    /// Not accepted.
    Refused,
    /// Accepted, and no bound was exceeded.
    Holds,
    /// A bound was exceeded: the reaction and the age that were seen, and their bounds.
    Exceeded { system: Box<System>, seen: Flow, bounds: ChainBound },
}

/// The longest reaction and the largest age seen, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) reaction: u64,
    pub(crate) age: u64,
}

/// Draws tasks and a chain, asks for its bounds, and looks for a set of arrivals that exceeds them.
pub(crate) fn look_at_one(kind: Kind, ask: &Ask, effort: Effort, numbers: &mut Numbers) -> Seen {
    let mut system = draw(kind, numbers);
    for one in &mut system.tasks {
        // Costs of jobs are drawn one by one here.
        one.bounds = one.bounds.take().filter(|one| !one.intervals_ns.is_empty());
        if let Some(bounds) = &mut one.bounds {
            bounds.costs_ns.clear();
        }
    }
    let chain = draw_chain(&mut system, ask.test.is_by_priority(), numbers);
    let places = (0..system.tasks.len()).collect();
    let mut question = Question { unit: Unit::Ns, places, placed: true, equals: Vec::new(), system };
    let answer = bound_chains(ask, &mut question, std::slice::from_ref(&chain), Limits::default())
        .expect("chains of this kind are bounded");
    if !answer.holds {
        return Seen::Refused;
    }
    let (system, bounds) = (question.system, answer.chains[0]);
    let excess = |seen: Flow| {
        let beyond =
            |seen: u64, bound: Option<u64>| bound.map_or(i64::MIN, |bound| seen as i64 - bound as i64);
        beyond(seen.reaction, bounds.reaction_ns).max(beyond(seen.age, bounds.age_ns))
    };
    for _ in 0..effort.starts {
        let mut plan = Plan::draw(&system, numbers);
        let mut seen = run(&system, &chain, &plan, ask);
        for _ in 0..effort.changes {
            let changed = plan.changed(&system, numbers);
            let then = run(&system, &chain, &changed, ask);
            if excess(then) >= excess(seen) {
                (plan, seen) = (changed, then);
            }
        }
        if excess(seen) > 0 {
            return Seen::Exceeded { system: Box::new(system), seen, bounds };
        }
    }
    Seen::Holds
}

/// A chain of some tasks; a task that another releases gets its period.
fn draw_chain(system: &mut System, events: bool, numbers: &mut Numbers) -> Chain {
    let mut tasks: Vec<usize> = (0..system.tasks.len()).collect();
    for at in (1..tasks.len()).rev() {
        tasks.swap(at, numbers.between(0, at as u64) as usize);
    }
    tasks.truncate(numbers.between(1, 4) as usize);
    let bursts = system.tasks[tasks[0]].bounds.clone();
    if bursts.is_none() {
        for &task in &tasks {
            system.tasks[task].bounds = None;
        }
    }
    let mut edges = Vec::new();
    for step in 1..tasks.len() {
        let by_event = bursts.is_some() || numbers.between(0, 1) == 0;
        let edge = if events && by_event { Edge::Event } else { Edge::Time };
        if edge == Edge::Event {
            let period_ns = system.tasks[tasks[step - 1]].task.period_ns;
            system.tasks[tasks[step]].bounds.clone_from(&bursts);
            let task = &mut system.tasks[tasks[step]].task;
            if bursts.is_none() {
                task.cost_ns = (task.cost_ns * period_ns / task.period_ns).max(1);
            }
            task.period_ns = period_ns;
            let gap = bursts.as_ref().and_then(|one| one.intervals_ns.last()).unwrap_or(&period_ns);
            task.deadline_ns = gap * numbers.between(1, 4);
        }
        edges.push(edge);
    }
    Chain { tasks, edges, reaction_ns: None, age_ns: None }
}

/// When tasks begin, and what their jobs do, in turn.
#[derive(Debug, Clone)]
struct Plan {
    offsets: Vec<u64>,
    late: Vec<[u64; DRAWN]>,
    costs: Vec<[u64; DRAWN]>,
}

impl Plan {
    fn draw(system: &System, numbers: &mut Numbers) -> Self {
        let mut plan = Self { offsets: Vec::new(), late: Vec::new(), costs: Vec::new() };
        for one in &system.tasks {
            plan.offsets.push(numbers.between(0, gap(one) - 1));
            plan.late.push([0; DRAWN].map(|_| drawn(one.task.jitter_ns, numbers)));
            plan.costs.push([0; DRAWN].map(|_| one.task.cost_ns - drawn(one.task.cost_ns - 1, numbers)));
        }
        plan
    }

    fn changed(&self, system: &System, numbers: &mut Numbers) -> Self {
        let mut plan = self.clone();
        let at = numbers.between(0, system.tasks.len() as u64 - 1) as usize;
        let (task, gap) = (&system.tasks[at].task, gap(&system.tasks[at]));
        let job = numbers.between(0, DRAWN as u64 - 1) as usize;
        match numbers.between(0, 4) {
            0 => plan.offsets[at] = numbers.between(0, gap - 1),
            1 => plan.offsets[at] = (plan.offsets[at] + numbers.between(1, 3)) % gap,
            2 => plan.offsets[at] = (plan.offsets[at] + gap - numbers.between(1, 3)) % gap,
            3 => plan.late[at][job] = drawn(task.jitter_ns, numbers),
            _ => plan.costs[at][job] = task.cost_ns - drawn(task.cost_ns - 1, numbers),
        }
        plan
    }
}

/// Mostly nothing or all, else between.
fn drawn(most: u64, numbers: &mut Numbers) -> u64 {
    match numbers.between(0, 5) {
        0..=2 => 0,
        3 | 4 => most,
        _ => numbers.between(0, most),
    }
}

/// A job that is not over.
#[derive(Debug, Clone, Copy)]
struct Job {
    arrival: u64,
    ready: u64,
    left: u64,
    begun: bool,
    /// For so long it cannot be preempted once it has begun, ns.
    alone: u64,
    /// The arrival of the first task's job whose data it has.
    stamp: Option<u64>,
}

/// Runs the tasks for some of the longest periods, and follows the data.
fn run(system: &System, chain: &Chain, plan: &Plan, ask: &Ask) -> Flow {
    let tasks = system.tasks.len();
    let step_of = |task: usize| chain.tasks.iter().position(|one| *one == task);
    let by_event = |task: usize| step_of(task).is_some_and(|at| at > 0 && chain.edges[at - 1] == Edge::Event);
    let longest = system.tasks.iter().map(gap).max().unwrap_or(1);
    let mut pending: Vec<Vec<Job>> = vec![Vec::new(); tasks];
    let (mut released, mut written) = (vec![0; tasks], vec![None; chain.tasks.len()]);
    let arrivals: Vec<Vec<u64>> = (0..tasks).map(|task| arrivals(system, plan, task, 10 * longest)).collect();
    let (mut seen, mut newest) = (Flow::default(), None);
    let job = |task: usize, number: usize, arrival: u64, from: u64, before: Option<&Job>, stamp| {
        let ready = (from + plan.late[task][number % DRAWN]).max(before.map_or(0, |job| job.ready));
        let left = plan.costs[task][number % DRAWN];
        Job { arrival, ready, left, begun: false, alone: system.tasks[task].non_preemptive_ns, stamp }
    };
    for now in 0..10 * longest {
        for task in (0..tasks).filter(|&task| !by_event(task)) {
            while let Some(&arrival) = arrivals[task].get(released[task]).filter(|arrival| **arrival == now) {
                let now = arrival;
                let one = job(task, released[task], now, now, pending[task].last(), None);
                pending[task].push(one);
                released[task] += 1;
            }
        }
        for core in 0..system.cores {
            let due = |task: usize, job: &Job| {
                if ask.test.is_by_priority() { 0 } else { job.arrival + system.tasks[task].task.deadline_ns }
            };
            let ready = (0..tasks)
                .filter(|&task| system.tasks[task].core == core)
                .filter_map(|task| Some((task, *pending[task].first()?)))
                .filter(|(_, job)| job.ready <= now);
            let urgent = |task: usize, job: &Job| (!job.begun || job.alone == 0, due(task, job), task);
            let Some((task, _)) = ready.min_by_key(|(task, job)| urgent(*task, job)) else { continue };
            let step = step_of(task);
            let first = &mut pending[task][0];
            if !first.begun {
                first.begun = true;
                match step {
                    Some(0) => first.stamp = Some(first.arrival),
                    Some(step) if chain.edges[step - 1] == Edge::Time => first.stamp = written[step - 1],
                    _ => {}
                }
            }
            first.left -= 1;
            first.alone = first.alone.saturating_sub(1);
            if first.left > 0 {
                continue;
            }
            let over = pending[task].remove(0);
            let (Some(step), end) = (step, now + 1) else { continue };
            written[step] = over.stamp;
            if let Some(Edge::Event) = chain.edges.get(step) {
                let next = chain.tasks[step + 1];
                let one = job(next, released[next], over.arrival, end, pending[next].last(), over.stamp);
                pending[next].push(one);
                released[next] += 1;
            }
            if let (true, Some(stamp)) = (step + 1 == chain.tasks.len(), over.stamp) {
                seen.age = seen.age.max(end - stamp);
                if newest.is_none_or(|newest| stamp > newest) {
                    // A change just after the job before it had arrived.
                    seen.reaction = newest.map_or(0, |newest| end - newest).max(seen.reaction);
                    newest = Some(stamp);
                }
            }
        }
    }
    seen
}

/// Between two arrivals of a task in the long run, ns.
fn gap(one: &SystemTask) -> u64 {
    let intervals = one.bounds.as_ref().map_or(&[][..], |one| &one.intervals_ns);
    intervals.last().map_or(one.task.period_ns, |last| last / intervals.len() as u64)
}

/// When a task that none releases arrives: periods, or as densely as its curve allows.
fn arrivals(system: &System, plan: &Plan, task: usize, until: u64) -> Vec<u64> {
    let one = &system.tasks[task];
    let intervals = one.bounds.as_ref().map_or(&[][..], |one| &one.intervals_ns);
    let mut all: Vec<u64> = Vec::new();
    let mut next = plan.offsets[task];
    while next < until {
        all.push(next);
        let period = next + one.task.period_ns;
        let each = all.iter().rev().zip(intervals).map(|(arrival, far)| arrival + far);
        next = if intervals.is_empty() { period } else { each.max().unwrap_or(period).max(next) };
    }
    all
}
