//! Wake-ups of one CPU by another: a heat-map a method, and a row a pair.

use analysis::ipi::{METHODS, Way};
use minijinja::{Value, context};
use model::run::ProbeRecord;
use std::collections::{BTreeMap, BTreeSet};

use super::plot::plot;
use super::{chart, value};
use crate::Document;
use crate::svg::{Cell, heatmap};

/// CPUs a side of a heat-map: those with the slowest wake-ups.
const CPUS: usize = 24;
/// Rows of the table: of more, the slowest.
const ROWS: usize = 120;

pub(super) fn figures(document: &Document) -> Value {
    let ways = &document.analysis.ipi;
    let how = document.run.probes.iter().find_map(ProbeRecord::wake_ups);
    let (drawn, undrawn) = slowest(ways);
    let sum = |of: fn(&ProbeRecord) -> u64| document.run.probes.iter().map(of).fold(0, u64::saturating_add);
    let mut rows: Vec<&Way> = ways.iter().collect();
    rows.sort_by_key(|way| std::cmp::Reverse(median(way)));
    let left_out = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    rows.sort_by_key(|way| (METHODS.iter().position(|name| *name == way.method), way.from, way.to));
    context! {
        any => !ways.is_empty(),
        interval_ns => how.map(|how| how.interval_ns),
        busy => how.is_some_and(|how| how.busy),
        maps => METHODS.iter().filter_map(|method| map(method, ways, &drawn)).collect::<Vec<_>>(),
        undrawn => super::windows::list(&undrawn),
        vague => ways.iter().any(|way| way.half_round_trip),
        bound_ns => ways.iter().map(|way| way.bound_ns).max(),
        offset_ns => ways.iter().map(|way| way.offset_ns.abs()).max(),
        known => document.run.has_ended(),
        sent => sum(ProbeRecord::released),
        received => sum(|probe| probe.samples),
        lost => sum(|probe| probe.missed().saturating_add(probe.ring_lost)),
        rows => rows.into_iter().map(row).collect::<Vec<_>>(),
        left_out => left_out,
    }
}

fn quantile(way: &Way, p: f64) -> Option<i64> {
    way.figures.quantiles.iter().find(|quantile| (quantile.p - p).abs() < 1e-9)?.value_ns
}

fn median(way: &Way) -> Option<i64> {
    quantile(way, 0.5)
}

/// The CPUs that the maps show, and those left out.
fn slowest(ways: &[Way]) -> (BTreeSet<u32>, Vec<u32>) {
    let mut worst: BTreeMap<u32, Option<i64>> = BTreeMap::new();
    for way in ways {
        for cpu in [way.from, way.to] {
            let entry = worst.entry(cpu).or_default();
            *entry = median(way).max(*entry);
        }
    }
    let mut cpus: Vec<u32> = worst.keys().copied().collect();
    cpus.sort_by_key(|cpu| (std::cmp::Reverse(worst[cpu]), *cpu));
    let mut left_out = cpus.split_off(cpus.len().min(CPUS));
    left_out.sort_unstable();
    (cpus.into_iter().collect(), left_out)
}

/// The method without the kernel: the floor of the others.
const FLOOR: &str = "spin";

/// The pairs of a method among the CPUs that are drawn.
fn cells(method: &str, ways: &[Way], drawn: &BTreeSet<u32>) -> Vec<Cell> {
    let ours = ways.iter().filter(|way| way.method == method);
    let ours = ours.filter(|way| drawn.contains(&way.from) && drawn.contains(&way.to));
    let cell = |way: &Way| {
        let figures = &way.figures;
        Some(Cell {
            from: way.from,
            to: way.to,
            median_ns: median(way)?,
            min_ns: figures.min_ns?,
            max_ns: figures.observed_max_ns?,
            vague: way.half_round_trip,
        })
    };
    ours.filter_map(cell).collect()
}

/// What the colours of a method's map span: all methods but the floor, which is far below them and
/// has a scale of its own.
fn compared(method: &str, ways: &[Way], drawn: &BTreeSet<u32>) -> Vec<Cell> {
    let same = METHODS.iter().filter(|other| (**other == FLOOR) == (method == FLOOR));
    same.flat_map(|other| cells(other, ways, drawn)).collect()
}

fn map(method: &str, ways: &[Way], drawn: &BTreeSet<u32>) -> Option<Value> {
    let cells = cells(method, ways, drawn);
    let title = format!("Wake-ups by {method}");
    let svg = heatmap(&format!("ipi-{method}"), &title, &cells, &compared(method, ways, drawn))?;
    let wide = cells.iter().map(|cell| cell.to).collect::<BTreeSet<_>>().len() > 6;
    Some(context! { method => method, svg => chart(Some(svg)), floor => method == FLOOR, wide => wide })
}

/// The maps of the methods with the slowest and the fastest wake-ups.
pub(super) fn opening(document: &Document) -> Vec<Value> {
    let ways = &document.analysis.ipi;
    let (drawn, _) = slowest(ways);
    let most = |method: &&&str| ways.iter().filter(|way| way.method == **method).filter_map(median).max();
    let mut methods: Vec<&&str> =
        METHODS.iter().filter(|name| **name != FLOOR && most(name).is_some()).collect();
    if methods.is_empty() {
        methods = METHODS.iter().filter(|name| most(name).is_some()).collect();
    }
    methods.sort_by_key(|name| std::cmp::Reverse(most(name)));
    let ends = if methods.len() > 1 { vec![methods[0], methods[methods.len() - 1]] } else { methods };
    let draw = |method: &&str| {
        let cells = cells(method, ways, &drawn);
        let title = format!("Wake-ups by {method}");
        let svg = heatmap(&format!("oi-{method}"), &title, &cells, &compared(method, ways, &drawn));
        let caption = format!(
            "{method}: median, least and observed maximum; the colour is the median, the same in both."
        );
        plot(svg, caption)
    };
    ends.into_iter().map(draw).collect()
}

fn row(way: &Way) -> Value {
    let figures = &way.figures;
    context! {
        method => way.method.as_str(), from => way.from, to => way.to, vague => way.half_round_trip,
        n => figures.n, slept => way.slept, min_ns => figures.min_ns, median_ns => median(way),
        p99_ns => quantile(way, 0.99), max_ns => figures.observed_max_ns, back_ns => way.back_median_ns,
        offset_ns => way.offset_ns, bound_ns => way.bound_ns, excluded => value(&figures.excluded),
    }
}
