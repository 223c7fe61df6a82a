//! The opening of what the kernel's own work costs.

use analysis::overheads::{Overhead, Overheads};

use super::{Card, Opening};
use crate::{Document, format};

/// Terms of the cards, in this order as far as they were measured, and what each is called.
const TERMS: [(&str, &str); 6] = [
    ("switch", "Context switch, with its wake-up"),
    ("release", "Timer interrupt of a release"),
    ("tick", "Scheduler tick"),
    ("ipi", "Interprocessor interrupt"),
    ("sched", "Call of the scheduler"),
    ("migrate", "Migration to another CPU"),
];
const CARDS: usize = 3;

pub(super) fn opening(document: &Document) -> Option<Opening> {
    let all = &document.analysis.overheads;
    let measured = |term: &str| -> Option<(&Overheads, &Overhead, i64)> {
        let ours = all.iter().flat_map(|cpu| cpu.terms.iter().map(move |one| (cpu, one)));
        let ours = ours.filter(|(_, one)| one.term == term);
        ours.filter_map(|(cpu, one)| Some((cpu, one, median(one)?))).max_by_key(|(.., ns)| *ns)
    };
    let mut cards = Vec::new();
    let mut sentence = None;
    for (term, what) in TERMS {
        let Some((cpu, one, median_ns)) = measured(term) else { continue };
        let most = one.figures.observed_max_ns.map(format::ns).unwrap_or_default();
        sentence.get_or_insert_with(|| {
            format!(
                "On CPU {}, a {} costs {} in the median and up to {most}.",
                cpu.cpu,
                lower(what),
                format::ns(median_ns)
            )
        });
        if cards.len() < CARDS {
            cards.push(Card::of_one(
                format!("{what}, median"),
                format::ns(median_ns),
                format!("observed maximum {most}; n = {}", format::count(one.figures.n)),
            ));
        }
    }
    Some(Opening { sentence: sentence?, cause: None, cards })
}

fn median(one: &Overhead) -> Option<i64> {
    one.figures.quantiles.iter().find(|quantile| (quantile.p - 0.5).abs() < 1e-9)?.value_ns
}

/// In the middle of a sentence.
fn lower(what: &str) -> String {
    let mut letters = what.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
