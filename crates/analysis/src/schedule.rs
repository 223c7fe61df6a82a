//! The schedule of a task set's jobs, as a Gantt chart shows it (R. Delgado and B. W. Choi, IEEE
//! Access 8, 2020, Fig. 5).
//!
//! Release, start, end and CPU time of every job are stored. Which part of a job ran follows from
//! SCHED_FIFO on the one CPU that the tasks share: from its start on, whenever no job of higher
//! priority is released and not yet served. What interrupts and other processes took is in there;
//! the CPU time of the job beside the length of its parts says how much that was.

use crate::taskset::{Job, jobs};
use attribution::Error;
use model::Sample;
use model::probe::{ProbeDetail, TasksetDetail};
use model::run::ProbeRecord;
use model::sample::OwnColumn;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most jobs of a schedule: what an eye can follow, and a small part of a long run.
const MOST_JOBS: usize = 200;
/// Rows that are kept of a task: two hyperperiods of [`MOST_JOBS`] each, and what interrupts the
/// last of them.
const KEPT: usize = 3 * MOST_JOBS;

/// A stretch of the schedule: one hyperperiod where there is room for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Where it begins, CLOCK_MONOTONIC ns: a common release of all tasks where it is a
    /// hyperperiod; the first job of each task is before it.
    pub from_ns: i64,
    /// Its end: releases before this are in it.
    pub to_ns: i64,
    /// Least common multiple of the periods; none where it does not fit 64 bits.
    pub hyperperiod_ns: Option<u64>,
    /// Jobs that were released in it and ended behind what was kept for it.
    pub left_out: u64,
    /// The others, by release, of equal ones the highest priority first; at most 200.
    pub jobs: Vec<ScheduledJob>,
    /// What each of them did from its release to its end, without holes; in the same order.
    pub spans: Vec<Span>,
}

/// One job, CLOCK_MONOTONIC ns where a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledJob {
    /// Name of its task.
    pub task: String,
    /// Intended release.
    pub release_ns: i64,
    /// Begin.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// From release to end.
    pub response_ns: i64,
    /// Release and relative deadline.
    pub deadline_ns: i64,
    /// CPU time that it used, by the thread's own clock.
    pub cpu_ns: i64,
    /// Length of its running parts.
    pub running_ns: i64,
    /// Involuntary context switches, as the kernel counted them.
    pub preemptions: i64,
    /// How often each task of higher priority took the CPU from it.
    pub preempted_by: BTreeMap<String, u64>,
}

/// What a job does in a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Released, and not begun.
    Waiting,
    /// Begun, and no job of higher priority pending.
    Running,
    /// Begun, and a job of higher priority pending.
    Preempted,
}

/// A part of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Name of its task.
    pub task: String,
    /// What it does.
    pub state: State,
    /// The task of the highest priority that is pending meanwhile; none while it runs, and while it
    /// waits for its own wake-up alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Begin, CLOCK_MONOTONIC ns.
    pub from_ns: i64,
    /// Length.
    pub ns: i64,
}

/// The first jobs of one task.
#[derive(Debug, Clone)]
pub struct FirstJobs {
    name: String,
    priority: u32,
    period_ns: i64,
    deadline_ns: i64,
    /// Common release of the set.
    common_ns: i64,
    offset_ns: i64,
    rows: Vec<(i64, Job)>,
    /// Whether the file holds more.
    more: bool,
}

impl FirstJobs {
    /// Those of one probe record; none if the run does not name the task (older runs).
    pub fn of(
        record: &ProbeRecord,
        samples: &[Sample],
        columns: &[OwnColumn],
    ) -> Result<Option<Self>, Error> {
        let ProbeDetail::Taskset(TasksetDetail { releases, task: Some(task) }) = &record.detail else {
            return Ok(None);
        };
        let jobs = jobs(record, samples.len(), columns)?;
        Ok(Some(Self {
            name: task.name.clone(),
            priority: record.policy_asked.priority,
            period_ns: i64::try_from(releases.period_ns).unwrap_or(i64::MAX).max(1),
            deadline_ns: i64::try_from(task.deadline_ns).unwrap_or(i64::MAX),
            common_ns: record.t0_ns,
            offset_ns: i64::try_from(task.offset_ns).unwrap_or(i64::MAX),
            rows: samples.iter().map(|sample| sample.t_ns).zip(jobs).take(KEPT).collect(),
            more: samples.len() > KEPT,
        }))
    }

    /// Until when all of its jobs are known.
    fn known_until(&self) -> i64 {
        match self.rows.last() {
            Some((release, _)) if self.more => *release,
            _ => i64::MAX,
        }
    }
}

/// A job and the task it is of.
#[derive(Clone, Copy)]
struct Row<'a> {
    task: &'a FirstJobs,
    release_ns: i64,
    job: Job,
}

/// The schedule behind the first job of each task; none without such jobs.
pub fn schedule(tasks: &[FirstJobs]) -> Option<Schedule> {
    let hyperperiod = hyperperiod(tasks);
    let (from_ns, mut to_ns) = stretch(tasks, hyperperiod)?;
    let mut all: Vec<Row<'_>> = tasks
        .iter()
        .flat_map(|task| {
            task.rows.iter().map(move |(release_ns, job)| Row { task, release_ns: *release_ns, job: *job })
        })
        .collect();
    all.sort_by_key(|row| (row.release_ns, std::cmp::Reverse(row.task.priority)));
    let within = |row: &&Row<'_>| (from_ns..to_ns).contains(&row.release_ns);
    // Jobs of one release stay together.
    if let Some(first_beyond) = all.iter().filter(within).nth(MOST_JOBS) {
        to_ns = first_beyond.release_ns;
    }
    let known_until = tasks.iter().map(FirstJobs::known_until).min().unwrap_or(i64::MAX);
    let (shown, beyond): (Vec<&Row<'_>>, Vec<&Row<'_>>) = all
        .iter()
        .filter(|row| (from_ns..to_ns).contains(&row.release_ns))
        .partition(|row| row.job.end_ns <= known_until);
    let (mut jobs, mut spans) = (Vec::new(), Vec::new());
    for row in &shown {
        let parts = parts(row, &all);
        jobs.push(scheduled(row, &parts));
        spans.extend(parts);
    }
    let hyperperiod_ns = hyperperiod.and_then(|ns| u64::try_from(ns).ok());
    (!jobs.is_empty()).then_some(Schedule {
        from_ns,
        to_ns,
        hyperperiod_ns,
        left_out: beyond.len() as u64,
        jobs,
        spans,
    })
}

/// Begin and end: the first hyperperiod behind the first jobs where all of it was measured and is
/// known, else what there is behind these.
fn stretch(tasks: &[FirstJobs], hyperperiod: Option<i64>) -> Option<(i64, i64)> {
    let common_ns = tasks.first()?.common_ns;
    let first_jobs_ns =
        tasks.iter().map(|task| task.offset_ns.saturating_add(task.period_ns)).max().unwrap_or(0).max(1);
    let measured = tasks.iter().filter_map(|task| Some(task.rows.last()?.0.saturating_add(task.period_ns)));
    let known_until = measured.min()?;
    let whole = hyperperiod.and_then(|length| {
        let skipped = first_jobs_ns.checked_add(length - 1)? / length;
        let from = common_ns.checked_add(skipped.checked_mul(length)?)?;
        Some((from, from.checked_add(length)?))
    });
    let rest = || {
        let from = common_ns.saturating_add(first_jobs_ns);
        (from, known_until.min(from.saturating_add(hyperperiod.unwrap_or(i64::MAX))))
    };
    Some(whole.filter(|(_, to)| *to <= known_until).unwrap_or_else(rest))
}

fn hyperperiod(tasks: &[FirstJobs]) -> Option<i64> {
    tasks.iter().try_fold(1_i64, |all, task| {
        let (mut a, mut b) = (all, task.period_ns);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        (all / a).checked_mul(task.period_ns)
    })
}

/// What a job did from its release to its end.
fn parts(row: &Row<'_>, all: &[Row<'_>]) -> Vec<Span> {
    let (release, end) = (row.release_ns, row.job.end_ns);
    let above: Vec<&Row<'_>> = all
        .iter()
        .filter(|other| other.task.priority > row.task.priority)
        .filter(|other| other.release_ns < end && other.job.end_ns > release)
        .collect();
    let mut edges: Vec<i64> = above.iter().flat_map(|other| [other.release_ns, other.job.end_ns]).collect();
    edges.extend([release, row.job.start_ns, end]);
    edges.retain(|edge| (release..=end).contains(edge));
    edges.sort_unstable();
    edges.dedup();
    let mut parts: Vec<Span> = Vec::new();
    for pair in edges.windows(2) {
        let [from_ns, to_ns] = [pair[0], pair[1]];
        let pending = above.iter().filter(|other| other.release_ns <= from_ns && other.job.end_ns >= to_ns);
        let by = pending.max_by_key(|other| other.task.priority).map(|other| other.task.name.clone());
        let state = match (&by, from_ns < row.job.start_ns) {
            (_, true) => State::Waiting,
            (Some(_), false) => State::Preempted,
            (None, false) => State::Running,
        };
        let ns = to_ns.saturating_sub(from_ns);
        match parts.last_mut() {
            Some(last) if last.state == state && last.by == by => last.ns = last.ns.saturating_add(ns),
            _ => parts.push(Span { task: row.task.name.clone(), state, by, from_ns, ns }),
        }
    }
    parts
}

fn scheduled(row: &Row<'_>, parts: &[Span]) -> ScheduledJob {
    let mut preempted_by = BTreeMap::new();
    for by in parts.iter().filter(|part| part.state == State::Preempted).filter_map(|part| part.by.clone()) {
        *preempted_by.entry(by).or_default() += 1;
    }
    let running = parts.iter().filter(|part| part.state == State::Running);
    ScheduledJob {
        task: row.task.name.clone(),
        release_ns: row.release_ns,
        start_ns: row.job.start_ns,
        end_ns: row.job.end_ns,
        response_ns: row.job.end_ns.saturating_sub(row.release_ns),
        deadline_ns: row.release_ns.saturating_add(row.task.deadline_ns),
        cpu_ns: row.job.cpu_ns,
        running_ns: running.fold(0, |sum: i64, part| sum.saturating_add(part.ns)),
        preemptions: row.job.preemptions,
        preempted_by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(name: &str, priority: u32, period_ns: i64, rows: &[(i64, i64, i64)]) -> FirstJobs {
        let job = |&(release, start_ns, end_ns): &(i64, i64, i64)| {
            (release, Job { start_ns, end_ns, cpu_ns: 1, preemptions: 0 })
        };
        let (name, rows) = (name.to_owned(), rows.iter().map(job).collect());
        FirstJobs {
            name,
            priority,
            period_ns,
            deadline_ns: period_ns,
            common_ns: 0,
            offset_ns: 0,
            rows,
            more: false,
        }
    }

    /// The set of the paper, two hyperperiods long, without any overhead.
    fn paper() -> Vec<FirstJobs> {
        let first: Vec<_> = (0..8).map(|k| (10 * k, 10 * k, 10 * k + 3)).collect();
        let second: Vec<_> = (0..4).map(|k| (20 * k, 20 * k + 3, 20 * k + 8)).collect();
        let third: Vec<_> = (0..2).map(|k| (40 * k, 40 * k + 8, 40 * k + 29)).collect();
        vec![task("1", 99, 10, &first), task("2", 80, 20, &second), task("3", 50, 40, &third)]
    }

    #[test]
    fn the_schedule_of_the_paper() {
        let timeline = schedule(&paper()).unwrap();
        assert_eq!(
            (timeline.from_ns, timeline.to_ns, timeline.hyperperiod_ns, timeline.left_out),
            (40, 80, Some(40), 0)
        );
        let releases: Vec<_> = timeline.jobs.iter().map(|job| (job.task.as_str(), job.release_ns)).collect();
        assert_eq!(releases, [("1", 40), ("2", 40), ("3", 40), ("1", 50), ("1", 60), ("2", 60), ("1", 70)]);
        let third: Vec<_> = timeline
            .spans
            .iter()
            .filter(|span| span.task == "3")
            .map(|span| (span.state, span.by.as_deref(), span.from_ns, span.ns))
            .collect();
        let expected = [
            (State::Waiting, Some("1"), 40, 3),
            (State::Waiting, Some("2"), 43, 5),
            (State::Running, None, 48, 2),
            (State::Preempted, Some("1"), 50, 3),
            (State::Running, None, 53, 7),
            (State::Preempted, Some("1"), 60, 3),
            (State::Preempted, Some("2"), 63, 5),
            (State::Running, None, 68, 1),
        ];
        assert_eq!(third, expected);
        // "Pre-empted twice by the first and once by the second", section V.
        let job = &timeline.jobs[2];
        assert_eq!((job.running_ns, job.response_ns, job.deadline_ns), (10, 29, 80));
        assert_eq!(job.preempted_by, [("1".to_owned(), 2), ("2".to_owned(), 1)].into());
    }

    #[test]
    fn without_room_for_a_hyperperiod_it_is_what_comes_behind_the_first_jobs() {
        let rows = |period: i64, n: i64| {
            (0..n).map(|k| (period * k, period * k, period * k + 1)).collect::<Vec<_>>()
        };
        let timeline = schedule(&[task("a", 2, 7, &rows(7, 6)), task("b", 1, 11, &rows(11, 4))]).unwrap();
        assert_eq!((timeline.from_ns, timeline.to_ns, timeline.hyperperiod_ns), (11, 42, Some(77)));
        assert_eq!(schedule(&[task("a", 2, 7, &rows(7, 1))]), None);
        assert_eq!(schedule(&[]), None);
    }

    #[test]
    fn a_long_schedule_is_cut_and_what_lies_behind_the_cut_is_counted() {
        let fast: Vec<_> = (0..KEPT as i64).map(|k| (10 * k, 10 * k, 10 * k + 1)).collect();
        let slow = [(0, 1, 9_999), (10_000, 10_001, 10_002)];
        let mut tasks = [task("fast", 2, 10, &fast), task("slow", 1, 10_000, &slow)];
        tasks[0].more = true;
        // Its second job lies behind everything that was kept of the other task.
        assert_eq!(schedule(&tasks), None);
        tasks[1] = task("slow", 1, 1_000, &[(0, 1, 9), (1_000, 1_001, 99_999)]);
        let timeline = schedule(&tasks).unwrap();
        assert_eq!((timeline.from_ns, timeline.jobs.len(), timeline.left_out), (1_000, 100, 1));
    }

    #[test]
    fn no_more_jobs_than_the_eye_can_follow() {
        let rows = |period: i64, n: i64| {
            (0..n).map(|k| (period * k, period * k, period * k + 1)).collect::<Vec<_>>()
        };
        let timeline = schedule(&[task("a", 2, 1, &rows(1, 600)), task("b", 1, 290, &rows(290, 3))]).unwrap();
        assert_eq!((timeline.from_ns, timeline.jobs.len()), (290, MOST_JOBS));
        assert_eq!(timeline.to_ns, timeline.jobs.iter().map(|job| job.release_ns).max().unwrap() + 1);
    }

    proptest! {
        #[test]
        fn spans_leave_no_hole_and_one_job_runs_at_a_time(
            jobs in prop::collection::vec((0i64..200, 0i64..30, 1i64..60, 1u32..9), 1..20),
        ) {
            let tasks: Vec<FirstJobs> = jobs
                .iter()
                .enumerate()
                .map(|(at, &(release, wait, length, _))| {
                    let (from, at) = (release + 1_000, at as u32);
                    // Priorities differ: SCHED_FIFO does not preempt among equals.
                    let row = [(0, 0, 1), (from, from + wait, from + wait + length), (2_000, 2_000, 2_001)];
                    task(&at.to_string(), at + 1, 1_000, &row)
                })
                .collect();
            let timeline = schedule(&tasks).unwrap();
            for job in &timeline.jobs {
                let own: Vec<_> = timeline.spans.iter().filter(|span| span.task == job.task && span.from_ns >= job.release_ns && span.from_ns < job.end_ns).collect();
                prop_assert_eq!(own[0].from_ns, job.release_ns);
                prop_assert!(own.windows(2).all(|pair| pair[0].from_ns + pair[0].ns == pair[1].from_ns));
                prop_assert_eq!(own.iter().map(|span| span.ns).sum::<i64>(), job.end_ns - job.release_ns);
            }
            let mut running: Vec<_> = timeline.spans.iter().filter(|span| span.state == State::Running).collect();
            running.sort_by_key(|span| span.from_ns);
            prop_assert!(running.windows(2).all(|pair| pair[0].from_ns + pair[0].ns <= pair[1].from_ns));
        }
    }
}
