//! Bounds on the probability of a late job against all possible outcomes: small systems in which
//! every release is late or not, each outcome simulated unit by unit of time and weighted. No exact
//! probability is above its bound, and some reach it.

use crate::common::numbers::Numbers;
use sched::probabilistic::{Exceedance, Likelihood, Shares, likelihoods, response_at};
use sched::{Limits, Task, TaskSet};

const HORIZON: u64 = 60;
const LATE: f64 = 0.1;

struct Job {
    task: usize,
    arrival: u64,
    ready: u64,
    left: u64,
}

/// Response times of all jobs, by task and number; none for one that was stopped or did not end.
fn simulate(tasks: &[Task], mut jobs: Vec<Job>, stopped: bool) -> Vec<Option<u64>> {
    let mut ends = vec![None; jobs.len()];
    for now in 0..HORIZON {
        let over = |job: &Job| stopped && now >= job.arrival + tasks[job.task].deadline_ns;
        // Jobs of a task are in order of arrival, and run in it.
        let runs = (0..jobs.len())
            .filter(|&at| jobs[at].left > 0 && jobs[at].ready <= now && !over(&jobs[at]))
            .min_by_key(|&at| (jobs[at].task, jobs[at].arrival));
        if let Some(at) = runs {
            jobs[at].left -= 1;
            if jobs[at].left == 0 {
                ends[at] = Some(now + 1 - jobs[at].arrival);
            }
        }
    }
    ends
}

/// Arrivals of all jobs that can end before the horizon: task and time.
fn arrivals(tasks: &[Task], numbers: &mut Numbers) -> Vec<(usize, u64)> {
    let mut all = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let mut at = numbers.between(0, task.period_ns - 1);
        while at + task.deadline_ns < HORIZON / 2 {
            all.push((index, at));
            at += task.period_ns + if numbers.between(0, 3) == 0 { numbers.between(0, 3) } else { 0 };
        }
    }
    all
}

/// For every job the probability that it takes longer than `limit` of its task.
fn exactly(
    tasks: &[Task],
    arrivals: &[(usize, u64)],
    late_ns: u64,
    stopped: bool,
    limit: impl Fn(usize) -> u64,
) -> Vec<f64> {
    let mut exceeds = vec![0.0; arrivals.len()];
    for outcome in 0u32..1 << arrivals.len() {
        let mut jobs: Vec<Job> = Vec::new();
        for (at, &(task, arrival)) in arrivals.iter().enumerate() {
            let release = arrival + tasks[task].jitter_ns + if outcome >> at & 1 == 1 { late_ns } else { 0 };
            // Who is released late is late for the next one, too.
            let before = jobs.last().filter(|job| job.task == task && !stopped).map_or(0, |job| job.ready);
            jobs.push(Job { task, arrival, ready: release.max(before), left: tasks[task].cost_ns });
        }
        let late = outcome.count_ones() as i32;
        let weight = LATE.powi(late) * (1.0 - LATE).powi(arrivals.len() as i32 - late);
        for (at, response) in simulate(tasks, jobs, stopped).into_iter().enumerate() {
            let kept = response.is_some_and(|response| response <= limit(arrivals[at].0));
            exceeds[at] += if kept { 0.0 } else { weight };
        }
    }
    exceeds
}

struct Case {
    set: TaskSet,
    late_ns: u64,
    exceedance: Exceedance,
    likelihoods: Vec<Likelihood>,
}

fn case(numbers: &mut Numbers) -> Case {
    let task = |numbers: &mut Numbers| {
        let period_ns = numbers.between(6, 14);
        let cost_ns = numbers.between(1, 3);
        Task {
            deadline_ns: numbers.between(cost_ns + 1, period_ns),
            jitter_ns: numbers.between(0, 1),
            ..Task::implicit(period_ns, cost_ns)
        }
    };
    let count = numbers.between(1, 3);
    let mut tasks: Vec<Task> = (0..count).map(|_| task(numbers)).collect();
    tasks.sort_by_key(|task| task.deadline_ns);
    let late_ns = numbers.between(1, 6);
    let set = TaskSet::new(tasks).unwrap();
    let exceedance = Exceedance::new(vec![(0, LATE), (late_ns, 0.0)]).unwrap();
    let shares = Shares::new(&[(0, 9), (late_ns, 1)]);
    let likelihoods = likelihoods(&set, &exceedance, &shares, late_ns, Limits::default());
    Case { set, late_ns, exceedance, likelihoods }
}

#[test]
fn no_probability_of_a_late_job_is_above_its_bound() {
    let mut numbers = Numbers(7);
    let (mut informative, mut attained, mut stopped_attained) = (0, 0, 0);
    for _ in 0..400 {
        let Case { set, late_ns, exceedance, likelihoods } = case(&mut numbers);
        let tasks = set.tasks();
        let arrivals = arrivals(tasks, &mut numbers);
        if arrivals.len() > 9 {
            continue;
        }
        let late = exactly(tasks, &arrivals, late_ns, false, |task| tasks[task].deadline_ns);
        for (&(task, _), late) in arrivals.iter().zip(late) {
            let bound = likelihoods[task].late_at_most;
            assert!(
                late <= bound + 1e-12,
                "task {task} of {tasks:?}, late by {late_ns}: {late} above {bound}"
            );
            informative += usize::from(bound < 1.0 && bound > 0.0);
            // One release of a window is late often enough for the union bound to be near.
            attained += usize::from(late > 0.0 && late >= bound * 0.9);
        }
        let late = exactly(tasks, &arrivals, late_ns, true, |task| tasks[task].deadline_ns);
        for (&(task, _), late) in arrivals.iter().zip(late) {
            let bound = likelihoods[task].late_at_most_if_stopped.unwrap();
            assert!(
                late <= bound + 1e-12,
                "stopped: task {task} of {tasks:?}, late by {late_ns}: {late} above {bound}"
            );
            stopped_attained += usize::from(late > 0.0 && late >= bound * 0.9);
        }
        // With certainty, with the chance of one late release, and for none at all.
        for probability in [0.9, 0.35, 1e-9] {
            let response = |task: usize| {
                response_at(&set, task, &likelihoods[task], &exceedance, probability, Limits::default())
            };
            let longer = exactly(tasks, &arrivals, late_ns, false, |task| response(task).unwrap_or(u64::MAX));
            for (&(task, _), longer) in arrivals.iter().zip(longer) {
                let known = response(task).is_some();
                assert!(
                    !known || longer <= probability + 1e-12,
                    "task {task} of {tasks:?}: {longer} above {probability}"
                );
            }
        }
    }
    assert!(
        informative > 300 && attained > 20 && stopped_attained > 20,
        "{informative} {attained} {stopped_attained}"
    );
}
