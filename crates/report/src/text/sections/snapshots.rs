//! Snapshots of the trace: what became of the samples that reached the limit, and what ran during
//! the largest.

use crate::explained::{account, largest, rest_ns, row, snapshots};
use crate::text::layout::Page;
use crate::{Document, format};

/// Samples that are shown; the page has more.
const SHOWN: usize = 5;
/// Rows of each.
const ROWS: usize = 4;

pub(super) fn section(page: &mut Page, document: &Document) {
    let Some((record, section)) = snapshots(document) else { return };
    page.heading("WHAT RAN DURING THE LARGEST SAMPLES");
    account(record, section).iter().for_each(|line| page.item("", line));
    let t0_ns = document.run.windows.first().map_or(0, |window| window.t0_ns);
    for one in largest(section).into_iter().take(SHOWN) {
        let sample = &one.sample;
        let after_s = (sample.t_ns - t0_ns) as f64 / 1e9;
        let cut = if sample.whole { "" } else { ", its beginning not recorded" };
        page.item("", &format!("CPU {} at {after_s:.3} s: {}{cut}", sample.cpu, format::ns(sample.value_ns)));
        for ran in one.rows.iter().take(ROWS) {
            page.item(&format!("  {:>9}  ", format::ns(ran.net_ns as i64)), &row(ran));
        }
        let rest = format!("  {:>9}  ", format::ns(rest_ns(one) as i64));
        page.item(&rest, "the probe's own, or without an event");
    }
}
