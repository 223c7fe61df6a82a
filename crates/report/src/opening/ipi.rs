//! The opening of wake-ups from CPU to CPU.

use analysis::ipi::Way;

use super::{Card, Opening};
use crate::{Document, format};

/// The method without the kernel: the floor of the others, and no wake-up.
const FLOOR: &str = "spin";

pub(super) fn opening(document: &Document) -> Option<Opening> {
    let ways = &document.analysis.ipi;
    let waking: Vec<&Way> = ways.iter().filter(|way| way.method != FLOOR).collect();
    let ours = if waking.is_empty() { ways.iter().collect() } else { waking };
    let slowest = ours.iter().copied().max_by_key(|way| way.figures.observed_max_ns)?;
    let most_ns = slowest.figures.observed_max_ns?;
    let sentence = format!(
        "A wake-up from CPU {} to CPU {} by {} took up to {}.",
        slowest.from,
        slowest.to,
        slowest.method,
        format::ns(most_ns)
    );
    let mut by_median: Vec<(i64, &Way)> = ours.iter().filter_map(|way| Some((median(way)?, *way))).collect();
    by_median.sort_by_key(|(ns, _)| *ns);
    let pair = |way: &Way| format!("CPU {} to CPU {} by {}", way.from, way.to, way.method);
    let mut cards = vec![Card::of_one(
        "Wake-up from CPU to CPU, observed maximum",
        format::ns(most_ns),
        format!("{}; n = {}", pair(slowest), format::count(slowest.figures.n)),
    )];
    if let (Some((least, near)), Some((most, far))) = (by_median.first(), by_median.last()) {
        cards.push(Card::of_one("Slowest median of a pair", format::ns(*most), pair(far)));
        cards.push(Card::of_one("Fastest median of a pair", format::ns(*least), pair(near)));
    }
    Some(Opening { sentence, cause: None, cards })
}

fn median(way: &Way) -> Option<i64> {
    way.figures.quantiles.iter().find(|one| (one.p - 0.5).abs() < 1e-9)?.value_ns
}
