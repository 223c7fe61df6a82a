//! Estimates of tails, each behind its verdict.

use crate::text::layout::{Page, Paint};
use crate::{Document, tail};

pub(crate) fn section(page: &mut Page, document: &Document) {
    if document.analysis.tail.is_empty() {
        return;
    }
    page.heading("BEYOND THE LARGEST SAMPLE   laws of extremes, an estimate under stated assumptions");
    for one in &document.analysis.tail {
        page.item("  ", &tail::window(one));
        let paint = if one.estimated { Paint::Green } else { Paint::Red };
        page.painted(paint, "    ", &tail::verdict(one));
        if !one.levels.is_empty() {
            page.table(0, &tail::HEAD, &one.levels.iter().map(tail::row).collect::<Vec<_>>());
        }
        tail::fits(one).iter().for_each(|fit| page.item("    ", fit));
        let results = one.checks.iter().map(|check| {
            let [name, _, p, verdict] = tail::check(check);
            if verdict == "failed" { format!("{name} p {p} FAILED") } else { format!("{name} p {p}") }
        });
        let checks: Vec<String> = results.collect();
        if !checks.is_empty() {
            page.item("    checks: ", &checks.join("; "));
        }
        tail::caveats(one).iter().for_each(|caveat| page.item("    ", caveat));
    }
}
