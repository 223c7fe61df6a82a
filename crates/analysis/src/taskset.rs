//! Statistics of the jobs of one task of a task set: periods, jitter, response times, deadlines,
//! preemptions.
//!
//! Two metrics side by side. That of R. Delgado and B. W. Choi, IEEE Access 8, 2020 (Algorithm 2,
//! Tables 7 and 8): the period is the interval between two starts, the jitter its deviation from
//! the required one, the response counts from the actual start. And that of scheduling theory, in
//! which R_i is calculated: the response counts from the release, so that waiting for the CPU is
//! part of it.

use crate::ipi::Columns;
use attribution::Error;
use model::Sample;
use model::probe::{ProbeDetail, TaskRecord, TasksetDetail};
use model::run::ProbeRecord;
use model::sample::OwnColumn;
use serde::{Deserialize, Serialize};

/// What the paper's tables give of a quantity, ns.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// Values counted.
    pub n: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Smallest; `null` without values.
    pub min_ns: Option<i64>,
    /// Median, the lower of two in the middle.
    pub median_ns: Option<i64>,
    /// Largest observed.
    pub observed_max_ns: Option<i64>,
    /// Standard deviation of the sample (n − 1); 0 below two values.
    pub sd_ns: f64,
}

/// The columns of a job beside its sample, CLOCK_MONOTONIC ns where a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// When it began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// CPU time it used.
    pub cpu_ns: i64,
    /// Involuntary context switches.
    pub preemptions: i64,
}

/// Statistics of one task. They exclude the first jobs; the accounts include them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskFigures {
    /// Jobs that count.
    pub jobs: u64,
    /// Counted jobs that ended behind their deadline.
    pub late: u64,
    /// Releases that passed unserved: each misses its deadline too.
    pub missed: u64,
    /// Interval between two starts, of jobs that are neighbours in the file.
    pub period: Spread,
    /// Absolute deviation of that from the required period.
    pub jitter: Spread,
    /// From the start of a job to its end: the paper's response.
    pub response_from_start: Spread,
    /// From its release to its end: the response of scheduling theory.
    pub response: Spread,
    /// From its release to its start.
    pub start_latency: Spread,
    /// CPU time.
    pub cpu_time: Spread,
    /// Counted jobs that used less CPU time than their execution time: burning slots of wall-clock
    /// time allows it.
    pub under_executed: u64,
    /// Counted jobs with at least one involuntary context switch.
    pub preempted_jobs: u64,
    /// Involuntary context switches of counted jobs.
    pub preemptions: u64,
    /// The most of one job.
    pub most_preemptions: u64,
}

/// One task of the set: its requirements and its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredTask {
    /// The requirements.
    pub task: TaskRecord,
    /// Its CPU.
    pub cpu: u32,
    /// Period, ns.
    pub period_ns: u64,
    /// Required priority: response times are calculated by it.
    pub priority: u32,
    /// Jobs that were released: served, missed or lost.
    pub released: u64,
    /// Jobs that were served.
    pub served: u64,
    /// Jobs that were served, and found the ring full; none where that is not known.
    pub ring_lost: Option<u64>,
    /// The statistics.
    pub figures: TaskFigures,
}

/// The task that one probe record stands for; none if the run does not name it (older runs).
pub fn measured(
    record: &ProbeRecord,
    samples: &[Sample],
    columns: &[OwnColumn],
) -> Result<Option<MeasuredTask>, Error> {
    let ProbeDetail::Taskset(TasksetDetail { releases, task: Some(task) }) = &record.detail else {
        return Ok(None);
    };
    let jobs = jobs(record, samples.len(), columns)?;
    let period_ns = releases.period_ns;
    let asked = Asked {
        period_ns: period_ns as i64,
        deadline_ns: task.deadline_ns as i64,
        cost_ns: task.cost_ns as i64,
    };
    Ok(Some(MeasuredTask {
        task: task.clone(),
        cpu: record.cpu,
        period_ns,
        priority: record.policy_asked.priority,
        released: releases.served.released,
        served: record.samples,
        ring_lost: record.known_ring_lost(),
        figures: figures(samples, &jobs, asked, releases.served.missed),
    }))
}

/// The columns of a file's rows as jobs.
pub(crate) fn jobs(record: &ProbeRecord, rows: usize, columns: &[OwnColumn]) -> Result<Vec<Job>, Error> {
    let columns = Columns::new(columns, record, rows);
    let [starts, ends] = [columns.get("start_ns")?, columns.get("end_ns")?];
    let [cpu_times, preemptions] = [columns.get("cpu_ns")?, columns.get("preemptions")?];
    let job = |row: usize| Job {
        start_ns: starts[row],
        end_ns: ends[row],
        cpu_ns: cpu_times[row],
        preemptions: preemptions[row],
    };
    Ok((0..rows).map(job).collect())
}

/// The requirements of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Period, ns.
    pub period_ns: i64,
    /// Relative deadline, ns.
    pub deadline_ns: i64,
    /// Execution time, ns.
    pub cost_ns: i64,
}

/// The statistics of a task from the rows of its file; `missed` is the probe's own total.
pub fn figures(samples: &[Sample], jobs: &[Job], asked: Asked, missed: u64) -> TaskFigures {
    let rows: Vec<(&Sample, &Job)> = samples.iter().zip(jobs).collect();
    let counted: Vec<(&Sample, &Job)> = rows.iter().copied().filter(|(sample, _)| sample.counts()).collect();
    let of = |value: fn(&(&Sample, &Job)) -> i64| spread(counted.iter().map(value));
    let how_many =
        |is: &dyn Fn(&(&Sample, &Job)) -> bool| counted.iter().filter(|row| is(row)).count() as u64;
    // A job whose neighbour was lost to a full ring has no period.
    let neighbours = rows.windows(2).filter(|pair| pair[1].0.counts() && pair[1].0.seq == pair[0].0.seq + 1);
    let periods: Vec<i64> = neighbours.map(|pair| pair[1].1.start_ns - pair[0].1.start_ns).collect();
    TaskFigures {
        jobs: counted.len() as u64,
        late: how_many(&|(sample, _)| sample.value_ns > asked.deadline_ns),
        missed,
        period: spread(periods.iter().copied()),
        jitter: spread(periods.iter().map(|period| (period - asked.period_ns).abs())),
        response_from_start: of(|(_, job)| job.end_ns - job.start_ns),
        response: of(|(sample, _)| sample.value_ns),
        start_latency: of(|(sample, job)| job.start_ns - sample.t_ns),
        cpu_time: of(|(_, job)| job.cpu_ns),
        under_executed: how_many(&|(_, job)| job.cpu_ns < asked.cost_ns),
        preempted_jobs: how_many(&|(_, job)| job.preemptions > 0),
        preemptions: counted.iter().map(|(_, job)| job.preemptions.max(0) as u64).sum(),
        most_preemptions: counted.iter().map(|(_, job)| job.preemptions.max(0) as u64).max().unwrap_or(0),
    }
}

/// Mean and deviation in one pass (B. P. Welford, Technometrics 4(3), 1962), which keeps digits
/// where a sum of squares loses them.
pub(crate) fn spread(values: impl Iterator<Item = i64>) -> Spread {
    let (mut spread, mut squares) = (Spread::default(), 0.0);
    let mut sorted: Vec<i64> = values.collect();
    sorted.sort_unstable();
    for &value in &sorted {
        spread.n += 1;
        let off = value as f64 - spread.mean_ns;
        spread.mean_ns += off / spread.n as f64;
        squares += off * (value as f64 - spread.mean_ns);
    }
    spread.min_ns = sorted.first().copied();
    spread.median_ns = sorted.get(sorted.len().saturating_sub(1) / 2).copied();
    spread.observed_max_ns = sorted.last().copied();
    if spread.n > 1 {
        spread.sd_ns = (squares / (spread.n - 1) as f64).sqrt();
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::sample::flag;
    use proptest::prelude::*;

    const ASKED: Asked = Asked { period_ns: 40, deadline_ns: 40, cost_ns: 10 };

    fn row(seq: u64, start_ns: i64, end_ns: i64, cpu_ns: i64, preemptions: i64) -> (Sample, Job) {
        let t_ns = seq as i64 * 40;
        let flags = if seq == 0 { flag::FIRST } else { 0 };
        let sample = Sample { t_ns, value_ns: end_ns - t_ns, seq, missed: 0, flags };
        (sample, Job { start_ns, end_ns, cpu_ns, preemptions })
    }

    fn of(rows: &[(Sample, Job)], missed: u64) -> TaskFigures {
        let (samples, jobs): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
        figures(&samples, &jobs, ASKED, missed)
    }

    #[test]
    fn both_metrics_of_a_job_that_waited_before_it_began() {
        // The paper's third task: it waits 8 for the two above it and is preempted once by each of
        // them.
        let stats = of(&[row(0, 8, 29, 10, 3), row(1, 48, 69, 10, 3), row(2, 89, 109, 9, 2)], 0);
        assert_eq!((stats.jobs, stats.late, stats.missed), (2, 0, 0));
        assert_eq!(
            (stats.response.observed_max_ns, stats.response_from_start.observed_max_ns),
            (Some(29), Some(21))
        );
        assert_eq!((stats.start_latency.min_ns, stats.start_latency.observed_max_ns), (Some(8), Some(9)));
        // Period and jitter of a counted job reach back to the first, which is itself not counted.
        assert_eq!(
            (stats.period.n, stats.period.min_ns, stats.period.observed_max_ns),
            (2, Some(40), Some(41))
        );
        assert_eq!(stats.jitter.observed_max_ns, Some(1));
        assert_eq!((stats.preempted_jobs, stats.preemptions, stats.most_preemptions), (2, 5, 3));
        assert_eq!(stats.under_executed, 1);
    }

    #[test]
    fn behind_the_deadline_is_late_and_a_hole_has_no_period() {
        let stats = of(&[row(0, 0, 10, 10, 0), row(1, 40, 80, 10, 0), row(3, 120, 161, 10, 0)], 1);
        assert_eq!((stats.late, stats.missed), (1, 1));
        assert_eq!(stats.period.n, 1);
    }

    #[test]
    fn nothing_measured_says_nothing() {
        let stats = of(&[], 7);
        assert_eq!((stats.jobs, stats.response.n, stats.response.min_ns, stats.missed), (0, 0, None, 7));
    }

    proptest! {
        #[test]
        fn mean_and_deviation_are_those_of_the_definition(values in proptest::collection::vec(-1_000_000i64..1_000_000, 2..50)) {
            let stats = spread(values.iter().copied());
            let n = values.len() as f64;
            let mean = values.iter().sum::<i64>() as f64 / n;
            let variance = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert!((stats.mean_ns - mean).abs() < 1e-3);
            prop_assert!((stats.sd_ns - variance.sqrt()).abs() < 1e-3);
            prop_assert_eq!(stats.min_ns, values.iter().min().copied());
            prop_assert_eq!(stats.observed_max_ns, values.iter().max().copied());
            let below = values.iter().filter(|&&value| Some(value) < stats.median_ns).count();
            let above = values.iter().filter(|&&value| Some(value) > stats.median_ns).count();
            prop_assert!(below * 2 < values.len() && above * 2 <= values.len());
        }
    }
}
