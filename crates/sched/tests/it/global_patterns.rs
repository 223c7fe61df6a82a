//! Response-time tests of global scheduling, done once more by drawing the patterns of execution
//! tick by tick and trying every window in turn: no floor, no modulus, no fixpoint iteration in
//! common with the library.

use proptest::prelude::*;
use sched::global::{GlobalTest, global};
use sched::{Limits, Task};

/// Ticks below `end` in which a task that runs at the beginning of every period is running.
fn running(task: &Task, end: u64) -> u64 {
    let (mut ticks, mut phase) = (0, 0);
    for _ in 0..end {
        ticks += u64::from(phase < task.cost_ns);
        phase = if phase + 1 == task.period_ns { 0 } else { phase + 1 };
    }
    ticks
}

/// The least window from C to D that holds C and an m-th of the work of others.
fn least(task: &Task, m: u64, work: impl Fn(u64) -> u64) -> Option<u64> {
    (task.cost_ns..=task.deadline_ns).find(|&window| {
        // Ticks in which all m cores are busy with others.
        let (mut left, mut busy) = (work(window), 0);
        while left >= m {
            left -= m;
            busy += 1;
        }
        task.cost_ns + busy <= window
    })
}

fn down_the_priorities(
    tasks: &[Task],
    m: u64,
    one: impl Fn(usize, &[u64]) -> Option<u64>,
) -> Vec<Option<u64>> {
    let mut found = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let highest = (index as u64) < m;
        let response =
            if highest { Some(task.cost_ns).filter(|c| *c <= task.deadline_ns) } else { one(index, &found) };
        let Some(response) = response else { break };
        found.push(response);
    }
    (0..tasks.len()).map(|at| found.get(at).copied()).collect()
}

fn bertogna(tasks: &[Task], m: u64) -> Vec<Option<u64>> {
    down_the_priorities(tasks, m, |index, above| {
        let work = |window| {
            tasks[..index]
                .iter()
                .zip(above)
                .map(|(task, response)| running(task, window + response - task.cost_ns))
                .sum()
        };
        least(&tasks[index], m, work)
    })
}

/// A first job whole, then periods; in the last one the job runs as early as its response time lets
/// the next be, but for a tick.
fn carrying(task: &Task, response: u64, window: u64) -> u64 {
    let (mut work, mut phase, mut partial) = (task.cost_ns, 0, 0);
    for _ in task.cost_ns..window {
        if phase + response >= task.period_ns && partial + 1 < task.cost_ns {
            partial += 1;
        }
        phase += 1;
        if phase == task.period_ns {
            work += task.cost_ns;
            (phase, partial) = (0, 0);
        }
    }
    work + partial
}

fn guan(tasks: &[Task], m: u64) -> Vec<Option<u64>> {
    down_the_priorities(tasks, m, |index, above| {
        let own = tasks[index].cost_ns;
        let work = |window: u64| {
            let most = window - own + 1;
            let mut all: Vec<(u64, u64)> = tasks[..index]
                .iter()
                .zip(above)
                .map(|(task, &response)| {
                    (running(task, window).min(most), carrying(task, response, window).min(most))
                })
                .collect();
            all.sort_by_key(|(without, with)| std::cmp::Reverse(with - without));
            let chosen = all.iter().enumerate();
            chosen.map(|(at, (without, with))| if at as u64 + 1 < m { *with } else { *without }).sum()
        };
        least(&tasks[index], m, work)
    })
}

/// Ticks of a window that ends with a deadline in which a task with this slack can run, its last
/// job ended that early.
fn before_deadline(task: &Task, window: u64, slack: u64) -> u64 {
    // Backwards from the end: a job of each period, done `slack` before; whatever does not fit
    // before the window began is lost.
    let (mut ticks, mut start) = (0, 0);
    while start + task.period_ns <= window {
        ticks += task.cost_ns;
        start += task.period_ns;
    }
    ticks + (start + slack..window).take(task.cost_ns as usize).count() as u64
}

fn edf(tasks: &[Task], m: u64, by_window: bool) -> (bool, Vec<Option<u64>>) {
    let mut slacks = vec![0; tasks.len()];
    for _ in 0..25 {
        let before = slacks.clone();
        let mut all = true;
        for (index, task) in tasks.iter().enumerate() {
            let others = |slacks: &[u64], window: u64| {
                let most =
                    if by_window { window - task.cost_ns + 1 } else { task.deadline_ns - task.cost_ns + 1 };
                let mut sum = 0;
                for (at, other) in tasks.iter().enumerate().filter(|(at, _)| *at != index) {
                    let slack = slacks[at];
                    let mut work = before_deadline(other, task.deadline_ns, slack);
                    if by_window {
                        work = work.min(running(other, window + other.deadline_ns - other.cost_ns - slack));
                    }
                    sum += work.min(most);
                }
                sum
            };
            match least(task, m, |window| others(&slacks, window)) {
                Some(response) => slacks[index] = slacks[index].max(task.deadline_ns - response),
                None => all = false,
            }
        }
        if all {
            return (
                true,
                tasks.iter().zip(&slacks).map(|(task, slack)| Some(task.deadline_ns - slack)).collect(),
            );
        }
        if before == slacks {
            break;
        }
    }
    (false, vec![None; tasks.len()])
}

fn bcl(tasks: &[Task], m: u64) -> bool {
    tasks.iter().enumerate().all(|(index, task)| {
        let slack = task.deadline_ns - task.cost_ns;
        let (mut sum, mut small) = (0, false);
        for other in tasks.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, other)| other) {
            // Deadlines within the window, then what is left at its beginning.
            let (mut work, mut end) = (0, task.deadline_ns as i64);
            while end >= other.deadline_ns as i64 {
                work += other.cost_ns;
                end -= other.period_ns as i64;
            }
            work += other.cost_ns.min(end.max(0) as u64);
            sum += work.min(slack);
            small |= work > 0 && work <= slack;
        }
        sum < m * slack || small && sum == m * slack
    })
}

fn tasks(rows: &[(u64, u64, u64)], cores: u32) -> Vec<Task> {
    let one = |&(period_ns, cost, deadline): &(u64, u64, u64)| {
        let cost_ns = (period_ns * cost * u64::from(cores) / (rows.len() as u64 * 100)).clamp(1, period_ns);
        Task {
            deadline_ns: cost_ns + (period_ns - cost_ns) * deadline.min(100) / 100,
            ..Task::implicit(period_ns, cost_ns)
        }
    };
    rows.iter().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn as_drawn(
        rows in prop::collection::vec((4u64..70, 10u64..120, 50u64..160), 1..9), cores in 1u32..5,
    ) {
        let tasks = tasks(&rows, cores);
        let m = u64::from(cores);
        let says = |test| global(&tasks, cores, test, Limits::default());
        prop_assert_eq!(says(GlobalTest::FpBertogna).response_times, bertogna(&tasks, m));
        prop_assert_eq!(says(GlobalTest::FpGuan).response_times, guan(&tasks, m));
        let used: f64 = tasks.iter().map(Task::utilization).sum();
        prop_assume!(used < f64::from(cores) - 1e-6);
        prop_assert_eq!(says(GlobalTest::EdfRta).response_times, edf(&tasks, m, true).1);
        prop_assert_eq!(says(GlobalTest::EdfBcl).schedulable, bcl(&tasks, m));
        // Slacks converge in few rounds; where they did not, ours continues.
        let iterative = says(GlobalTest::EdfBclIterative).schedulable;
        prop_assert!(iterative || !edf(&tasks, m, false).0);
        prop_assert!(!iterative || says(GlobalTest::EdfRta).schedulable);
    }
}
