//! Samples over time: statistics of parts with their changes, periods with folded profiles and
//! their sources.

use analysis::time::{PartStatistics, Periodicity, TimeSection};
use minijinja::{Value, context};
use stats::slots::Slot;

use super::chart;
use crate::svg::{Course, Upright, course_marked, profile};
use crate::{Document, over_time};

/// Windows that get charts: those with findings first.
const CHARTS: usize = 6;
/// Profiles drawn of a window.
const PROFILES: usize = 4;

pub(super) fn figures(document: &Document) -> Value {
    let mut order: Vec<&TimeSection> = document.analysis.time.iter().collect();
    order.sort_by_key(|section| !over_time::has_findings(section));
    let windows = order.iter().enumerate().map(|(at, section)| section_context(document, at, section));
    context! {
        windows => windows.collect::<Vec<_>>(),
        undrawn => order.len().saturating_sub(CHARTS),
    }
}

fn section_context(document: &Document, at: usize, section: &TimeSection) -> Value {
    let drawn = at < CHARTS;
    let profiles = section.periods.iter().take(if drawn { PROFILES } else { 0 }).enumerate();
    context! {
        name => over_time::name(document, section),
        remarks => over_time::remarks(document, section),
        parts => chart(drawn.then(|| parts(at, section)).flatten()),
        profiles => profiles.map(|(k, one)| folded(&format!("tp{at}-{k}"), one)).collect::<Vec<_>>(),
        rows => section.periods.iter().flat_map(rows).collect::<Vec<_>>(),
    }
}

fn parts(at: usize, section: &TimeSection) -> Option<String> {
    let rows = &section.windows.as_ref()?.rows;
    let slots = |figure: fn(&PartStatistics) -> i64| {
        rows.iter().map(|row| Slot::single(row.t_ns, figure(row))).collect::<Vec<_>>()
    };
    let (median, p99, most) = (slots(|row| row.median_ns), slots(|row| row.p99_ns), slots(|row| row.max_ns));
    let one = |label, style, slots| Course { label, style, slots };
    let courses = [
        one("observed maximum", 1, &most[..]),
        one("99th percentile", 2, &p99[..]),
        one("median", 0, &median[..]),
    ];
    let marks: Vec<i64> = section.changes.iter().map(|change| change.t_ns).collect();
    course_marked(&format!("tw{at}"), "Figures of parts over time", "value", Upright::Log, &courses, &marks)
}

fn folded(id: &str, one: &Periodicity) -> Value {
    let every = over_time::about(one.period_ns);
    let svg = profile(id, &format!("Samples folded at {every}"), &one.profile_ns, one.period_ns);
    context! { svg => chart(svg), every => every }
}

fn rows(one: &Periodicity) -> Vec<Value> {
    let row = |(place, suspect): (usize, &analysis::time::Suspect)| {
        context! {
            every => over_time::about(one.period_ns),
            source => over_time::source(suspect),
            named => one.named && place == 0,
            own => suspect.own_period_ns.map(over_time::own_period),
            events => suspect.events,
            agreement => format!("{:.3}{}", suspect.agreement, if suspect.longest_only { " (longest)" } else { "" }),
            touched => format!("{} of {}", suspect.touched, suspect.asked),
            between => suspect.touched_between,
            overlap_ns => suspect.overlap_ns,
        }
    };
    one.suspects.iter().enumerate().map(row).collect()
}
