//! Stretches with interrupts or preemption off: a row a function and CPU, the longest first.

use crate::text::layout::Page;
use crate::{Document, off};

pub(super) fn section(page: &mut Page, document: &Document) {
    let (run, sections) = (&document.run, &document.analysis.off);
    if let Some(nothing) = off::nothing(run, sections) {
        page.heading("INTERRUPTS OR PREEMPTION OFF");
        return page.item("  ", &nothing);
    }
    let (longest, more) = off::longest(sections);
    if longest.is_empty() {
        return;
    }
    page.heading("INTERRUPTS OR PREEMPTION OFF   the longest first");
    let rows: Vec<_> = longest.into_iter().map(|(section, row)| off::row(run, section, row)).collect();
    page.table(4, &off::HEAD, &rows);
    if more > 0 {
        page.item("  ", &format!("and {more} more rows (analysis.json)"));
    }
    page.item("  ", off::meaning(sections));
    for line in
        [off::not_called(run, sections), off::refused(run), off::cost(run, sections)].into_iter().flatten()
    {
        page.item("  ", &line);
    }
}
