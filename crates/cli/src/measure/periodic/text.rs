//! The tables of `measure periodic`: least, mean, most and deviation of each quantity, as the paper's figures plot them.

use super::{Measured, PeriodicArgs, period};
use crate::measure::table::{ending, table};
use analysis::peaks::{Peaks, Period};
use analysis::periodic::{Drift, Figure, Jobs};
use model::run::{JobRecord, ProbeRecord};
use report::format;
use std::fmt::Write;

/// Everything that is printed.
pub(super) fn text(args: &PeriodicArgs, measured: &[Measured]) -> String {
    let mut text = String::new();
    for one in measured {
        let victim = one.outcome.run.probes.first().zip(one.jobs.first().and_then(Option::as_ref));
        let Some((record, jobs)) = victim else { continue };
        text += &heading(args, one, record);
        text += &quantities(jobs);
        text += &remarks(one, record, jobs);
        text += &ending(&one.outcome);
        if measured.len() > 1 {
            text += "\n";
        }
    }
    if let [same, own] = measured
        && let (Some(Some(same)), Some(Some(own))) = (same.jobs.first(), own.jobs.first())
    {
        text += &comparison(same, own);
    }
    text
}

fn heading(args: &PeriodicArgs, measured: &Measured, record: &ProbeRecord) -> String {
    let policy = &record.policy_effective;
    let job = record.jobs.as_ref();
    let time = |ns: u64| format::ns(ns as i64);
    let how = match policy.reservation {
        Some(one) => format!(
            "{} with {} in {} a period of {}",
            policy.name,
            time(one.runtime_ns),
            time(one.deadline_ns),
            time(one.period_ns)
        ),
        None => format!("{} {}", policy.name, policy.priority),
    };
    let on = record
        .cpus
        .as_ref()
        .map_or_else(|| format!("CPU {}", record.cpu), |cpus| format!("any of CPUs {cpus}"));
    let copies = match measured.outcome.run.probes.len() {
        1 => "alone".to_owned(),
        all => format!("the first of {all} at once, {} files", measured.files.name()),
    };
    let (work, input) = job.map_or(("", ""), |job| (&job.work, &job.input));
    let begun = job.map_or("", |job| &job.wake);
    let every = format::ns(period(args).as_nanos() as i64);
    format!("{work} every {every}, input from {input}, begun by the {begun}, {copies}\n{how}, on {on}\n")
}

/// The rows of one job: name, figure, whether it is a time.
fn rows(jobs: &Jobs) -> Vec<(String, Figure, bool)> {
    let times = [
        ("execution time", jobs.execution_ns),
        ("CPU time", jobs.cpu_ns),
        ("off its CPU", jobs.off_cpu_ns),
        ("response time", jobs.response_ns),
        ("wake-up latency", jobs.wake_up_ns),
    ];
    let counters = jobs.counters.iter().map(|(name, figure)| (name.replace('_', " "), *figure, false));
    times.into_iter().map(|(name, figure)| (name.to_owned(), figure, true)).chain(counters).collect()
}

fn quantities(jobs: &Jobs) -> String {
    let rows = rows(jobs).into_iter().map(|(name, figure, time)| {
        let whole = |value: Option<i64>| number(value.map(|value| value as f64), time);
        vec![
            name,
            figure.n.to_string(),
            whole(figure.min),
            number(figure.mean, time),
            whole(figure.observed_max),
            number(figure.std, time),
            if figure.refused > 0 { figure.refused.to_string() } else { String::new() },
        ]
    });
    table(&["per job", "n", "min", "mean", "observed max", "std", "refused"], rows.collect())
}

fn comparison(same: &Jobs, own: &Jobs) -> String {
    let rows = rows(same).into_iter().zip(rows(own)).map(|((name, same, time), (_, own, _))| {
        let ratio = own.mean.zip(same.mean).filter(|(_, same)| *same != 0.0).map(|(own, same)| own / same);
        let max = |figure: &Figure| number(figure.observed_max.map(|value| value as f64), time);
        vec![
            name,
            number(same.mean, time),
            max(&same),
            number(own.mean, time),
            max(&own),
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
        ]
    });
    let head = ["per job", "same: mean", "observed max", "own: mean", "observed max", "own / same"];
    format!("same files and own files beside each other, the victim's jobs\n{}", table(&head, rows.collect()))
}

/// A time with its unit, or a count; a dash where there is none.
fn number(value: Option<f64>, time: bool) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if time => format::ns(value.round() as i64),
        Some(value) => format::short(value),
    }
}

fn remarks(measured: &Measured, record: &ProbeRecord, jobs: &Jobs) -> String {
    let mut text = format!(
        "releases {}: served {}, missed {}, lost {}; the victim ended on another CPU {} times\n",
        record.released, record.samples, record.missed, record.ring_lost, jobs.moved
    );
    if let Some(job) = &record.jobs {
        text += &outputs(measured, job);
    }
    if let Some(drift) = &jobs.drift {
        text += &drift_line(drift);
    }
    text += &peak_lines(&jobs.peaks);
    let refused: u64 = jobs.counters.iter().map(|(_, figure)| figure.refused).sum();
    if refused > 0 {
        text +=
            "refused: the counter shared the PMU with others during the job; ask for fewer with --counters\n";
    }
    text
}

fn outputs(measured: &Measured, job: &JobRecord) -> String {
    let all = measured.outcome.run.probes.iter().filter_map(|record| record.jobs.as_ref());
    let (compared, wrong) = all
        .fold((0, 0), |(compared, wrong), job| (compared + job.outputs_compared, wrong + job.outputs_wrong));
    let mut text =
        format!("outputs of all copies compared with the expected ones: {compared}, wrong {wrong}\n");
    if let (Some(asked), Some([least, median, most])) = (job.busy_asked_ns, job.busy_found_ns) {
        let time = |ns: u64| format::ns(ns as i64);
        let _ = writeln!(
            text,
            "busy work of {} verified before the window: {}, {}, {} (min, median, max of CPU time)",
            time(asked),
            time(least),
            time(median),
            time(most)
        );
    }
    let sources = job.counters.iter().map(|one| format!("{} ({})", one.name, one.source));
    if !job.counters.is_empty() {
        let _ = writeln!(
            text,
            "counters: {}; {} read in user space",
            sources.collect::<Vec<_>>().join(", "),
            job.counters_in_user_space
        );
    }
    text
}

fn drift_line(drift: &Drift) -> String {
    let told = drift.us_per_min.abs() > drift.spread_us_per_min;
    let mut text = format!(
        "wake-up drift {:+.3} us/min (half of the slopes +-{:.3}), {} at the end{}\n",
        drift.us_per_min,
        drift.spread_us_per_min,
        format::ns(drift.end_ns),
        if told { "" } else { ": none told" },
    );
    let std = drift.difference_ns.std.unwrap_or(0.0).round() as i64;
    let _ = write!(text, "first difference of wake-up dates: std {}", format::ns(std));
    if let Some(correlation) = drift.next_correlation {
        let _ = write!(text, ", correlation with the next {correlation:+.2}");
    }
    text + "\n"
}

fn peak_lines(peaks: &Peaks) -> String {
    let told = |period: &Period| {
        format!(
            "{} every {} from {} on (agreement {:.2})",
            period.n,
            format::ns(period.period_ns),
            format::ns(period.from),
            period.agreement
        )
    };
    let all = peaks
        .period
        .as_ref()
        .map_or_else(|| format!("{} from {} on, without a period", peaks.n, format::ns(peaks.from)), told);
    let large = peaks
        .large
        .as_ref()
        .map_or_else(String::new, |large| format!("\nlarge ones among them: {}", told(large)));
    format!("peaks of the execution time: {all}{large}\n")
}
