//! When jobs come and what they do, within what their tasks allow: drawn, and changed.

use super::Numbers;
use super::job::{Job, Stretch};
use sched::{System, SystemTask};

/// The most jobs of a task that are looked at.
const MOST_JOBS: u64 = 64;

/// What one job does that its task leaves open.
#[derive(Debug, Clone)]
struct Planned {
    /// After the earliest moment at which it may arrive, ns.
    after: u64,
    /// Until it is ready, ns.
    late: u64,
    tie: u64,
    stretches: Vec<(Stretch, u64)>,
}

/// What all jobs do, task by task.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    tasks: Vec<Vec<Planned>>,
    /// What decides between jobs that request a lock in one moment.
    pub(crate) seed: u64,
}

impl Script {
    /// A script in which much comes together: most tasks near one moment, the more urgent ones
    /// delayed until then and dense from there on, the less urgent ones with their sections in its
    /// way.
    pub(crate) fn draw(system: &System, numbers: &mut Numbers) -> Self {
        let longest = system.tasks.iter().map(usual_gap).max().unwrap_or(1);
        let moment = longest + numbers.between(0, 3);
        // Beyond its period a deadline is missed late in a busy interval, which may be long.
        let beyond = system.tasks.iter().any(|one| one.task.deadline_ns > usual_gap(one));
        let horizon = moment + numbers.between(1, if beyond { 12 } else { 3 }) * longest;
        let scattered = numbers.between(0, 3) == 0;
        let dense = numbers.between(0, 3) > 0;
        let tasks = system.tasks.iter().map(|one| {
            let first = match numbers.between(0, 5) {
                0..=2 if !scattered => moment.saturating_sub(one.task.jitter_ns),
                3 if !scattered => {
                    (moment - numbers.between(0, 4).min(moment)).saturating_sub(one.task.jitter_ns)
                }
                // So that a job of it is under way.
                4 => numbers.between(0, usual_gap(one) - 1),
                _ => numbers.between(0, moment),
            };
            let jobs = (horizon.saturating_sub(first) / usual_gap(one) + 1).min(MOST_JOBS);
            (0..jobs)
                .map(|at| Planned::draw(one, if at == 0 { Some(first) } else { None }, dense, numbers))
                .collect()
        });
        Self { tasks: tasks.collect(), seed: numbers.between(0, u64::MAX - 1) }
    }

    /// The same with a thing or two changed.
    pub(crate) fn changed(&self, system: &System, numbers: &mut Numbers) -> Self {
        let mut script = self.clone();
        for _ in 0..numbers.between(1, 2) {
            let task = numbers.between(0, script.tasks.len() as u64 - 1) as usize;
            let one = &system.tasks[task];
            let jobs = &mut script.tasks[task];
            let at = numbers.between(0, jobs.len() as u64 - 1) as usize;
            match numbers.between(0, 6) {
                0 | 1 => jobs[0].after = shifted(jobs[0].after, usual_gap(one), numbers),
                2 => jobs[at].after = shifted(jobs[at].after, usual_gap(one), numbers),
                3 => jobs[at].late = drawn_late(one, numbers),
                4 | 5 => jobs[at].stretches = stretches(one, numbers),
                _ => {
                    jobs[at].tie = numbers.between(0, 9);
                    script.seed = numbers.between(0, u64::MAX - 1);
                }
            }
        }
        script
    }

    /// The jobs of every task, in order of arrival.
    pub(crate) fn jobs(&self, system: &System, due_from_release: bool) -> Vec<Vec<Job>> {
        let of = |(planned, one): (&Vec<Planned>, &SystemTask)| {
            let (mut before, mut ready) = (Before::default(), 0);
            let job = |planned: &Planned| {
                let arrival = before.earliest(one) + planned.after;
                let stretches = before.within_costs(one, &planned.stretches)?;
                before.arrivals.push(arrival);
                ready = ready.max(arrival + planned.late);
                let deadline = one.task.deadline_ns;
                let due = if due_from_release {
                    ready + deadline.saturating_sub(one.task.jitter_ns)
                } else {
                    arrival + deadline
                };
                Some(Job { arrival, ready, due, tie: planned.tie, stretches })
            };
            planned.iter().map_while(job).collect()
        };
        self.tasks.iter().zip(&system.tasks).map(of).collect()
    }
}

/// Between two jobs of a task in the long run, ns, roughly.
fn usual_gap(task: &SystemTask) -> u64 {
    let intervals = task.bounds.as_ref().map_or(&[][..], |bounds| &bounds.intervals_ns);
    intervals.last().map_or(task.task.period_ns, |last| (last / intervals.len() as u64).max(1))
}

/// The jobs of a task so far.
#[derive(Default)]
struct Before {
    arrivals: Vec<u64>,
    costs: Vec<u64>,
}

impl Before {
    /// When the next one may arrive.
    fn earliest(&self, task: &SystemTask) -> u64 {
        let last = self.arrivals.last().copied();
        let Some(bounds) = task.bounds.as_ref().filter(|one| !one.intervals_ns.is_empty()) else {
            return last.map_or(0, |last| last + task.task.period_ns);
        };
        let each = self.arrivals.iter().rev().zip(&bounds.intervals_ns).map(|(arrival, far)| arrival + far);
        each.chain(last).max().unwrap_or(0)
    }

    /// What the next one may do: as much as the curve of costs allows after those before; none
    /// where that is nothing.
    fn within_costs(&mut self, task: &SystemTask, planned: &[(Stretch, u64)]) -> Option<Vec<(Stretch, u64)>> {
        let Some(bounds) = task.bounds.as_ref().filter(|one| !one.costs_ns.is_empty()) else {
            return Some(planned.to_vec());
        };
        let (mut most, mut spent) = (bounds.costs_ns[0], 0);
        for (cost, sum) in self.costs.iter().rev().zip(&bounds.costs_ns[1..]) {
            spent += cost;
            most = most.min(sum - spent);
        }
        self.costs.push(most);
        (most > 0).then(|| vec![(Stretch::Runs, most)])
    }
}

impl Planned {
    fn draw(task: &SystemTask, first: Option<u64>, dense: bool, numbers: &mut Numbers) -> Self {
        let after = match first {
            Some(first) => first,
            None if dense => 0,
            None => numbers.between(0, 1) * numbers.between(0, usual_gap(task) / 3),
        };
        // The worst known: the first as late as can be, all later ones in time.
        let late = match numbers.between(0, 4) {
            0 => drawn_late(task, numbers),
            _ if first.is_some() => task.task.jitter_ns,
            _ => 0,
        };
        Self { after, late, tie: numbers.between(0, 9), stretches: stretches(task, numbers) }
    }
}

fn drawn_late(task: &SystemTask, numbers: &mut Numbers) -> u64 {
    match numbers.between(0, 2) {
        0 => 0,
        1 => task.task.jitter_ns,
        _ => numbers.between(0, task.task.jitter_ns),
    }
}

/// A little earlier or later, or anywhere within a period.
fn shifted(after: u64, period: u64, numbers: &mut Numbers) -> u64 {
    match numbers.between(0, 3) {
        0 => after + numbers.between(1, 6),
        1 | 2 => after.saturating_sub(numbers.between(1, 6)),
        _ => numbers.between(0, period),
    }
}

/// All that a job may do, somewhere within its cost.
fn stretches(task: &SystemTask, numbers: &mut Numbers) -> Vec<(Stretch, u64)> {
    let mut inside: Vec<(Stretch, u64)> = Vec::new();
    for request in &task.requests {
        let one = (Stretch::Holds(request.resource, request.access), request.length_ns);
        inside.extend((0..request.count).filter(|_| one.1 > 0).map(|_| one));
    }
    let held: u64 = inside.iter().map(|one| one.1).sum();
    let mut left = task.task.cost_ns - held;
    let alone = task.non_preemptive_ns.min(left);
    if alone > 0 {
        inside.push((Stretch::Alone, alone));
        left -= alone;
    }
    // A suspension lies between two executions.
    let mut suspended = task.suspension_ns;
    let parts =
        if suspended > 0 && left > 1 { numbers.between(1, 2).min(suspended).min(left - 1) } else { 0 };
    for part in 0..parts {
        let ns = if part + 1 == parts { suspended } else { numbers.between(1, suspended - 1) };
        inside.push((Stretch::Suspends, ns));
        suspended -= ns;
    }
    for at in (1..inside.len()).rev() {
        inside.swap(at, numbers.between(0, at as u64) as usize);
    }
    let mut all = Vec::with_capacity(2 * inside.len() + 1);
    let later = inside.iter().filter(|one| one.0 == Stretch::Suspends).count() as u64;
    let mut owed = later + u64::from(later > 0);
    for one in inside {
        let suspends = one.0 == Stretch::Suspends;
        let least =
            u64::from(suspends && all.last().is_none_or(|one: &(Stretch, u64)| one.0 == Stretch::Suspends));
        let free = left.saturating_sub(owed);
        let runs = match numbers.between(0, 3) {
            0 => free,
            1 | 2 => 0,
            _ => numbers.between(0, free),
        };
        let runs = (runs + least).min(left);
        owed -= least.min(owed);
        if runs > 0 {
            all.push((Stretch::Runs, runs));
            left -= runs;
        }
        all.push(one);
    }
    if left > 0 {
        all.push((Stretch::Runs, left));
    }
    all
}
