//! Results of a periodic probe's jobs: execution and response times, counters, wake-up drift,
//! periodic peaks.
//!
//! The questions are those of the ERTS 2022 paper: how long does a job take and how much of that
//! was it not on its CPU (Fig. 8), what did it cost in cache refills (Figs. 5, 9), does the date of
//! its wake-ups drift (Figs. 10 to 12), and do disturbances come back with a period (Figs. 6, 7).
//! The paper read the last two off its charts; here they are estimated.

mod drift;
mod over_time;

pub use drift::{Drift, drift};
pub use over_time::OverTime;

use attribution::Error;
use model::run::ProbeRecord;
use model::sample::OwnColumn;
use model::{Cpus, Sample};
use serde::{Deserialize, Serialize};
use stats::peaks::{Peaks, peaks};

/// One process that did jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number in the window; 0 is the victim.
    pub thread: u32,
    /// The CPU it was pinned to, or the first of those it might run on.
    pub cpu: u32,
    /// Where it might run, if not on one CPU alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Results of its jobs.
    pub jobs: Jobs,
    /// How they went over time, for charts: of the first processes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTime>,
}

/// Processes whose course over time is kept: every chart costs kilobytes.
const DRAWN: u32 = 8;

/// The results of one file of a periodic probe.
pub fn process(record: &ProbeRecord, samples: &[Sample], columns: &[OwnColumn]) -> Result<Process, Error> {
    let period_ns = record.period_ns().unwrap_or(0);
    let rows = rows(samples, columns);
    let missing =
        || model::Error::invalid(&record.file, "its columns", "those of a periodic probe, all of one length");
    let rows = rows.ok_or_else(missing)?;
    Ok(Process {
        thread: record.thread,
        cpu: record.cpu,
        cpus: record.cpus.clone(),
        jobs: conclude(&rows, samples, columns, period_ns),
        over_time: (record.thread < DRAWN).then(|| OverTime::of(&rows, period_ns)),
    })
}

/// Analyses one file of jobs. Warm-up is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Jobs {
    /// Jobs that count.
    pub n: u64,
    /// Clock from before the job to behind it, ns.
    pub execution_ns: Figure,
    /// CPU time of the thread in between, ns.
    pub cpu_ns: Figure,
    /// The one minus the other (Fig. 8), ns: the time that the job was off its CPU, and the cost of
    /// the stamps between the two clocks.
    pub off_cpu_ns: Figure,
    /// From the intended release to the end, ns.
    pub response_ns: Figure,
    /// From the intended release to the wake-up, ns.
    pub wake_up_ns: Figure,
    /// One entry per counter, by the name of its column without `counter_`.
    pub counters: Vec<(String, Figure)>,
    /// Jobs that ended on another CPU than the one before.
    pub moved: u64,
    /// How wake-ups move against the grid of nominal periods.
    pub drift: Option<Drift>,
    /// Peaks of the execution time that recur with a period.
    pub peaks: Peaks,
}

/// Least, mean, most and standard deviation (of the sample, n - 1).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Figure {
    /// Values.
    pub n: u64,
    /// Values that were refused: multiplexed or unreadable.
    pub refused: u64,
    /// Least; none without values.
    pub min: Option<i64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Largest that was observed.
    pub observed_max: Option<i64>,
    /// Standard deviation; none below two values.
    pub std: Option<f64>,
}

impl Figure {
    /// Of values; `refused` are those that are not among them.
    pub fn of(values: &[i64], refused: u64) -> Self {
        let n = values.len() as f64;
        // Two passes: values are large and their spread is small.
        let mean = values.iter().map(|&value| value as f64).sum::<f64>() / n;
        let squares: f64 = values.iter().map(|&value| (value as f64 - mean).powi(2)).sum();
        Self {
            n: values.len() as u64,
            refused,
            min: values.iter().min().copied(),
            mean: (!values.is_empty()).then_some(mean),
            observed_max: values.iter().max().copied(),
            std: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
        }
    }
}

/// One job that counts.
struct Row {
    number: i64,
    sample: Sample,
    wake_ns: i64,
    start_ns: i64,
    end_ns: i64,
    cpu_ns: i64,
    cpu: i64,
}

/// What a refused counter value is stored as.
const REFUSED: i64 = -1;
const COUNTER: &str = "counter_";

/// The jobs that count, of one file with its columns (`wake_ns`, `start_ns`, `end_ns`, `cpu_ns`,
/// `cpu`, `counter_*`). None where a column is missing or short: the file is not of a periodic
/// probe.
fn rows(samples: &[Sample], columns: &[OwnColumn]) -> Option<Vec<Row>> {
    let column = |name: &str| {
        let OwnColumn { values, .. } = columns.iter().find(|found| found.name == name)?;
        (values.len() == samples.len()).then_some(values)
    };
    let (wake, start, end) = (column("wake_ns")?, column("start_ns")?, column("end_ns")?);
    let (cpu_time, cpu) = (column("cpu_ns")?, column("cpu")?);
    let mut passed = 0i64;
    let mut rows = Vec::with_capacity(samples.len());
    for (index, sample) in samples.iter().enumerate() {
        passed = passed.saturating_add(i64::from(sample.missed));
        if sample.counts() {
            rows.push(Row {
                number: passed.saturating_add(sample.seq.min(i64::MAX as u64) as i64),
                sample: *sample,
                wake_ns: wake[index],
                start_ns: start[index],
                end_ns: end[index],
                cpu_ns: cpu_time[index],
                cpu: cpu[index],
            });
        }
    }
    Some(rows)
}

/// Their results. Columns of counters that are short are left out.
fn conclude(rows: &[Row], samples: &[Sample], columns: &[OwnColumn], period_ns: u64) -> Jobs {
    let figure = |value: fn(&Row) -> i64| Figure::of(&rows.iter().map(value).collect::<Vec<_>>(), 0);
    let counters = columns.iter().filter_map(|OwnColumn { name, values }| {
        let name = name.strip_prefix(COUNTER)?;
        let counted = samples.iter().zip(values).filter(|(sample, _)| sample.counts());
        let (good, refused): (Vec<i64>, Vec<i64>) =
            counted.map(|(_, value)| *value).partition(|value| *value != REFUSED);
        Some((name.to_owned(), Figure::of(&good, refused.len() as u64)))
    });
    let execution = |row: &Row| row.end_ns.saturating_sub(row.start_ns);
    let series: Vec<(i64, i64)> = rows.iter().map(|row| (row.start_ns, execution(row))).collect();
    Jobs {
        n: rows.len() as u64,
        execution_ns: figure(|row| row.end_ns.saturating_sub(row.start_ns)),
        cpu_ns: figure(|row| row.cpu_ns),
        off_cpu_ns: figure(|row| row.end_ns.saturating_sub(row.start_ns).saturating_sub(row.cpu_ns)),
        response_ns: figure(|row| row.sample.value_ns),
        wake_up_ns: figure(|row| row.wake_ns.saturating_sub(row.sample.t_ns)),
        counters: counters.collect(),
        moved: rows.windows(2).filter(|pair| pair[0].cpu != pair[1].cpu).count() as u64,
        drift: drift(&wake_ups(rows), period_ns),
        peaks: peaks(&series, period_ns),
    }
}

/// Number of the release and date of each wake-up.
fn wake_ups(rows: &[Row]) -> Vec<(i64, i64)> {
    rows.iter().map(|row| (row.number, row.wake_ns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;
    use model::probe::{PeriodicDetail, ProbeDetail, Releases};
    use model::sample::{ProbeKind, flag};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn figures_lie_between_their_extremes(values in prop::collection::vec(-1_000_000i64..1_000_000, 2..50)) {
            let figure = Figure::of(&values, 3);
            let (min, max) = (figure.min.unwrap() as f64, figure.observed_max.unwrap() as f64);
            let (mean, std) = (figure.mean.unwrap(), figure.std.unwrap());
            prop_assert!(min <= mean + 1e-6 && mean <= max + 1e-6);
            // Popoviciu's inequality, for n - 1.
            let n = values.len() as f64;
            prop_assert!(std <= (max - min) / 2.0 * (n / (n - 1.0)).sqrt() + 1e-6);
        }
    }

    #[test]
    fn warm_up_and_refused_values_stay_out() {
        let sample =
            |seq: u64, flags| Sample { t_ns: seq as i64 * 1000, value_ns: 600, seq, missed: 0, flags };
        let samples = [sample(0, flag::FIRST), sample(1, 0), sample(2, 0), sample(3, 0)];
        let column =
            |name: &str, values: [i64; 4]| OwnColumn { name: name.to_owned(), values: values.to_vec() };
        let columns = [
            column("wake_ns", [0, 1_010, 2_020, 3_030]),
            column("start_ns", [0, 1_100, 2_100, 3_100]),
            column("end_ns", [9_000, 1_600, 2_600, 3_600]),
            column("cpu_ns", [1, 400, 450, 500]),
            column("cpu", [0, 1, 1, 2]),
            column("counter_faults", [99, 3, REFUSED, 5]),
        ];
        let releases = Releases { period_ns: 1000, ..Releases::default() };
        let detail = ProbeDetail::Periodic(PeriodicDetail { releases, jobs: None });
        let record = ProbeRecord { detail, ..record(ProbeKind::Periodic) };
        let result = process(&record, &samples, &columns).unwrap();
        let jobs = result.jobs;
        assert_eq!((jobs.n, jobs.moved), (3, 1));
        assert_eq!(jobs.execution_ns.observed_max, Some(500));
        assert_eq!((jobs.off_cpu_ns.min, jobs.off_cpu_ns.observed_max), (Some(0), Some(100)));
        assert_eq!((jobs.wake_up_ns.min, jobs.wake_up_ns.observed_max), (Some(10), Some(30)));
        let (name, faults) = &jobs.counters[0];
        assert_eq!((name.as_str(), faults.n, faults.refused, faults.mean), ("faults", 2, 1, Some(4.0)));
        let over_time = result.over_time.unwrap();
        assert_eq!(over_time.execution_ns.iter().map(|slot| slot.most).max(), Some(500));
        assert_eq!(over_time.wake_up_off_ns.iter().map(|slot| slot.most).max(), Some(20));
        assert_eq!(over_time.difference_ns.len(), 2);
        let later = ProbeRecord { thread: DRAWN, ..record.clone() };
        assert!(process(&later, &samples, &columns).unwrap().over_time.is_none());
        assert!(process(&record, &samples, &columns[1..]).is_err());
        let empty = columns.map(|column| OwnColumn { values: Vec::new(), ..column });
        assert!(process(&record, &[], &empty).unwrap().jobs.drift.is_none());
    }
}
