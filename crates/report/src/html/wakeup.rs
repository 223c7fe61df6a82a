//! Wake-up latency: the table, exceedances of round thresholds, and two charts a CPU.

use analysis::distribution::Distribution;
use minijinja::{Value, context};
use model::sample::ProbeKind;
use serde::Serialize;

use super::windows::{
    CHARTS, HISTOGRAMS, LISTED, curves, known_quantiles, list, of, rows, shared, style, worst_cpus,
};
use super::{chart, value};
use crate::svg::{Limit, Line, Tail, exceedance, histogram, linear};
use crate::{Document, format};

/// Lines of the latency plot: as many as there are hues.
const LINES: usize = 8;
/// Thresholds shown side by side.
const THRESHOLDS: usize = 7;

pub(super) fn figures(document: &Document) -> Value {
    let windows = of(document, ProbeKind::Wakeup);
    let (listed, unlisted) = worst_cpus(&windows, LISTED);
    let (drawn, undrawn) = worst_cpus(&windows, CHARTS);
    let (whole, _) = worst_cpus(&windows, HISTOGRAMS);
    let shown: Vec<&Distribution> = windows.iter().copied().filter(|d| listed.contains(&d.cpu)).collect();
    let names = known_quantiles(&windows);
    let period_ns = document.run.probes.iter().find_map(model::run::ProbeRecord::period_ns);
    context! {
        rows => value(&rows(document, &shown, &names)),
        shared => shared(&windows),
        quantiles => names.iter().map(|&p| format::quantile_name(p)).collect::<Vec<_>>(),
        tail => value(&tail(document, &shown)),
        unlisted => list(&unlisted),
        undrawn => list(&undrawn),
        period_ns => period_ns,
        plot => plot(document, &windows),
        charts => drawn.iter().map(|&cpu| charts(document, &windows, cpu, whole.contains(&cpu))).collect::<Vec<_>>(),
    }
}

/// The exceedance of one CPU's wake-ups; `key` begins its id.
pub(super) fn exceedance_of(
    document: &Document,
    windows: &[&Distribution],
    cpu: u32,
    key: &str,
) -> Option<String> {
    let curves = curves(document, windows, cpu, |d| d.n as f64);
    let title = format!("Wake-up latency on CPU {cpu}");
    exceedance(&format!("{key}{cpu}"), &title, "wake-up latency", Tail::Share, &curves, limit(document))
}

fn charts(document: &Document, windows: &[&Distribution], cpu: u32, whole: bool) -> Value {
    let curves = curves(document, windows, cpu, |d| d.n as f64);
    let title = format!("Wake-up latency on CPU {cpu}");
    context! {
        cpu => cpu,
        histogram => chart(histogram(&format!("wh{cpu}"), &title, "wake-up latency", &curves).filter(|_| whole)),
        exceedance => chart(exceedance_of(document, windows, cpu, "we")),
    }
}

/// The release jitter that the task set of the guarantee tolerates.
fn limit(document: &Document) -> Option<Limit<'static>> {
    let at_ns = document.guarantee.tolerated_ns.filter(|_| document.guarantee.evidence.is_some())? as f64;
    Some(Limit { at_ns, label: "tolerated jitter" })
}

/// The community's plot: a line a CPU, of the disturbed phase where there is one.
fn plot(document: &Document, windows: &[&Distribution]) -> Value {
    let phases = &document.run.phases;
    let measured = |name: &str| windows.iter().any(|d| d.phase == name && !d.by_us.is_empty());
    let candidates = phases.iter().filter(|phase| measured(&phase.name));
    let Some(phase) = candidates.clone().find(|phase| phase.disturbed).or_else(|| candidates.clone().next())
    else {
        return Value::from(());
    };
    let here: Vec<&Distribution> = windows.iter().copied().filter(|d| d.phase == phase.name).collect();
    let (drawn, undrawn) = worst_cpus(&here, LINES);
    let mut here: Vec<&Distribution> = here.into_iter().filter(|d| drawn.contains(&d.cpu)).collect();
    here.sort_by_key(|d| (std::cmp::Reverse(d.observed_max_ns), d.cpu));
    here.truncate(LINES);
    here.sort_by_key(|d| (d.cpu, d.thread));
    let shared = shared(&here);
    let line = |d: &'_ Distribution, bins| Line {
        label: if shared { format!("CPU {} thread {}", d.cpu, d.thread) } else { format!("CPU {}", d.cpu) },
        bins,
        n: d.n,
        max_ns: d.observed_max_ns.unwrap_or(0),
    };
    let lines: Vec<Line<'_>> = here.iter().map(|d| line(d, &d.by_us[..])).collect();
    context! {
        svg => chart(linear("wl", "Latency plot", "wake-up latency", &lines)),
        phase => phase.name.as_str(),
        undrawn => list(&undrawn),
    }
}

/// Exceedances of the thresholds at which something happens: from the last that nearly all samples
/// reach to the first that none does.
#[derive(Debug, Serialize)]
struct TailTable<'a> {
    thresholds_ns: Vec<i64>,
    rows: Vec<TailRow<'a>>,
}

#[derive(Debug, Serialize)]
struct TailRow<'a> {
    phase: &'a str,
    style: usize,
    cpu: u32,
    thread: u32,
    cells: Vec<Option<&'a stats::sampled::Exceedance>>,
}

fn tail<'a>(document: &Document, windows: &[&'a Distribution]) -> TailTable<'a> {
    let mut all: Vec<i64> = windows.iter().flat_map(|d| &d.exceedances).map(|e| e.threshold_ns).collect();
    all.sort_unstable();
    all.dedup();
    let at = |threshold_ns: i64| {
        windows.iter().flat_map(|d| &d.exceedances).filter(move |e| e.threshold_ns == threshold_ns)
    };
    let informative = |t: &i64| at(*t).any(|e| e.count > 0) && at(*t).any(|e| e.share < 0.999);
    let mut thresholds_ns: Vec<i64> = all.iter().copied().filter(informative).collect();
    let beyond = all.iter().copied().find(|t| at(*t).all(|e| e.count == 0));
    thresholds_ns.extend(beyond);
    let surplus = thresholds_ns.len().saturating_sub(THRESHOLDS);
    thresholds_ns.drain(..surplus);
    let cells = |d: &'a Distribution| {
        let cell = |t: &i64| d.exceedances.iter().find(|e| e.threshold_ns == *t);
        thresholds_ns.iter().map(cell).collect()
    };
    let rows = windows
        .iter()
        .map(|d| TailRow {
            phase: &d.phase,
            style: style(document, &d.phase),
            cpu: d.cpu,
            thread: d.thread,
            cells: cells(d),
        })
        .collect();
    TailTable { thresholds_ns, rows }
}
