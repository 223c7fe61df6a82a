//! How sure the statistics of samples are: effective sample sizes, quantile intervals, deadlines.

use crate::text::layout::Page;
use crate::{Document, certainty, heading};

pub(crate) fn section(page: &mut Page, document: &Document) {
    let windows = certainty::windows(document);
    let deadlines = !document.deadlines_ns.is_empty();
    if let Some(why) = certainty::no_deadline(document) {
        page.heading("DEADLINES");
        page.item("  ", &why);
    }
    if windows.is_empty() || !(heading::is_measurement(&document.run) || deadlines) {
        return;
    }
    page.heading("HOW SURE THAT IS   95 % intervals; samples depend on each other, and are worth fewer");
    for d in windows {
        page.item("  ", &format!("{}: {}", certainty::window(d), certainty::dependence(d)));
        if let Some(quantiles) = certainty::intervals(d) {
            page.item("    ", &quantiles);
        }
        for answer in certainty::deadlines(document, d) {
            page.item("    ", &answer);
        }
    }
}
