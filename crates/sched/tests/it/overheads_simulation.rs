//! Tests with overheads against a simulated core that pays them: interrupts, scheduling decisions
//! and switches that tasks cannot preempt, and caches to be loaded again after a preemption
//! (Brandenburg 2011, chapter 3). Where the test accepts a set, no simulated job is late, nor later
//! than its bound. The simulation uses no formula: it steps through time unit by unit.

use crate::common::numbers::Numbers;
use sched::overheads::{Overheads, analyze_with_overheads};
use sched::{Limits, System, Task, Test};
use std::collections::VecDeque;

const HORIZON: u64 = 400;

#[derive(Debug, Clone, Copy)]
struct Job {
    task: usize,
    arrival: u64,
    /// When its release interrupt is taken, if none runs.
    fires: u64,
    left: u64,
    /// Cache lines to load again before it goes on.
    reload: u64,
    ready: bool,
}

#[derive(Debug, Clone, Copy)]
enum Interrupt {
    Tick,
    Release(usize),
}

/// One core.
struct Core<'a> {
    tasks: &'a [Task],
    overheads: Overheads,
    test: Test,
    jobs: Vec<Job>,
    /// When ticks are taken.
    ticks: Vec<u64>,
    /// Work of lower priority that cannot be preempted: from when, how much.
    blocker: (u64, u64),
}

impl Core<'_> {
    /// The most urgent job that is ready.
    fn best(&self) -> Option<usize> {
        let urgency = |&index: &usize| {
            let job = &self.jobs[index];
            match self.test {
                Test::FpRta => (job.task as u64, job.arrival, job.task),
                _ => (job.arrival + self.tasks[job.task].deadline_ns, job.arrival, job.task),
            }
        };
        (0..self.jobs.len())
            .filter(|&index| self.jobs[index].ready && self.jobs[index].left > 0)
            .min_by_key(urgency)
    }

    fn fired(&self, now: u64) -> impl Iterator<Item = Interrupt> {
        let releases = (0..self.jobs.len()).filter(move |&index| self.jobs[index].fires == now);
        let ticks = self.ticks.iter().filter(move |&&tick| tick == now);
        // Ticks first or last: the order is not guaranteed, and bounds must hold for this one.
        releases.map(Interrupt::Release).chain(ticks.map(|_| Interrupt::Tick))
    }

    /// Response times of all jobs that end: task and time from the arrival.
    fn run(mut self) -> Vec<(usize, u64)> {
        let switch_cost = self.overheads.schedule_ns + self.overheads.context_switch_ns;
        let mut pending: VecDeque<(Interrupt, u64)> = VecDeque::new();
        let mut running: Option<usize> = None;
        let mut switching: Option<(u64, Option<usize>)> = None;
        let mut ended = Vec::new();
        for now in 0..HORIZON {
            let fired: Vec<Interrupt> = self.fired(now).collect();
            for interrupt in fired {
                let cost = match interrupt {
                    Interrupt::Tick => self.overheads.tick_ns,
                    Interrupt::Release(_) => self.overheads.release_ns,
                };
                pending.push_back((interrupt, cost));
            }
            // What costs nothing takes no unit of time.
            let mut spent = false;
            while let Some((interrupt, left)) = pending.front_mut() {
                if *left > 0 && spent {
                    break;
                }
                if *left > 0 {
                    *left -= 1;
                    spent = true;
                }
                if *left > 0 {
                    break;
                }
                if let Interrupt::Release(job) = *interrupt {
                    self.jobs[job].ready = true;
                }
                pending.pop_front();
            }
            if spent {
                continue;
            }
            if now >= self.blocker.0 && self.blocker.1 > 0 {
                self.blocker.1 -= 1;
                continue;
            }
            loop {
                if switching.is_none() && self.best() != running {
                    if let Some(preempted) = running.take() {
                        self.jobs[preempted].reload = self.overheads.cache_related_ns;
                    }
                    switching = Some((switch_cost, self.best()));
                }
                let Some((left, to)) = &mut switching else { break };
                if *left > 0 {
                    *left -= 1;
                    spent = true;
                }
                if *left > 0 {
                    break;
                }
                // The unit is spent: the next one decides whom the core belongs to.
                running = *to;
                switching = None;
                if spent {
                    break;
                }
            }
            if spent {
                continue;
            }
            let Some(index) = running else { continue };
            let job = &mut self.jobs[index];
            if job.reload > 0 {
                job.reload -= 1;
                continue;
            }
            job.left -= 1;
            if job.left == 0 {
                ended.push((job.task, now + 1 - job.arrival));
                running = None;
                // Whoever is next, even no task: the core is given away.
                switching = Some((switch_cost, self.best()));
            }
        }
        ended
    }
}

/// Arrivals and the times at which release interrupts are taken: worst case at `start`, or drawn.
fn jobs(
    tasks: &[Task],
    overheads: &Overheads,
    start: u64,
    critical: bool,
    numbers: &mut Numbers,
) -> Vec<Job> {
    let mut all = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let most = task.jitter_ns + overheads.release_latency_ns + overheads.ipi_ns;
        let mut arrival = if critical { start - most } else { numbers.between(0, task.period_ns) };
        let mut last = 0;
        while arrival + most < HORIZON {
            let delay = match numbers.between(0, 2) {
                _ if critical => start.saturating_sub(arrival),
                0 => 0,
                1 => most,
                _ => numbers.between(0, most),
            };
            let fires = (arrival + delay).max(last);
            last = fires;
            all.push(Job { task: index, arrival, fires, left: task.cost_ns, reload: 0, ready: false });
            arrival += task.period_ns;
            if !critical && numbers.between(0, 4) == 0 {
                arrival += numbers.between(0, task.period_ns);
            }
        }
    }
    all
}

fn ticks(overheads: &Overheads, start: u64, critical: bool, numbers: &mut Numbers) -> Vec<u64> {
    if overheads.tick_ns == 0 {
        return Vec::new();
    }
    let latency = overheads.release_latency_ns;
    let phase = if critical { start - latency } else { numbers.between(0, overheads.tick_period_ns) };
    let mut last = 0;
    let due = (0..).map(|k| phase + k * overheads.tick_period_ns).take_while(|due| *due < HORIZON);
    due.map(|due| {
        let delay = if critical { start.saturating_sub(due) } else { numbers.between(0, latency) };
        last = (due + delay).max(last);
        last
    })
    .collect()
}

fn drawn(numbers: &mut Numbers) -> (Vec<Task>, Overheads) {
    let most = numbers.between(1, 3);
    let overheads = Overheads {
        release_latency_ns: numbers.between(0, 3),
        ipi_ns: numbers.between(0, 2),
        release_ns: numbers.between(0, most),
        schedule_ns: numbers.between(0, 1),
        context_switch_ns: numbers.between(0, most),
        tick_ns: numbers.between(0, 2),
        tick_period_ns: numbers.between(8, 30),
        cache_related_ns: numbers.between(0, most),
    };
    let blocking_ns = if numbers.between(0, 2) == 0 { numbers.between(0, 6) } else { 0 };
    let tasks = (0..numbers.between(1, 4)).map(|_| {
        let period_ns = numbers.between(12, 90);
        Task {
            deadline_ns: period_ns * numbers.between(60, 180) / 100,
            jitter_ns: numbers.between(0, 4),
            blocking_ns,
            ..Task::implicit(period_ns, numbers.between(1, 1 + period_ns / 5))
        }
    });
    (tasks.collect(), overheads)
}

/// Checks that every job is in time in sets that the test accepts with overheads, and that some are
/// late in sets that it accepts without them.
fn compare(test: Test, seed: u64) {
    let mut numbers = Numbers(seed);
    let (mut accepted, mut attained, mut late_uncounted) = (0, 0, 0);
    for _ in 0..2_000 {
        let (tasks, overheads) = drawn(&mut numbers);
        let system = System { cores: 1, tasks: tasks.iter().map(|&task| task.into()).collect() };
        let verdict = analyze_with_overheads(&system, test, &overheads, Limits::default()).unwrap();
        let plain = sched::analyze(&system, test, Limits::default()).unwrap();
        if !verdict.schedulable && !plain.schedulable {
            continue;
        }
        for critical in [true, false, false] {
            let start = 40;
            let blocker = match tasks[0].blocking_ns {
                length if critical => (start, length),
                length => (numbers.between(0, 200), length),
            };
            let jobs = jobs(&tasks, &overheads, start, critical, &mut numbers);
            let ticks = ticks(&overheads, start, critical, &mut numbers);
            let core = Core { tasks: &tasks, overheads, test, jobs, ticks, blocker };
            for (task, response) in core.run() {
                let late = response > tasks[task].deadline_ns;
                if verdict.schedulable {
                    assert!(!late, "{test:?} {tasks:?} {overheads:?}: task {task} took {response}");
                    let bound = verdict.response_times[task];
                    assert!(
                        bound.is_none_or(|bound| response <= bound),
                        "{tasks:?} {overheads:?}: {task} took {response}, {bound:?}"
                    );
                    attained += u64::from(bound == Some(response));
                } else {
                    late_uncounted += u64::from(late);
                }
            }
        }
        accepted += u64::from(verdict.schedulable);
    }
    assert!(accepted > 300, "{accepted} sets accepted");
    assert!(late_uncounted > 300, "without counting overheads only {late_uncounted} jobs are late");
    assert!(test != Test::FpRta || attained > 30, "bounds were attained {attained} times");
}

#[test]
fn fixed_priorities() {
    compare(Test::FpRta, 1);
}

#[test]
fn earliest_deadline_first() {
    compare(Test::EdfQpa, 2);
}
