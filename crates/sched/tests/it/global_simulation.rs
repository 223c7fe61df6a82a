//! Tests of global scheduling against a unit-step simulation of m cores: no set that a test calls
//! schedulable may miss a deadline, and no job may respond later than a bound. Arrivals are
//! sporadic or periodic, released late within their jitter; under EDF deadlines count from the
//! release, D - J later, as the transformation in `global` says.

use crate::common::numbers::Numbers;
use proptest::prelude::*;
use sched::global::{GlobalTest, global};
use sched::{Limits, Task, Verdict};

/// A job: task, arrival, release.
#[derive(Debug, Clone, Copy)]
struct Job {
    task: usize,
    arrival: u64,
    release: u64,
    left: u64,
}

fn jobs(tasks: &[Task], horizon: u64, numbers: &mut Numbers) -> Vec<Job> {
    let mut jobs = Vec::new();
    let (synchronous, periodic) = (numbers.between(0, 1) == 0, numbers.between(0, 2) > 0);
    for (index, task) in tasks.iter().enumerate() {
        let mut arrival = if synchronous { 0 } else { numbers.between(0, task.period_ns - 1) };
        while arrival < horizon {
            let late = match numbers.between(0, 2) {
                0 => 0,
                1 => task.jitter_ns,
                _ => numbers.between(0, task.jitter_ns),
            };
            jobs.push(Job { task: index, arrival, release: arrival + late, left: task.cost_ns });
            arrival += task.period_ns + if periodic { 0 } else { numbers.between(0, task.period_ns / 2) };
        }
    }
    jobs
}

/// The worst response of every task, and whether each job was in time.
fn simulate(
    tasks: &[Task],
    cores: usize,
    horizon: u64,
    mut jobs: Vec<Job>,
    by_priority: bool,
) -> (Vec<u64>, bool) {
    let (mut worst, mut in_time) = (vec![0; tasks.len()], true);
    let rank = |job: &Job| {
        let task = &tasks[job.task];
        let due = job.release + task.deadline_ns - task.jitter_ns;
        (if by_priority { job.task as u64 } else { due }, job.task, job.arrival)
    };
    let end = horizon + 4 * tasks.iter().map(|task| task.period_ns + task.cost_ns).max().unwrap();
    for now in 0..end {
        let mut ready: Vec<usize> =
            (0..jobs.len()).filter(|&at| jobs[at].release <= now && jobs[at].left > 0).collect();
        ready.sort_by_key(|&at| rank(&jobs[at]));
        // Jobs of one task run one after the other.
        let mut running: Vec<usize> = Vec::new();
        for at in ready {
            if running.len() < cores && running.iter().all(|&other| jobs[other].task != jobs[at].task) {
                running.push(at);
            }
        }
        for at in running {
            let job = &mut jobs[at];
            job.left -= 1;
            if job.left == 0 {
                let response = now + 1 - job.arrival;
                worst[job.task] = worst[job.task].max(response);
                in_time &= response <= tasks[job.task].deadline_ns;
            }
        }
    }
    in_time &= jobs.iter().all(|job| job.left == 0);
    (worst, in_time)
}

fn tasks(rows: &[(u64, u64, u64, u64)], cores: u64, jitter: bool) -> Vec<Task> {
    let one = |&(period_ns, cost, deadline, late): &(u64, u64, u64, u64)| {
        let cost_ns = (period_ns * cost * cores / (rows.len() as u64 * 100)).clamp(1, period_ns);
        let deadline_ns = cost_ns + (period_ns - cost_ns) * deadline.min(100) / 100;
        let jitter_ns = if jitter { (deadline_ns - cost_ns) * late / 100 } else { 0 };
        Task { deadline_ns, jitter_ns, ..Task::implicit(period_ns, cost_ns) }
    };
    let mut tasks: Vec<Task> = rows.iter().map(one).collect();
    tasks.sort_by_key(|task| task.deadline_ns);
    tasks
}

fn ask(tasks: &[Task], cores: usize, test: GlobalTest) -> Verdict {
    global(tasks, cores as u32, test, Limits::default())
}

fn by_priority(test: GlobalTest) -> bool {
    matches!(test, GlobalTest::FpGuan | GlobalTest::FpBertogna)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_simulation_contradicts(
        rows in prop::collection::vec((3u64..24, 10u64..110, 40u64..160, 0u64..50), 2..8),
        cores in 2usize..5, jitter in any::<bool>(), seed in any::<u64>(),
    ) {
        let tasks = tasks(&rows, cores as u64, jitter);
        let mut numbers = Numbers(seed);
        let verdicts: Vec<(GlobalTest, Verdict)> = GlobalTest::ALL
            .into_iter()
            .filter(|test| *test != GlobalTest::EdfDa || tasks.iter().all(|task| task.deadline_ns == task.period_ns))
            .map(|test| (test, ask(&tasks, cores, test)))
            .collect();
        for _ in 0..4 {
            let jobs = jobs(&tasks, 150, &mut numbers);
            for fixed in [false, true] {
                let (worst, in_time) = simulate(&tasks, cores, 150, jobs.clone(), fixed);
                for (test, verdict) in verdicts.iter().filter(|(test, _)| by_priority(*test) == fixed) {
                    let hard = verdict.schedulable && *test != GlobalTest::EdfDa;
                    prop_assert!(!hard || in_time, "{} on {cores}: {tasks:?}", test.name());
                    for (bound, worst) in verdict.response_times.iter().zip(&worst) {
                        prop_assert!(bound.is_none_or(|bound| *worst <= bound), "{}: {worst} {verdict:?}", test.name());
                    }
                }
            }
        }
    }

    /// More cost of one task never turns a no into a yes, nor does more jitter, for the tests for
    /// which theory says so. The others use deadlines modulo periods, and can change their verdict
    /// when a period shrinks (Baker and Baruah, "Sustainable multiprocessor scheduling of sporadic
    /// task systems", ECRTS 2009).
    #[test]
    fn harder_sets_are_not_easier(
        rows in prop::collection::vec((6u64..60, 10u64..100, 60u64..160, 0u64..30), 2..9),
        cores in 2usize..5, at in 0usize..9, jitter in any::<bool>(),
    ) {
        let easy = tasks(&rows, cores as u64, true);
        let mut hard = easy.clone();
        let at = at % hard.len();
        if jitter { hard[at].jitter_ns += 1 } else { hard[at].cost_ns += 1 }
        let always = [GlobalTest::EdfGfb, GlobalTest::FpGuan, GlobalTest::FpBertogna];
        let by_cost = [GlobalTest::EdfBclIterative, GlobalTest::EdfRta];
        for test in always.into_iter().chain(by_cost.into_iter().filter(|_| !jitter)) {
            prop_assert!(
                ask(&easy, cores, test).schedulable || !ask(&hard, cores, test).schedulable,
                "{} {easy:?} {hard:?}", test.name()
            );
        }
    }

    /// What theory orders: Guan's bounds are not above Bertogna's, and slacks only add to what
    /// passes without.
    #[test]
    fn tests_that_dominate_others_do(
        rows in prop::collection::vec((6u64..60, 10u64..100, 60u64..160, 0u64..30), 2..9), cores in 2usize..5,
    ) {
        let tasks = tasks(&rows, cores as u64, false);
        let (guan, bertogna) = (ask(&tasks, cores, GlobalTest::FpGuan), ask(&tasks, cores, GlobalTest::FpBertogna));
        for (guan, bertogna) in guan.response_times.iter().zip(&bertogna.response_times) {
            prop_assert!(bertogna.is_none() || guan.is_some_and(|guan| guan <= bertogna.unwrap()));
        }
        let iterative = ask(&tasks, cores, GlobalTest::EdfBclIterative).schedulable;
        prop_assert!(!iterative || ask(&tasks, cores, GlobalTest::EdfRta).schedulable);
    }
}

/// Three tasks, two cores: the worst case of Dhall and Liu. Every light task runs first, and the
/// heavy one is late however small they are.
#[test]
fn dhalls_effect_is_seen_and_nothing_calls_it_schedulable() {
    let tasks = [Task::implicit(10, 1), Task::implicit(10, 1), Task::implicit(11, 11)];
    let mut at_once = Vec::new();
    for (task, one) in tasks.iter().enumerate() {
        at_once.push(Job { task, arrival: 0, release: 0, left: one.cost_ns });
    }
    assert!(!simulate(&tasks, 2, 1, at_once, false).1);
    for test in GlobalTest::ALL.into_iter().filter(|test| *test != GlobalTest::EdfDa) {
        assert!(!ask(&tasks, 2, test).schedulable, "{}", test.name());
    }
    assert_eq!(ask(&tasks, 2, GlobalTest::EdfDa).response_times.iter().flatten().count(), 3);
}
