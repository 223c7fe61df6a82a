//! The clocks against CLOCK_MONOTONIC: a row a clock, and what follows for SCHED_DEADLINE.

use crate::text::layout::Page;
use crate::{Document, clocks, format};
use analysis::clocks::Rate;
use analysis::drift::Drift;
use model::run::ProbeRecord;

pub(super) fn section(page: &mut Page, document: &Document) {
    let facts = document.run.probes.iter().find_map(ProbeRecord::clocks);
    let (Some(clock_analysis), Some(facts)) = (&document.analysis.clocks, facts) else { return };
    let (over, step) = (format::span(clock_analysis.span_ns as u64), format::ns(facts.step_ns as i64));
    page.heading(&format!("CLOCKS AGAINST CLOCK_MONOTONIC   over {over}, a reading every {step}"));
    let row = |rate: &Rate| {
        let of = |show: &dyn Fn(&Drift) -> String| rate.drift.as_ref().map_or_else(|| "-".to_owned(), show);
        vec![
            rate.clock.clone(),
            of(&|drift| clocks::rate(drift)[0].clone()),
            of(&|drift| clocks::rate(drift)[1].clone()),
            of(&|drift| format!("{} us", clocks::rate(drift)[2])),
            of(&|drift| drift.steps.to_string()),
            of(&|drift| format!("{}/{}", drift.pairs, drift.read)),
            of(&|drift| format!("{} ns", drift.bracket_ns)),
            clocks::cost(facts, &rate.clock).map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0} ns")),
        ]
    };
    let head = ["clock", "faster by, ppb", "+-", "an hour", "set", "pairs", "bracket", "a read"];
    page.table(1, &head, &clock_analysis.rates.iter().map(row).collect::<Vec<_>>());
    page.item(
        "  ",
        "+-: standard error of the rate; bracket: each pair is known to so much; set: jumps, taken out",
    );
    for remark in clocks::remarks(clock_analysis, facts) {
        page.item("  ", &remark);
    }
}
