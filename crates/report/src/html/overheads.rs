//! What the kernel's own work costs: a chart and a table of the terms, and the object that
//! schedulability analysis takes.

use analysis::lengths::{TERMS, TracedTerm};
use analysis::overheads::{Accounting, Overhead, Overheads, Take, accounting};
use minijinja::{Value, context};

use super::plot::rooms;
use super::{chart, value};
use crate::svg::{Room, Spread, spread};
use crate::{Document, format};

const TAKES: [(&str, Take); 3] = [("median", Take::Median), ("p99", Take::P99), ("observed max", Take::Max)];

pub(super) fn figures(document: &Document) -> Value {
    context! {
        cpus => document.analysis.overheads.iter().map(cpu).collect::<Vec<_>>(),
        event_ns => document.run.observer.trace_event_ns,
    }
}

/// The terms of the first CPU; those of others are in the section.
pub(super) fn opening(document: &Document) -> Vec<Value> {
    let Some(first) = document.analysis.overheads.first() else { return Vec::new() };
    let bars: Vec<Spread> = first.terms.iter().filter_map(bar).collect();
    let title = format!("What the kernel\u{2019}s work costs on CPU {}", first.cpu);
    let caption = format!(
        "CPU {}: from the least to the observed maximum, a dot at the median, a bar to the 99th percentile.",
        first.cpu
    );
    let draw = |room| {
        let id = if room == Room::Desk { "ov" } else { "ovh" };
        spread(id, &title, "time, observer cost subtracted", &bars, room)
    };
    vec![rooms(draw, caption)]
}

fn cpu(overheads: &Overheads) -> Value {
    let bars: Vec<Spread> = overheads.terms.iter().filter_map(bar).collect();
    let takes = TAKES.map(|(name, take)| (name, accounting(overheads, take)));
    let text = |one: &Accounting| serde_json::to_string(one).unwrap_or_default();
    let objects = takes.iter().map(|(name, one)| context! { name => *name, text => text(one) });
    let traced_bars: Vec<Spread> = overheads.traced.iter().filter_map(traced_bar).collect();
    let id = format!("ov{}", overheads.cpu);
    let title = format!("What the kernel\u{2019}s work costs on CPU {}", overheads.cpu);
    context! {
        cpu => overheads.cpu,
        tick_period_ns => overheads.tick_period_ns,
        chart => chart(spread(&id, &title, "time, observer cost subtracted", &bars, Room::Desk)),
        rows => overheads.terms.iter().map(row).collect::<Vec<_>>(),
        objects => objects.collect::<Vec<_>>(),
        traced => overheads.traced.iter().map(traced).collect::<Vec<_>>(),
        traced_chart => chart(spread(&format!("ot{}", overheads.cpu), "The same by tracepoints", "time between tracepoints", &traced_bars, Room::Desk)),
    }
}

fn quantile(term: &Overhead, p: f64) -> Option<i64> {
    term.figures.quantiles.iter().find(|quantile| (quantile.p - p).abs() < 1e-9)?.value_ns
}

fn size(term: &Overhead) -> Option<String> {
    (term.bytes > 0).then(|| format::size(term.bytes))
}

fn bar(term: &Overhead) -> Option<Spread> {
    let label = size(term).map_or_else(|| term.term.clone(), |size| format!("{} {size}", term.term));
    Some(Spread {
        label,
        min_ns: term.figures.min_ns?,
        median_ns: quantile(term, 0.5)?,
        p99_ns: quantile(term, 0.99),
        max_ns: term.figures.observed_max_ns?,
        calculated_ns: None,
        deadline_ns: None,
    })
}

fn row(term: &Overhead) -> Value {
    let figures = &term.figures;
    context! {
        term => term.term.as_str(), size => size(term), n => figures.n, subtracted_ns => term.subtracted_ns,
        means => meaning(&term.term), min_ns => figures.min_ns, median_ns => quantile(term, 0.5),
        p99_ns => quantile(term, 0.99), max_ns => figures.observed_max_ns, early => value(&figures.early),
    }
}

/// What a term is, for readers without the manual.
fn meaning(term: &str) -> &'static str {
    match term {
        "release" => "timer interrupt that releases a job",
        "sched" => "a call of the scheduler that changes nothing",
        "switch" => "context switch, with the wake-up before it",
        "gap" => "any gap of a busy loop",
        "tick" => "of the gaps, those that come as ticks",
        "ipi" => "interprocessor interrupt: from the call until it has run",
        "crpd" => "cache-related preemption delay",
        "migrate" => "moving to another CPU",
        "cpmd" => "cache-related migration delay",
        _ => "",
    }
}

fn traced_bar(term: &TracedTerm) -> Option<Spread> {
    Some(Spread {
        label: term.term.clone(),
        min_ns: term.lengths.min_ns?,
        median_ns: term.lengths.median_ns?,
        p99_ns: term.p99_ns,
        max_ns: term.lengths.observed_max_ns?,
        calculated_ns: None,
        deadline_ns: None,
    })
}

fn traced(term: &TracedTerm) -> Value {
    let means = TERMS.iter().find(|(name, _)| *name == term.term).map_or("", |(_, means)| means);
    context! {
        term => term.term.as_str(), means => means, n => term.lengths.n, min_ns => term.lengths.min_ns,
        median_ns => term.lengths.median_ns, p99_ns => term.p99_ns, max_ns => term.lengths.observed_max_ns,
        events => term.events_within,
    }
}
