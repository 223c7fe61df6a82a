//! Snapshots of the trace: what became of the samples that reached the limit, and what ran during
//! the largest.

use crate::explained::{account, largest, rest_ns, row, snapshots, steps};
use crate::text::layout::Page;
use crate::{Document, format};

/// Samples that are shown; the page has more.
const SHOWN: usize = 5;
/// Rows of each.
const ROWS: usize = 4;

pub(super) fn section(page: &mut Page, document: &Document) {
    let Some((record, section)) = snapshots(document) else { return };
    page.heading("WHAT RAN DURING THE LARGEST SAMPLES");
    account(record, section, document.run.stopped_at.is_some()).iter().for_each(|line| page.item("", line));
    for one in largest(section).into_iter().take(SHOWN) {
        let sample = &one.sample;
        let cut = if sample.whole { "" } else { ", its beginning not recorded" };
        page.item(
            "",
            &format!(
                "CPU {} at {} s: {}{cut}",
                sample.cpu,
                format::instant(sample.t_ns),
                format::ns(sample.value_ns)
            ),
        );
        let steps = steps(one);
        // What ran there may overlap with what the wake-up waited for on another CPU.
        let both = !steps.is_empty() && !one.rows.is_empty();
        if both {
            page.item("  ", &format!("ran on CPU {} meanwhile:", sample.cpu));
        }
        for ran in one.rows.iter().take(ROWS) {
            page.item(&format!("  {:>9}  ", format::ns(ran.net_ns as i64)), &row(ran));
        }
        let line = |ns: u64| format!("  {:>9}  ", format::ns(ns as i64));
        if both {
            page.item(
                "  ",
                "what else the wake-up waited for, by step; what names another CPU passed at the same time:",
            );
        }
        steps.iter().for_each(|(ns, step)| page.item(&line(*ns), step));
        if steps.is_empty() {
            page.item(&line(rest_ns(one)), "the probe's own, or without an event");
        }
    }
}
