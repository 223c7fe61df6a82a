//! What a measurement found: one file a kind, each silent where the run has none of it.

pub(super) mod certainty;
mod clocks;
pub(super) mod graph;
mod ipi;
mod off;
mod overheads;
mod periodic;
mod snapshots;
pub(super) mod tail;
mod taskset;
pub(super) mod time;

use super::layout::Page;
use crate::{Document, format};
use stats::sampled::Quantile;

pub(super) fn all(page: &mut Page, document: &Document) {
    ipi::section(page, document);
    overheads::section(page, document);
    periodic::section(page, document);
    taskset::section(page, document);
    clocks::section(page, document);
    off::section(page, document);
    snapshots::section(page, document);
    time::section(page, document);
}

/// A time, or a dash where there is none.
fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), format::ns)
}

/// The quantile of this probability.
fn quantile(quantiles: &[Quantile], p: f64) -> Option<i64> {
    quantiles.iter().find(|quantile| (quantile.p - p).abs() < 1e-9)?.value_ns
}
