//! Noise: what was stolen from the busy loop, and how often for how long.

use analysis::distribution::Distribution;
use minijinja::{Value, context};
use model::sample::ProbeKind;

use super::windows::{
    CHARTS, HISTOGRAMS, LISTED, curves, known_quantiles, list, of, rows, shared, style, worst_cpus,
};
use super::{chart, value};
use crate::svg::{Tail, exceedance, histogram};
use crate::{Document, Thieves, format, thieves};

pub(super) fn figures(document: &Document) -> Value {
    let windows = of(document, ProbeKind::Noise);
    let (listed, unlisted) = worst_cpus(&windows, LISTED);
    let (drawn, undrawn) = worst_cpus(&windows, CHARTS);
    let (whole, _) = worst_cpus(&windows, HISTOGRAMS);
    let shown: Vec<&Distribution> = windows.iter().copied().filter(|d| listed.contains(&d.cpu)).collect();
    let names = known_quantiles(&windows);
    let steal_ns: u64 = document
        .run
        .windows
        .iter()
        .filter(|window| window.probe == ProbeKind::Noise)
        .flat_map(|window| window.steal_ns.values().copied())
        .fold(0, u64::saturating_add);
    context! {
        rows => value(&rows(document, &shown, &names)),
        shared => shared(&windows),
        quantiles => names.iter().map(|&p| format::quantile_name(p)).collect::<Vec<_>>(),
        unlisted => list(&unlisted),
        undrawn => list(&undrawn),
        threshold_ns => document.run.probes.iter().find_map(|record| Some(record.noise()?.threshold_ns)),
        steal_ns => steal_ns,
        causes => causes(document),
        charts => drawn.iter().map(|&cpu| charts(document, &windows, cpu, whole.contains(&cpu))).collect::<Vec<_>>(),
    }
}

/// Who took the time, by the trace or by counters that were read beside the loop.
fn causes(document: &Document) -> Vec<Value> {
    let row = |row: Thieves| {
        context! {
            cpu => row.cpu, phase => row.phase.as_str(), style => style(document, &row.phase),
            thief => row.cause.as_str(), sure => row.sure, gaps => row.times,
            total => row.range_words(), max_ns => row.max_ns,
        }
    };
    thieves(document).into_iter().map(row).collect()
}

fn charts(document: &Document, windows: &[&Distribution], cpu: u32, whole: bool) -> Value {
    let curves = curves(document, windows, cpu, |d| d.duration_ns as f64 / 1e9);
    let title = format!("Gaps in the busy loop on CPU {cpu}");
    let svg = exceedance(&format!("ne{cpu}"), &title, "length of a gap", Tail::PerSecond, &curves, None);
    let buckets = histogram(&format!("nh{cpu}"), &title, "length of a gap", &curves);
    context! { cpu => cpu, exceedance => chart(svg), histogram => chart(buckets.filter(|_| whole)) }
}
