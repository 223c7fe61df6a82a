//! What `measure periodic` prints: the tables of the report; for two measurements, their victims
//! beside each other (ERTS 2022, Figs. 4 and 5).

use super::Measured;
use crate::measure::table::{found, table};
use analysis::periodic::{Figure, Jobs};
use report::format;

/// Everything that is printed.
pub(super) fn text(measured: &[Measured]) -> String {
    let mut text = measured.iter().map(|one| found(&one.outcome)).collect::<Vec<_>>().join("\n");
    if let [same, own] = measured
        && let (Some(same), Some(own)) = (victim(same), victim(own))
    {
        text += "\n";
        text += &comparison(same, own);
    }
    text
}

fn victim(measured: &Measured) -> Option<&Jobs> {
    measured.outcome.document.analysis.periodic.first().map(|process| &process.jobs)
}

/// The rows of one job: name, statistic, whether it is a time.
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
