//! Wake-up latency: the table, exceedances of round thresholds, and two charts a CPU.

use analysis::shape::Distribution;
use minijinja::{Value, context};
use model::sample::ProbeKind;
use serde::Serialize;

use super::windows::{CHARTS, LISTED, curves, known_quantiles, list, of, rows, shared, style, worst_cpus};
use super::{chart, value};
use crate::svg::{Tail, exceedance, histogram};
use crate::{Document, format};

/// Thresholds shown side by side.
const THRESHOLDS: usize = 7;

pub(super) fn figures(document: &Document) -> Value {
    let windows = of(document, ProbeKind::Wakeup);
    let (listed, unlisted) = worst_cpus(&windows, LISTED);
    let (drawn, undrawn) = worst_cpus(&windows, CHARTS);
    let shown: Vec<&Distribution> = windows.iter().copied().filter(|d| listed.contains(&d.cpu)).collect();
    let names = known_quantiles(&windows);
    let period_ns = document.run.probes.iter().find_map(|record| record.period_ns);
    context! {
        rows => value(&rows(document, &shown, &names)),
        shared => shared(&windows),
        quantiles => names.iter().map(|&p| format::quantile_name(p)).collect::<Vec<_>>(),
        tail => value(&tail(document, &shown)),
        unlisted => list(&unlisted),
        undrawn => list(&undrawn),
        period_ns => period_ns,
        charts => drawn.iter().map(|&cpu| charts(document, &windows, cpu)).collect::<Vec<_>>(),
    }
}

fn charts(document: &Document, windows: &[&Distribution], cpu: u32) -> Value {
    let curves = curves(document, windows, cpu, |d| d.n as f64);
    let title = format!("Wake-up latency on CPU {cpu}");
    context! {
        cpu => cpu,
        histogram => chart(histogram(&format!("wh{cpu}"), &title, "wake-up latency", &curves)),
        exceedance => chart(exceedance(&format!("we{cpu}"), &title, "wake-up latency", Tail::Share, &curves)),
    }
}

/// Exceedances of the thresholds at which something happens: from the last that nearly all samples reach to the first that none does.
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
    cells: Vec<Option<&'a analysis::shape::Exceedance>>,
}

fn tail<'a>(document: &Document, windows: &[&'a Distribution]) -> TailTable<'a> {
    let mut all: Vec<i64> = windows.iter().flat_map(|d| &d.exceedances).map(|e| e.threshold_ns).collect();
    all.sort_unstable();
    all.dedup();
    let at = |threshold_ns: i64| {
        windows.iter().flat_map(|d| &d.exceedances).filter(move |e| e.threshold_ns == threshold_ns)
    };
    let telling = |t: &i64| at(*t).any(|e| e.count > 0) && at(*t).any(|e| e.share < 0.999);
    let mut thresholds_ns: Vec<i64> = all.iter().copied().filter(telling).collect();
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
