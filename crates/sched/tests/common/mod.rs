//! A unit-step simulation of one fixed-priority preemptive processor. It shares no formula with the
//! library: it knows only arrivals, ready times, who runs, and when a job ends.
pub(crate) mod adversary;
pub(crate) mod numbers;

pub(crate) use numbers::Numbers;
use sched::Task;

/// One job of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    /// From here the response time counts.
    pub(crate) arrival: i64,
    /// From here it may run.
    pub(crate) ready: i64,
}

/// Lower-priority work that cannot be preempted, of length `length`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocker {
    /// It runs at the first instant from here at which nothing else is ready.
    pub(crate) not_before: i64,
    /// For so long.
    pub(crate) length: u64,
    /// Whether it may start beside ready jobs: the supremum of "it started just before".
    pub(crate) already_started: bool,
}

/// End time of every job of the last task. Jobs of a task run in order of arrival. Runs from 0 to
/// `horizon`; jobs unfinished then are left out.
pub(crate) fn end_times(tasks: &[Task], jobs: &[Vec<Job>], blocker: Blocker, horizon: i64) -> Vec<i64> {
    let mut left: Vec<Vec<u64>> =
        tasks.iter().zip(jobs).map(|(task, jobs)| vec![task.cost_ns; jobs.len()]).collect();
    let mut next = vec![0usize; tasks.len()];
    let mut blocking_left = blocker.length;
    let mut blocking = false;
    let mut ends = Vec::new();
    for now in 0..horizon {
        let runner = (0..tasks.len()).find(|&k| jobs[k].get(next[k]).is_some_and(|job| job.ready <= now));
        let may_start = now >= blocker.not_before && (runner.is_none() || blocker.already_started);
        blocking = blocking_left > 0 && (blocking || may_start);
        if blocking {
            blocking_left -= 1;
            continue;
        }
        let Some(k) = runner else { continue };
        left[k][next[k]] -= 1;
        if left[k][next[k]] == 0 {
            next[k] += 1;
            if k + 1 == tasks.len() {
                ends.push(now + 1);
            }
        }
    }
    ends
}

/// The jobs of the critical instant: the first job of each task is as late as can be and ready at
/// 0, every later one is ready as early as can be.
pub(crate) fn critical_jobs(task: &Task, horizon: i64) -> Vec<Job> {
    let jitter = task.jitter_ns as i64;
    (-jitter..horizon)
        .step_by(task.period_ns as usize)
        .map(|arrival| Job { arrival, ready: arrival.max(0) })
        .collect()
}

/// What the critical instant says of the last of `tasks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Simulated {
    /// Worst response time from arrival.
    Response(u64),
    /// A job ended later than its deadline after its latest ready time at full jitter, so no bound
    /// is owed.
    Beyond,
    /// The busy window was longer than the simulation.
    Unknown,
}

/// Simulates the critical instant of the last task. With D <= T the first job is the answer,
/// otherwise the worst of those up to the first instant at which the processor has nothing left for
/// this level.
pub(crate) fn critical_instant(tasks: &[Task], horizon: i64) -> Simulated {
    let Some(task) = tasks.last() else { return Simulated::Unknown };
    let jobs: Vec<Vec<Job>> = tasks.iter().map(|task| critical_jobs(task, horizon)).collect();
    let blocker = Blocker { not_before: 0, length: task.blocking_ns, already_started: true };
    let ends = end_times(tasks, &jobs, blocker, horizon);
    let own = &jobs[tasks.len() - 1];
    let mut worst = 0;
    for (q, (job, end)) in own.iter().zip(&ends).enumerate() {
        if end - q as i64 * task.period_ns as i64 > task.deadline_ns as i64 {
            return Simulated::Beyond;
        }
        worst = worst.max((end - job.arrival) as u64);
        let last =
            task.deadline_ns <= task.period_ns || own.get(q + 1).is_some_and(|next| next.ready >= *end);
        if last {
            return Simulated::Response(worst);
        }
    }
    Simulated::Unknown
}
