//! The numbers: wake-up latency and noise by phase and CPU, events by class and phase.

use analysis::distribution::Distribution;
use model::EventClass;
use model::sample::ProbeKind;

use super::layout::Page;
use crate::distribution::{maximum, quantile};
use crate::pooled::{Pooled, cost_probe, pooled};
use crate::{Document, format, heading};

/// Rows of a table before it is cut; the page and the JSON have them all.
const ROWS: usize = 24;

pub(super) fn wakeup(page: &mut Page, document: &Document) {
    let windows = of(document, ProbeKind::Wakeup);
    if windows.is_empty() {
        if heading::is_measurement(&document.run) {
            return;
        }
        page.heading("WAKE-UP LATENCY");
        return page.item("  ", "not measured in this run");
    }
    page.heading(&format!("WAKE-UP LATENCY   {}", conditions(document, ProbeKind::Wakeup)));
    let (first, name) = named(document);
    let rows: Vec<Vec<String>> = windows
        .iter()
        .map(|&d| {
            vec![
                name(d),
                d.cpu.to_string(),
                format::count(d.n),
                format::count(d.missed),
                time(quantile(d, 0.5)),
                time(quantile(d, 0.99)),
                time(quantile(d, 0.999)),
                time(maximum(d)),
            ]
        })
        .collect();
    let header = [first, "CPU", "n", "missed", "p50", "p99", "p99.9", "observed max"];
    cut(page, 1, &header, &rows);
    page.item(
        "  ",
        "missed releases are charged with the lateness they had; - is not estimable: fewer than ten effective samples above",
    );
}

pub(super) fn noise(page: &mut Page, document: &Document) {
    let windows = of(document, ProbeKind::Noise);
    if windows.is_empty() {
        if heading::is_measurement(&document.run) {
            return;
        }
        page.heading("NOISE");
        return page.item("  ", "not measured in this run");
    }
    page.heading(&format!("NOISE   {}", conditions(document, ProbeKind::Noise)));
    let (first, name) = named(document);
    let rows: Vec<Vec<String>> = windows
        .iter()
        .map(|d| {
            let stolen = d.stolen.as_ref();
            let unexplained = stolen.and_then(|stolen| stolen.unexplained);
            vec![
                name(d),
                d.cpu.to_string(),
                format::count(d.n),
                stolen.map_or_else(dash, |stolen| format::share(stolen.share)),
                time(quantile(d, 0.5)),
                time(quantile(d, 0.99)),
                time(d.observed_max_ns),
                unexplained.map_or_else(dash, |gaps| format::count(gaps.count)),
            ]
        })
        .collect();
    let header = [first, "CPU", "gaps", "stolen", "p50", "p99", "longest seen", "unexplained"];
    cut(page, 1, &header, &rows);
    page.item("  ", &format!("the loop ran: {}; its pauses are not counted", loop_time(document, &windows)));
}

/// The first column, which distinguishes windows: the phase of an assessment, the thread of a
/// measurement.
fn named(document: &Document) -> (&'static str, fn(&Distribution) -> String) {
    if heading::is_measurement(&document.run) {
        ("thread", |d| d.thread.to_string())
    } else {
        ("phase", |d| d.phase.clone())
    }
}

/// How long the loop ran in each window: `idle-before 9.98 s, …`, or the shortest and longest where
/// CPUs differ.
fn loop_time(document: &Document, windows: &[&Distribution]) -> String {
    let phase = |name: &str| {
        let times = || windows.iter().filter(|d| d.phase == name).map(|d| d.duration_ns);
        let (least, most) = (format::span(times().min()?), format::span(times().max()?));
        Some(if least == most { format!("{name} {most}") } else { format!("{name} {least} to {most} a CPU") })
    };
    document.run.phases.iter().filter_map(|p| phase(&p.name)).collect::<Vec<_>>().join(", ")
}

pub(super) fn events(page: &mut Page, document: &Document) {
    let Some(probe) = cost_probe(&document.analysis) else {
        page.heading("EVENTS ON THE MEASURED CPUS");
        let why = match &document.run.trace {
            None => "no trace was recorded: who interrupts is not known".to_owned(),
            Some(_) => format!(
                "nothing was measured beside the trace; what it shows: stillcore trace explain {}",
                document.dir
            ),
        };
        return page.item("  ", &why);
    };
    let when = match probe {
        ProbeKind::Noise => "while the busy loop ran",
        _ => "while the periodic task slept and woke",
    };
    page.heading(&format!("EVENTS ON THE MEASURED CPUS {when}, per CPU and second"));
    let phases: Vec<&str> = document.run.phases.iter().map(|phase| phase.name.as_str()).collect();
    let in_phases =
        |class| phases.iter().map(|phase| pooled(&document.analysis, phase, Some(probe), class)).collect();
    let classes: Vec<Vec<Pooled>> = EventClass::ALL.iter().map(|&class| in_phases(class)).collect();
    let (seen, unseen): (Vec<_>, Vec<_>) =
        classes.into_iter().partition(|pools| pools.iter().any(|pool| pool.observable || pool.count > 0));
    let mut header = vec!["class"];
    header.extend(&phases);
    header.extend(["stolen/s, worst", "longest"]);
    let rows: Vec<Vec<String>> = seen.iter().map(|pools| event_row(pools)).collect();
    page.table(1, &header, &rows);
    let unseen: Vec<&str> = unseen
        .iter()
        .filter_map(|pools| pools.first())
        .filter(|pool| pool.class != EventClass::Unexplained)
        .map(|pool| pool.class.name())
        .collect();
    page.item("  ", "0 (<x): none seen, 95 % upper bound of the rate; self: what the probe itself causes");
    page.item("  ", "exception: page faults of the probe alone; faults of other tasks are not recorded");
    if seen.iter().flatten().any(|pool| !pool.observable) {
        page.item(
            "  ",
            "-: not observable in that phase; >=x: a lower bound, some windows could not see the class",
        );
    }
    if !unseen.is_empty() {
        page.item("  ", &format!("not observable in this run: {}", unseen.join(", ")));
    }
}

fn event_row(pools: &[Pooled]) -> Vec<String> {
    let mut row: Vec<String> = pools.first().map(|pool| pool.class.name().to_owned()).into_iter().collect();
    row.extend(pools.iter().map(rate));
    let stolen = pools.iter().map(Pooled::net_ns_per_s).fold(0.0, f64::max);
    let longest = pools.iter().map(|pool| pool.max_ns).max().unwrap_or(0);
    let or_dash = |value: f64, text: String| if value > 0.0 { text } else { dash() };
    row.push(or_dash(stolen, format::ns_f(stolen)));
    row.push(or_dash(longest as f64, format::ns(longest as i64)));
    row
}

/// A rate, or what nothing seen is worth.
fn rate(pool: &Pooled) -> String {
    match pool.zero_bound_per_s() {
        Some(bound) => format!("0 (<{})", format::rate_up(bound).trim_end_matches("/s")),
        None if pool.count == 0 => dash(),
        None if !pool.observable => format!(">={}", format::rate(pool.per_s()).trim_end_matches("/s")),
        None => format::rate(pool.per_s()).trim_end_matches("/s").to_owned(),
    }
}

fn cut(page: &mut Page, left: usize, header: &[&str], rows: &[Vec<String>]) {
    page.table(left, header, &rows[..rows.len().min(ROWS)]);
    if rows.len() > ROWS {
        page.item("  ", &format!("... {} more rows in the report", rows.len() - ROWS));
    }
}

fn of(document: &Document, probe: ProbeKind) -> Vec<&Distribution> {
    let mut windows: Vec<_> = document.analysis.distributions.iter().filter(|d| d.probe == probe).collect();
    let phase = |d: &Distribution| document.run.phases.iter().position(|phase| phase.name == d.phase);
    windows.sort_by_key(|d| (phase(d), d.cpu, d.thread));
    windows
}

/// `SCHED_FIFO 95, period 1.000 ms, 10.0 s a window`, from the probes' own records.
fn conditions(document: &Document, probe: ProbeKind) -> String {
    let records = document.run.probes.iter().filter(|record| record.probe() == probe);
    let mut policies: Vec<String> =
        records.clone().map(|r| crate::guarantee::policy(&r.policy_effective)).collect();
    policies.sort();
    policies.dedup();
    let mut parts = vec![policies.join(" / ")];
    let first = records.clone().next();
    parts.extend(
        first
            .and_then(model::run::ProbeRecord::period_ns)
            .map(|period| format!("period {}", format::ns(period as i64))),
    );
    parts.extend(
        first
            .and_then(|r| r.noise())
            .map(|noise| format!("gaps from {}", format::ns(noise.threshold_ns as i64))),
    );
    parts.extend(first.map(|r| format!("clock {}", r.counter)));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn time(value_ns: Option<i64>) -> String {
    value_ns.map_or_else(dash, format::ns)
}

fn dash() -> String {
    "-".to_owned()
}
