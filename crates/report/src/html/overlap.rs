//! Overlap: which share of the samples touches an event of each class, and of the largest samples.

use minijinja::{Value, context};

use super::windows::style;
use crate::Document;

/// Rows shown; the rest is counted.
const ROWS: usize = 40;

pub(super) fn figures(document: &Document) -> Value {
    let mut touched: Vec<_> =
        document.analysis.overlaps.iter().filter(|overlap| overlap.samples > 0).collect();
    let weight = |share: Option<f64>| share.unwrap_or(0.0);
    touched.sort_by(|a, b| {
        let by_largest = weight(b.share_of_largest).total_cmp(&weight(a.share_of_largest));
        by_largest.then(b.share.total_cmp(&a.share)).then(a.cpu.cmp(&b.cpu))
    });
    let left_out = touched.len().saturating_sub(ROWS);
    touched.truncate(ROWS);
    let rows = touched.into_iter().map(|overlap| {
        context! {
            phase => overlap.phase.as_str(), style => style(document, &overlap.phase), probe => overlap.probe.name(),
            cpu => overlap.cpu, class => overlap.class.name(), samples => overlap.samples,
            share => overlap.share, share_of_largest => overlap.share_of_largest,
        }
    });
    context! { rows => rows.collect::<Vec<_>>(), left_out => left_out }
}
