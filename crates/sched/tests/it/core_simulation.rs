//! Self-suspension, sections that cannot be preempted, and EDF on one core, against a unit-step
//! simulation: no set that is called schedulable may miss a deadline, and no job responds later
//! than its bound. For EDF, whose test is exact, every refused set does miss one.
//!
//! The simulation knows jobs as stretches of execution and suspension, and who runs; no formula of
//! the library.

use crate::common::numbers::Numbers;
use sched::{Limits, Task, TaskSet, edf_qpa, response_times_limited, response_times_with_suspension};

/// A stretch of a job: execution, with or without preemption, or waiting for something else than
/// the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stretch {
    Runs(u64),
    RunsAlone(u64),
    Suspends(u64),
}

#[derive(Debug, Clone)]
struct Job {
    arrival: i64,
    ready: i64,
    stretches: Vec<Stretch>,
}

/// Who goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    FixedPriority,
    EarliestDeadline,
}

/// When each job of each task ended; none for those unfinished at the horizon. Jobs of a task run
/// in order of arrival.
fn ends(tasks: &[Task], jobs: &[Vec<Job>], policy: Policy, horizon: i64) -> Vec<Vec<Option<i64>>> {
    let mut left: Vec<Vec<Vec<Stretch>>> = jobs
        .iter()
        .map(|jobs| jobs.iter().map(|job| job.stretches.iter().rev().copied().collect()).collect())
        .collect();
    let mut ends: Vec<Vec<Option<i64>>> = jobs.iter().map(|jobs| vec![None; jobs.len()]).collect();
    let mut next = vec![0; tasks.len()];
    let mut alone = None;
    for now in 0..horizon {
        let head = |task: usize, next: &[usize]| jobs[task].get(next[task]).filter(|job| job.ready <= now);
        let rank = |task: usize, next: &[usize]| match policy {
            Policy::FixedPriority => (0, task),
            Policy::EarliestDeadline => {
                (jobs[task][next[task]].arrival + tasks[task].deadline_ns as i64, task)
            }
        };
        let suspended: Vec<bool> = (0..tasks.len())
            .map(|task| {
                head(task, &next).is_some()
                    && matches!(left[task][next[task]].last(), Some(Stretch::Suspends(_)))
            })
            .collect();
        let runs = |task: &usize| head(*task, &next).is_some() && !suspended[*task];
        let runner = alone.or_else(|| (0..tasks.len()).filter(runs).min_by_key(|task| rank(*task, &next)));
        alone = None;
        for task in (0..tasks.len()).filter(|task| suspended[*task] || runner == Some(*task)) {
            let stretches = &mut left[task][next[task]];
            let stretch = stretches.pop().unwrap();
            let rest = match stretch {
                Stretch::Runs(n) => Stretch::Runs(n - 1),
                Stretch::RunsAlone(n) => Stretch::RunsAlone(n - 1),
                Stretch::Suspends(n) => Stretch::Suspends(n - 1),
            };
            if !matches!(rest, Stretch::Runs(0) | Stretch::RunsAlone(0) | Stretch::Suspends(0)) {
                stretches.push(rest);
                if matches!(rest, Stretch::RunsAlone(_)) {
                    alone = Some(task);
                }
            }
            if stretches.is_empty() {
                ends[task][next[task]] = Some(now + 1);
                next[task] += 1;
            }
        }
    }
    ends
}

/// `total` in so many parts, none empty unless there is nothing to divide.
fn parts(total: u64, wanted: u64, numbers: &mut Numbers) -> Vec<u64> {
    let mut left = total;
    let mut parts = Vec::new();
    for rest in (1..=wanted.clamp(1, total.max(1))).rev() {
        let part = if rest == 1 { left } else { numbers.between(1, left - (rest - 1)) };
        parts.push(part);
        left -= part;
    }
    parts
}

/// Arrivals of one task from so long before 0 that all earlier jobs are over, dense or sparse,
/// ready early or late.
fn arrivals(task: &Task, horizon: i64, numbers: &mut Numbers) -> Vec<(i64, i64)> {
    let dense = numbers.between(0, 2) > 0;
    let mut arrival = numbers.between(0, task.period_ns) as i64;
    let mut all: Vec<(i64, i64)> = Vec::new();
    while arrival < horizon {
        let late = match numbers.between(0, 2) {
            0 => 0,
            1 => task.jitter_ns,
            _ => numbers.between(0, task.jitter_ns),
        };
        let earliest = all.last().map_or(0, |job| job.1);
        all.push((arrival, (arrival + late as i64).max(earliest)));
        arrival += (task.period_ns + if dense { 0 } else { numbers.between(0, task.period_ns / 2) }) as i64;
    }
    all
}

/// Up to four tasks; deadlines are shares of the period, percent.
fn drawn(numbers: &mut Numbers, utilization: u64, deadlines: (u64, u64)) -> Vec<Task> {
    let n = numbers.between(1, 4);
    let mut tasks: Vec<Task> = (0..n)
        .map(|_| {
            let period_ns = numbers.between(5, 32);
            let cost_ns =
                (period_ns * numbers.between(10, 100) * utilization / (n * 5_500)).clamp(1, period_ns);
            let deadline_ns = (period_ns * numbers.between(deadlines.0, deadlines.1) / 100).max(cost_ns);
            let jitter_ns = numbers.between(0, 1) * numbers.between(0, period_ns / 4);
            Task { deadline_ns, jitter_ns, ..Task::implicit(period_ns, cost_ns) }
        })
        .collect();
    tasks.sort_by_key(|task| task.deadline_ns);
    tasks
}

/// By how much the worst simulated job of each task stayed below its bound.
fn below(tasks: &[Task], jobs: &[Vec<Job>], bounds: &[Option<u64>], horizon: i64) -> Vec<u64> {
    let ends = ends(tasks, jobs, Policy::FixedPriority, horizon);
    let of = |task: usize| {
        let bound = bounds[task].unwrap();
        let mut least = bound;
        for (job, end) in jobs[task].iter().zip(&ends[task]) {
            // A job without an end at the horizon has already taken that long.
            let took = (end.unwrap_or(horizon) - job.arrival) as u64;
            assert!(
                took <= bound || (end.is_none() && job.arrival > horizon),
                "{tasks:?} {jobs:?}: task {task} took {took}, bound {bound}"
            );
            least = least.min(bound.saturating_sub(took));
        }
        least
    };
    (0..tasks.len()).map(of).collect()
}

/// The same over several simulations, each of jobs of its own: by how much the worst of all stayed
/// below.
fn below_of_several(
    tasks: &[Task],
    bounds: &[Option<u64>],
    horizon: i64,
    mut jobs: impl FnMut() -> Vec<Vec<Job>>,
) -> Vec<u64> {
    let mut least = vec![u64::MAX; tasks.len()];
    for _ in 0..8 {
        let slack = below(tasks, &jobs(), bounds, horizon);
        least.iter_mut().zip(slack).for_each(|(least, slack)| *least = slack.min(*least));
    }
    least
}

/// Jobs that suspend anywhere, in one piece or several, for as long as they may or less.
#[test]
fn suspended_jobs_are_in_time() {
    let (mut accepted, mut tight) = (0, 0);
    for seed in 0..1_200 {
        let mut numbers = Numbers(seed);
        let tasks = drawn(&mut numbers, 75, (60, 100));
        let suspensions: Vec<u64> = tasks
            .iter()
            .map(|task| numbers.between(0, 1) * numbers.between(0, (task.deadline_ns - task.cost_ns) / 2))
            .collect();
        let set = TaskSet::new(tasks.clone()).unwrap();
        let verdict = response_times_with_suspension(&set, &suspensions, Limits::default()).unwrap();
        if !verdict.schedulable || suspensions.iter().all(|one| *one == 0) {
            continue;
        }
        accepted += 1;
        let least = below_of_several(&tasks, &verdict.response_times, 400, || {
            let each = tasks.iter().zip(&suspensions).map(|(task, &suspension)| {
                let jobs = arrivals(task, 200, &mut numbers).into_iter();
                jobs.map(|(arrival, ready)| Job {
                    arrival,
                    ready,
                    stretches: suspending(task, suspension, &mut numbers),
                })
                .collect()
            });
            each.collect()
        });
        tight += usize::from(least.contains(&0));
    }
    assert!(accepted > 300, "{accepted} sets were accepted");
    assert!(tight > accepted / 2, "a bound was reached in {tight} of {accepted} sets");
}

fn suspending(task: &Task, suspension: u64, numbers: &mut Numbers) -> Vec<Stretch> {
    let suspended = if numbers.between(0, 2) > 0 { suspension } else { numbers.between(0, suspension) };
    let wanted = numbers.between(1, 3);
    let runs = parts(task.cost_ns, wanted, numbers);
    let pauses = parts(suspended, wanted, numbers);
    let mut stretches = Vec::new();
    let first = numbers.between(0, 1) == 0;
    let mut pauses = pauses.into_iter().filter(|pause| *pause > 0);
    for run in runs {
        if first {
            stretches.extend(pauses.next().map(Stretch::Suspends));
        }
        stretches.push(Stretch::Runs(run));
        if !first {
            stretches.extend(pauses.next().map(Stretch::Suspends));
        }
    }
    stretches
}

/// One section that cannot be preempted, anywhere in the job.
fn with_section(task: &Task, section: u64, numbers: &mut Numbers) -> Vec<Stretch> {
    let before = numbers.between(0, task.cost_ns - section);
    let after = task.cost_ns - section - before;
    let all = [Stretch::Runs(before), Stretch::RunsAlone(section), Stretch::Runs(after)];
    all.into_iter().filter(|one| !matches!(one, Stretch::Runs(0) | Stretch::RunsAlone(0))).collect()
}

/// Jobs with sections that cannot be preempted, wherever they lie; deadlines beyond periods, too.
#[test]
fn jobs_behind_sections_that_cannot_be_preempted_are_in_time() {
    let (mut accepted, mut tight) = (0, 0);
    for seed in 0..1_200 {
        let mut numbers = Numbers(seed);
        let tasks = drawn(&mut numbers, 85, if seed % 2 == 0 { (60, 220) } else { (60, 100) });
        let sections: Vec<u64> = tasks.iter().map(|task| numbers.between(0, task.cost_ns)).collect();
        let set = TaskSet::new(tasks.clone()).unwrap();
        let verdict = response_times_limited(&set, &sections, Limits::default()).unwrap();
        if !verdict.schedulable || sections.iter().all(|one| *one == 0) {
            continue;
        }
        accepted += 1;
        let least = below_of_several(&tasks, &verdict.response_times, 500, || {
            let each = tasks.iter().zip(&sections).map(|(task, &section)| {
                let jobs = arrivals(task, 200, &mut numbers).into_iter();
                jobs.map(|(arrival, ready)| Job {
                    arrival,
                    ready,
                    stretches: with_section(task, section, &mut numbers),
                })
                .collect()
            });
            each.collect()
        });
        // One unit of a section has passed before another job can wait for it.
        tight += usize::from(least.iter().take(tasks.len() - 1).any(|slack| *slack <= 1));
    }
    assert!(accepted > 300, "{accepted} sets were accepted");
    assert!(tight > accepted / 2, "a bound was reached within one unit in {tight} of {accepted} sets");
}

fn plain(task: &Task, (arrival, ready): (i64, i64)) -> Job {
    Job { arrival, ready, stretches: vec![Stretch::Runs(task.cost_ns)] }
}

fn in_time(tasks: &[Task], jobs: &[Vec<Job>], horizon: i64) -> bool {
    let ends = ends(tasks, jobs, Policy::EarliestDeadline, horizon);
    tasks.iter().zip(jobs).zip(&ends).all(|((task, jobs), ends)| {
        jobs.iter().zip(ends).all(|(job, end)| {
            let due = job.arrival + task.deadline_ns as i64;
            end.map_or(due > horizon, |end| end <= due)
        })
    })
}

/// EDF with release jitter and deadlines on either side of the period. The worst case is known: all
/// tasks ready at 0, the first job of each as late as it may be, all others as early.
#[test]
fn edf_refuses_what_misses_a_deadline_and_nothing_else() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..1_200 {
        let mut numbers = Numbers(seed);
        let tasks = drawn(&mut numbers, 95, if seed % 2 == 0 { (20, 180) } else { (20, 100) });
        // Above that it takes long until a deadline is missed.
        if tasks.iter().map(Task::utilization).sum::<f64>() > 0.97 {
            continue;
        }
        let verdict = edf_qpa(&TaskSet::new(tasks.clone()).unwrap(), Limits::default());
        assert!(verdict.undecided.is_empty());
        if verdict.schedulable {
            accepted += 1;
            for _ in 0..6 {
                let jobs = |task: &Task, numbers: &mut Numbers| -> Vec<Job> {
                    arrivals(task, 300, numbers).into_iter().map(|job| plain(task, job)).collect()
                };
                let jobs: Vec<Vec<Job>> = tasks.iter().map(|task| jobs(task, &mut numbers)).collect();
                assert!(in_time(&tasks, &jobs, 400), "{tasks:?} {jobs:?}");
            }
        } else {
            refused += 1;
        }
        let worst: Vec<Vec<Job>> = tasks
            .iter()
            .map(|task| {
                let jitter = task.jitter_ns as i64;
                (-jitter..4_000)
                    .step_by(task.period_ns as usize)
                    .map(|arrival| plain(task, (arrival, arrival.max(0))))
                    .collect()
            })
            .collect();
        assert_eq!(in_time(&tasks, &worst, 5_000), verdict.schedulable, "{tasks:?}");
    }
    assert!(accepted > 200 && refused > 200, "{accepted} accepted, {refused} refused");
}
