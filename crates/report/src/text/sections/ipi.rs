//! Wake-ups of one CPU by another: a matrix a method, senders down, targets across; a list where
//! that would be too wide.

use super::{quantile, time};
use crate::text::layout::Page;
use crate::{Document, format};
use analysis::ipi::{METHODS, Way};
use model::run::ProbeRecord;
use std::collections::BTreeSet;

/// Targets that fit a page.
const WIDEST: usize = 4;
/// Rows of a list before it is cut.
const ROWS: usize = 60;

pub(super) fn section(page: &mut Page, document: &Document) {
    let ways = &document.analysis.ipi;
    if ways.is_empty() {
        return;
    }
    let how = document.run.probes.iter().find_map(ProbeRecord::wake_ups);
    let how = how.map_or_else(String::new, |how| {
        let target = if how.busy { "busy" } else { "idle" };
        format!("; {target} CPUs, one every {}", format::ns(how.interval_ns as i64))
    });
    page.heading(&format!("WAKE-UPS OF ONE CPU BY ANOTHER   median (min){how}"));
    for method in METHODS {
        let ours: Vec<&Way> = ways.iter().filter(|way| way.method == method).collect();
        if !ours.is_empty() {
            matrix(page, method, &ours);
        }
    }
    if let Some(way) = ways.iter().max_by_key(|way| way.bound_ns) {
        let apart = time(ways.iter().map(|way| way.offset_ns.abs()).max());
        let bound = time(Some(way.bound_ns));
        let (from, to) = (way.from, way.to);
        page.item(
            "  ",
            &format!("counters of two CPUs: {apart} apart at most, known to {bound} at worst (CPUs {from} and {to})"),
        );
    }
    if ways.iter().any(|way| way.half_round_trip) {
        page.item(
            "  ",
            "~: half of the round trip, because the counters' offset is known too vaguely for the one way",
        );
    }
    let asked: u64 =
        ways.iter().filter(|way| way.method != "spin").map(|way| way.figures.n).fold(0, u64::saturating_add);
    let slept: u64 = ways.iter().map(|way| way.slept).fold(0, u64::saturating_add);
    let sum = |of: fn(&ProbeRecord) -> u64| document.run.probes.iter().map(of).fold(0, u64::saturating_add);
    let received = sum(|probe| probe.samples);
    let account = if document.run.has_ended() {
        let (sent, lost) =
            (sum(ProbeRecord::released), sum(|probe| probe.missed().saturating_add(probe.ring_lost)));
        format!("sent {sent} = received {received} + lost {lost}")
    } else {
        format!("received {received}; how many were sent and lost is not known")
    };
    page.item("  ", &format!("{account}; the target slept before {slept} of {asked}"));
}

fn matrix(page: &mut Page, method: &str, ways: &[&Way]) {
    let mark = |way: &Way| if way.half_round_trip { "~" } else { "" };
    let median = |way: &Way| format!("{}{}", mark(way), time(quantile(&way.figures.quantiles, 0.5)));
    let to: BTreeSet<u32> = ways.iter().map(|way| way.to).collect();
    if to.len() > WIDEST {
        let row = |way: &&Way| {
            let figures = &way.figures;
            let p99 = time(quantile(&figures.quantiles, 0.99));
            let pair = format!("{} > {}", way.from, way.to);
            vec![pair, median(way), time(figures.min_ns), p99, time(figures.observed_max_ns)]
        };
        let rows: Vec<_> = ways.iter().map(row).collect();
        page.table(1, &[method, "median", "min", "p99", "observed max"], &rows[..rows.len().min(ROWS)]);
        if rows.len() > ROWS {
            page.item("  ", &format!("... {} more pairs in the report", rows.len() - ROWS));
        }
        return;
    }
    let from: BTreeSet<u32> = ways.iter().map(|way| way.from).collect();
    let cell = |way: &&Way| format!("{} ({})", median(way), time(way.figures.min_ns));
    let row = |from: u32| {
        let of = |to: &u32| ways.iter().find(|way| way.from == from && way.to == *to);
        let cells = to.iter().map(|to| of(to).map_or_else(|| "-".to_owned(), cell));
        std::iter::once(format!("from {from}")).chain(cells).collect()
    };
    let head: Vec<String> =
        std::iter::once(method.to_owned()).chain(to.iter().map(|to| format!("to {to}"))).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    page.table(1, &head, &from.into_iter().map(row).collect::<Vec<_>>());
    if let Some(worst) = ways.iter().max_by_key(|way| way.figures.observed_max_ns) {
        let (max, from, to) = (time(worst.figures.observed_max_ns), worst.from, worst.to);
        let n: u64 = ways.iter().map(|way| way.figures.n).fold(0, u64::saturating_add);
        page.item(
            "  ",
            &format!("observed maximum of {} wake-ups: {max}, from {from} to {to}", format::count(n)),
        );
    }
}
