//! What the kernel's own work costs: a row a term.

use super::{quantile, time};
use crate::text::layout::Page;
use crate::{Document, format};
use analysis::overheads::Overheads;

pub(super) fn section(page: &mut Page, document: &Document) {
    for overheads in &document.analysis.overheads {
        page.heading(&format!("WHAT THE KERNEL'S WORK COSTS   CPU {}", overheads.cpu));
        let rows = overheads.terms.iter().map(|term| {
            let figures = &term.figures;
            vec![
                term.term.clone(),
                if term.bytes > 0 { format::size(term.bytes) } else { String::new() },
                format::count(figures.n),
                time(Some(term.subtracted_ns)),
                time(figures.min_ns),
                time(quantile(&figures.quantiles, 0.5)),
                time(quantile(&figures.quantiles, 0.9)),
                time(quantile(&figures.quantiles, 0.99)),
                time(figures.observed_max_ns),
            ]
        });
        let head = ["term", "set", "n", "subtracted", "min", "p50", "p90", "p99", "observed max"];
        page.table(1, &head, &rows.collect::<Vec<_>>());
        match overheads.tick_period_ns {
            Some(period) => {
                page.item("  ", &format!("tick: gaps at a distance of {}", format::ns(period)));
            }
            None => page.item("  ", "tick: no gaps at the distance of a tick"),
        }
        traced(page, document, overheads);
    }
}

/// The same kernel work by its own tracepoints, and what recording adds to it.
fn traced(page: &mut Page, document: &Document, overheads: &Overheads) {
    if overheads.traced.is_empty() {
        return;
    }
    page.item("", "by the kernel's own tracepoints, in a window of its own");
    let rows = overheads.traced.iter().map(|term| {
        let lengths = &term.lengths;
        vec![
            term.term.clone(),
            format::count(lengths.n),
            time(lengths.min_ns),
            time(lengths.median_ns),
            time(term.p99_ns),
            time(lengths.observed_max_ns),
            format::count(term.events_within),
        ]
    });
    let head = ["term", "n", "min", "median", "p99", "observed max", "events within"];
    page.table(1, &head, &rows.collect::<Vec<_>>());
    if let Some(ns) = document.run.observer.trace_event_ns {
        let cost = format::ns_f(ns);
        page.item("  ", &format!("recording an event takes up to {cost}, and each event within adds as much; nothing is subtracted"));
    }
}
