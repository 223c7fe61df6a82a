//! Fixed-priority response times against simulation: no simulated job may respond later than the
//! bound, and the critical instant must attain it (Liu and Layland 1973; with release jitter:
//! Audsley et al. 1993).

use crate::common::{Blocker, Job, Numbers, Simulated, critical_instant, end_times};
use proptest::prelude::*;
use sched::{Limits, Task, TaskSet, response_times};

fn tasks(most: usize, longest: u64) -> impl Strategy<Value = Vec<Task>> {
    let one = (2..=longest, 1u64..100, 30u64..250, 0u64..150, 0u64..60).prop_map(
        |(period_ns, cost, deadline, jitter, blocking)| Task {
            period_ns,
            deadline_ns: (period_ns * deadline / 100).max(1),
            cost_ns: (period_ns * cost / 250).max(1),
            jitter_ns: period_ns * jitter / 100,
            blocking_ns: period_ns * blocking / 100,
        },
    );
    prop::collection::vec(one, 1..=most)
}

fn bounds(tasks: &[Task]) -> Vec<Option<u64>> {
    response_times(&TaskSet::new(tasks.to_vec()).unwrap(), Limits::default()).response_times
}

/// Jobs of one task with random offset, spacing and delay, ready in order of arrival.
fn random_jobs(task: &Task, horizon: i64, numbers: &mut Numbers) -> Vec<Job> {
    let mut arrival = numbers.between(0, task.period_ns - 1) as i64 - task.jitter_ns as i64;
    let mut jobs: Vec<Job> = Vec::new();
    let mostly_periodic = numbers.between(0, 3) > 0;
    while arrival < horizon {
        // Often at the edges: that is where the worst cases are.
        let delay = match numbers.between(0, 2) {
            0 => 0,
            1 => task.jitter_ns,
            _ => numbers.between(0, task.jitter_ns),
        };
        let earliest = jobs.last().map_or(0, |job| job.ready);
        jobs.push(Job { arrival, ready: (arrival + delay as i64).max(earliest) });
        let spacing = if mostly_periodic { 0 } else { numbers.between(0, task.period_ns) };
        arrival += (task.period_ns + spacing) as i64;
    }
    // A job from before the start may only have been delayed to it if its jitter reaches that far.
    jobs.retain(|job| job.ready <= job.arrival + task.jitter_ns as i64);
    jobs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_critical_instant_attains_the_bound(tasks in tasks(5, 40)) {
        for (index, bound) in bounds(&tasks).into_iter().enumerate() {
            match critical_instant(&tasks[..=index], 3000) {
                Simulated::Response(response) => prop_assert_eq!(bound, Some(response), "task {}", index),
                Simulated::Beyond => prop_assert_eq!(bound, None, "task {}", index),
                Simulated::Unknown => {}
            }
        }
    }

    #[test]
    fn no_simulated_job_responds_later(tasks in tasks(4, 30), seed in any::<u64>()) {
        let horizon = 400;
        let mut numbers = Numbers(seed);
        for (index, bound) in bounds(&tasks).into_iter().enumerate() {
            let task = &tasks[index];
            // With D <= T one job is analysed, which is a bound only if it ends before the next
            // arrives.
            let holds = |r: &u64| task.deadline_ns > task.period_ns || *r <= task.period_ns;
            let Some(bound) = bound.filter(holds) else { continue };
            let level = &tasks[..=index];
            let jobs: Vec<Vec<Job>> =
                level.iter().map(|task| random_jobs(task, horizon, &mut numbers)).collect();
            let blocker = Blocker {
                not_before: numbers.between(0, 100) as i64,
                length: task.blocking_ns,
                already_started: false,
            };
            for (job, end) in jobs[index].iter().zip(end_times(level, &jobs, blocker, horizon)) {
                prop_assert!((end - job.arrival) as u64 <= bound, "task {} took {}, bound {}", index,
                             end - job.arrival, bound);
            }
        }
    }
}

/// Every offset and every delay of the first job, for every pair of small tasks: the worst of them
/// all is the bound, so the critical instant is not merely one bad case.
#[test]
fn exhaustive_over_offsets_and_delays_of_two_tasks() {
    let mut attained = 0;
    for (t0, c0, j0, t1, c1, j1) in small_pairs() {
        let task = |period_ns, cost_ns, jitter_ns| Task { jitter_ns, ..Task::implicit(period_ns, cost_ns) };
        let tasks = [task(t0, c0, j0), task(t1, c1, j1)];
        let Some(bound) = bounds(&tasks)[1].filter(|r| *r <= t1) else { continue };
        let mut worst = 0;
        for (offset0, offset1) in (0..t0).flat_map(|a| (0..t1).map(move |b| (a, b))) {
            for (delay0, delay1) in (0..=j0).flat_map(|a| (0..=j1).map(move |b| (a, b))) {
                let jobs = [jobs_from(&tasks[0], offset0, delay0), jobs_from(&tasks[1], offset1, delay1)];
                let blocker = Blocker { not_before: 0, length: 0, already_started: false };
                let ends = end_times(&tasks, &jobs, blocker, 40);
                let responses = jobs[1].iter().zip(&ends).map(|(job, end)| (end - job.arrival) as u64);
                worst = worst.max(responses.max().unwrap_or(0));
            }
        }
        assert_eq!(worst, bound, "{tasks:?}");
        attained += 1;
    }
    assert!(attained > 100, "only {attained} pairs had a bound to compare with");
}

fn small_pairs() -> impl Iterator<Item = (u64, u64, u64, u64, u64, u64)> {
    (2..5u64).flat_map(|t0| {
        (1..3).flat_map(move |c0| {
            (0..3).flat_map(move |j0| {
                (3..7u64).flat_map(move |t1| {
                    (1..4).flat_map(move |c1| (0..2).map(move |j1| (t0, c0, j0, t1, c1, j1)))
                })
            })
        })
    })
}

/// Periodic jobs, the first delayed, the others not.
fn jobs_from(task: &Task, offset: u64, delay: u64) -> Vec<Job> {
    let first = Job { arrival: offset as i64, ready: (offset + delay) as i64 };
    let later = (1..10).map(|q| (offset + q * task.period_ns) as i64);
    let later = later.map(|arrival| Job { arrival, ready: arrival.max(first.ready) });
    std::iter::once(first).chain(later).collect()
}
