//! Sentences about periodic jobs, the same in text and page; ASCII.

use crate::precision::{Precision, Quantity as Of};
use crate::{format, guarantee};
use analysis::periodic::{Drift, Figure, Jobs, Process};
use model::Run;
use model::run::{JobRecord, ProbeRecord};
use stats::peaks::{Peaks, Period};

/// The record of a process, and what its jobs say.
pub(crate) fn processes<'a>(
    run: &'a Run,
    processes: &'a [Process],
) -> impl Iterator<Item = (&'a ProbeRecord, &'a Process)> {
    let record = |process: &'a Process| {
        run.probes.iter().find(|record| record.jobs().is_some() && record.thread == process.thread)
    };
    processes.iter().filter_map(move |process| Some((record(process)?, process)))
}

/// One quantity of a job.
pub(crate) struct Quantity {
    pub(crate) name: String,
    /// Where its values came from, for counters.
    pub(crate) source: Option<String>,
    pub(crate) figure: Figure,
    /// Whether it is a time in ns; else a count.
    pub(crate) time: bool,
}

/// All quantities of one process, times first.
pub(crate) fn quantities(record: &ProbeRecord, jobs: &Jobs) -> Vec<Quantity> {
    let times = [
        ("execution time", jobs.execution_ns),
        ("CPU time", jobs.cpu_ns),
        ("off its CPU", jobs.off_cpu_ns),
        ("response time", jobs.response_ns),
        ("wake-up latency", jobs.wake_up_ns),
    ];
    let times =
        times.map(|(name, figure)| Quantity { name: name.to_owned(), source: None, figure, time: true });
    let known = record.jobs().into_iter().flat_map(|job| &job.counters);
    let source = |name: &str| {
        let named = |one: &&model::run::JobCounter| one.name.split('=').next() == Some(name);
        known.clone().find(named).map(|one| one.source.clone())
    };
    let counters = jobs.counters.iter().map(|(name, figure)| Quantity {
        name: name.replace('_', " "),
        source: source(name),
        figure: *figure,
        time: false,
    });
    times.into_iter().chain(counters).collect()
}

/// `attitude every 125.0 ms, input from pipe, begun by the timer, alone`.
pub(crate) fn what(run: &Run, record: &ProbeRecord) -> String {
    let all = run.probes.iter().filter(|one| one.jobs().is_some()).count();
    let job = record.jobs();
    let files = if job.is_some_and(|job| job.own_files) { "own" } else { "same" };
    let copies =
        if all == 1 { "alone".to_owned() } else { format!("the first of {all} at once, {files} files") };
    let (work, input, wake) =
        job.map_or(("", "", ""), |job| (job.work.as_str(), job.input.as_str(), job.wake.as_str()));
    let every = format::ns(record.period_ns().unwrap_or(0) as i64);
    format!("{work} every {every}, input from {input}, begun by the {wake}, {copies}")
}

/// `SCHED_FIFO, priority 80, on CPU 3`.
pub(crate) fn how(record: &ProbeRecord) -> String {
    format!("{}, on {}", guarantee::policy(&record.policy_effective), place(record))
}

/// `CPU 3`, `any of CPUs 0-3`.
pub(crate) fn place(record: &ProbeRecord) -> String {
    let any = |cpus: &model::Cpus| format!("any of CPUs {cpus}");
    record.cpus.as_ref().map_or_else(|| format!("CPU {}", record.cpu), any)
}

/// What else is to be said of a process, a sentence each: releases, outputs, drift, peaks,
/// counters.
pub(crate) fn remarks(run: &Run, record: &ProbeRecord, jobs: &Jobs) -> Vec<String> {
    let mut sentences = vec![format!(
        "releases {}: served {}, missed {}, lost {}; it ended on another CPU than the job before {} times",
        format::count(record.released()),
        format::count(record.samples),
        format::count(record.missed()),
        if run.has_ended() { format::count(record.ring_lost) } else { "not known".to_owned() },
        format::count(jobs.moved)
    )];
    sentences.extend(record.jobs().into_iter().flat_map(|job| outputs(run, job)));
    sentences.extend(jobs.drift.iter().map(drift));
    sentences.push(peaks(&jobs.peaks));
    let refused: u64 = jobs.counters.iter().map(|(_, figure)| figure.refused).fold(0, u64::saturating_add);
    if refused > 0 {
        sentences.push(
            "refused: the counter shared the PMU with others during the job; ask for fewer with --counters"
                .to_owned(),
        );
    }
    sentences
}

fn outputs(run: &Run, job: &JobRecord) -> Vec<String> {
    let all = run.probes.iter().filter_map(ProbeRecord::jobs);
    // Numbers of a file: any that it holds.
    let (compared, wrong) = all.fold((0u64, 0u64), |(compared, wrong), job| {
        (compared.saturating_add(job.outputs_compared), wrong.saturating_add(job.outputs_wrong))
    });
    let mut sentences = vec![format!(
        "outputs of all copies compared with the expected ones: {}, wrong {}",
        format::count(compared),
        format::count(wrong)
    )];
    if let (Some(asked), Some(found)) = (job.busy_asked_ns, job.busy_found_ns) {
        let time = |ns: u64| format::ns(ns as i64);
        let [least, median, most] = [found.min, found.median, found.max].map(time);
        sentences.push(format!(
            "busy work of {} verified before the window: {least}, {median}, {most} (min, median, max of CPU time)",
            time(asked)
        ));
    }
    let sources: Vec<String> =
        job.counters.iter().map(|one| format!("{} ({})", one.name, one.source)).collect();
    if !sources.is_empty() {
        let user = job.counters_in_user_space;
        sentences.push(format!("counters: {}; {user} read in user space", sources.join(", ")));
    }
    sentences
}

fn drift(drift: &Drift) -> String {
    let seen = drift.us_per_min.abs() > drift.spread_us_per_min;
    let std = drift.difference_ns.std.unwrap_or(0.0).round() as i64;
    let next = drift.next_correlation;
    let next = next.map_or_else(String::new, |next| format!(", correlation with the next {next:+.2}"));
    let spread = drift.spread_us_per_min;
    let precision = Precision::within(spread);
    let slope = if seen {
        format!(
            "wake-up drift {} us/min (half of the slopes +-{})",
            precision.signed(drift.us_per_min, Of::Number),
            precision.text(spread, Of::Number)
        )
    } else {
        format!("no wake-up drift detected (half of the slopes +-{} us/min)", format::bound(spread))
    };
    format!(
        "{slope}, {} at the end; first difference of wake-up dates: std {}{next}",
        format::ns(drift.end_ns),
        format::ns(std),
    )
}

fn peaks(peaks: &Peaks) -> String {
    let describe = |period: &Period| {
        format!(
            "{} every {} from {} on (agreement {:.2})",
            period.n,
            format::ns(period.period_ns),
            format::ns(period.from),
            period.agreement
        )
    };
    let without = || format!("{} from {} on, without a period", peaks.n, format::ns(peaks.from));
    let all = peaks.period.as_ref().map_or_else(without, describe);
    let large = peaks
        .large
        .as_ref()
        .map_or_else(String::new, |large| format!("; large ones among them: {}", describe(large)));
    format!("peaks of the execution time: {all}{large}")
}
