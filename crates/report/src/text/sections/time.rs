//! Samples over time: periods and their sources, changes and drift, for the windows that have any.

use crate::text::layout::Page;
use crate::{Document, over_time};

/// Windows printed before the list is cut.
const WINDOWS: usize = 8;

pub(crate) fn section(page: &mut Page, document: &Document) {
    let mut sections =
        document.analysis.time.iter().filter(|section| over_time::has_findings(section)).peekable();
    if sections.peek().is_none() {
        return;
    }
    page.heading("OVER TIME");
    for section in sections.by_ref().take(WINDOWS) {
        page.item("  ", &over_time::name(document, section));
        for remark in over_time::remarks(document, section) {
            page.item("    - ", &remark);
        }
    }
    let rest = sections.count();
    if rest > 0 {
        page.item("  ", &format!("... {rest} more windows in analysis.json"));
    }
}
