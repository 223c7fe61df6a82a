//! Who did it: each source with what it caused, what is known against it, and what this kernel can
//! show of sources at all.

use attribution::attribute::Confidence;
use attribution::attribute::section::{Attribution, SourceText};
use minijinja::{Value, context};
use model::events::EventCatalogue;
use model::{EventClass, FindingState};
use std::collections::BTreeSet;

use super::windows::{list, phases, style};
use crate::Document;
use crate::advice::against;
use crate::words::who;

/// Rows shown; the rest is counted.
const ROWS: usize = 40;
/// Mechanisms named in a row.
const MECHANISMS: usize = 3;

/// What one source has done, over all windows and CPUs.
#[derive(Default)]
struct Pooled {
    /// Events by place of the phase.
    counts: Vec<u64>,
    net_ns: u64,
    max_ns: u64,
    cpus: BTreeSet<u32>,
}

/// What distinguishes rows: class, what ran, who asked for it.
type Key<'a> = (EventClass, &'a str, Option<(&'a SourceText, Option<Confidence>)>);

pub(super) fn figures(document: &Document) -> Value {
    let windows = &document.analysis.attribution;
    let names = phases(document);
    let mut rows = pool(document, names.len());
    rows.sort_by_key(|(_, row)| std::cmp::Reverse((row.net_ns, row.counts.iter().sum::<u64>())));
    let left_out = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    // The embedded catalogue is checked by tests; without it there would be no remedies to name.
    let catalogue = EventCatalogue::embedded().ok();
    let rows: Vec<Value> =
        rows.iter().map(|(key, row)| row_context(document, catalogue.as_ref(), key, row)).collect();
    let sum = |of: fn(&Attribution) -> u64| windows.iter().map(of).fold(0, u64::saturating_add);
    context! {
        recorded => !windows.is_empty(),
        rows => rows,
        phases => names,
        left_out => left_out,
        exact => sum(|window| window.exact),
        by_order => sum(|window| window.by_order),
        unknown => sum(|window| window.unknown),
        more_senders => sum(|window| window.more_senders),
        coverage => coverage(document),
        map => super::senders::map(document),
    }
}

/// Class by class, then what a wake-up may wait for while nothing else runs.
fn coverage(document: &Document) -> Vec<Value> {
    let classes = document.analysis.coverage.iter().map(|line| {
        context! {
            class => line.class.name(),
            seen => line.seen,
            sources => if line.seen { known(line.sources) } else { "not recorded" },
            how => line.how.as_str(),
        }
    });
    let blocking = document.analysis.blocking.iter().map(|line| {
        context! {
            class => line.blocking.words(),
            seen => line.seen,
            sources => if line.seen { "its time" } else { "not recorded" },
            how => line.how.as_str(),
        }
    });
    classes.chain(blocking).collect()
}

/// A row shows one of the stacks of its source.
fn same(a: &Key<'_>, b: &Key<'_>) -> bool {
    let by = match (a.2, b.2) {
        (Some((one, known)), Some((other, sure))) => known == sure && one.is(other),
        (one, other) => one.is_none() && other.is_none(),
    };
    by && (a.0, a.1) == (b.0, b.1)
}

/// The rows of all windows, those of the same source together; the probe's own events left out.
fn pool(document: &Document, phases: usize) -> Vec<(Key<'_>, Pooled)> {
    let mut rows: Vec<(Key<'_>, Pooled)> = Vec::new();
    for window in &document.analysis.attribution {
        let phase = style(document, &window.phase);
        for row in window.rows.iter().filter(|row| row.class != EventClass::SelfCaused) {
            let key: Key =
                (row.class, &row.label, row.source.as_ref().map(|source| (source, row.confidence)));
            let at = rows.iter().position(|(known, _)| same(known, &key)).unwrap_or_else(|| {
                rows.push((key, Pooled { counts: vec![0; phases], ..Pooled::default() }));
                rows.len() - 1
            });
            let pooled = &mut rows[at].1;
            if let Some(count) = pooled.counts.get_mut(phase) {
                *count += row.count;
            }
            pooled.net_ns += row.net_ns;
            pooled.max_ns = pooled.max_ns.max(row.max_ns);
            pooled.cpus.insert(window.cpu);
        }
    }
    rows
}

/// The state of a mechanism that is proposed: `ok` has only what the user may know better.
fn word(state: FindingState) -> &'static str {
    if state == FindingState::Ok { "unless it is yours" } else { state.name() }
}

fn row_context(
    document: &Document,
    catalogue: Option<&EventCatalogue>,
    key: &Key<'_>,
    row: &Pooled,
) -> Value {
    let (class, label, source) = *key;
    let against = catalogue.map(|all| against(all, &document.findings, class, label)).unwrap_or_default();
    let settable = against.settable.iter().take(MECHANISMS);
    let settable: Vec<_> =
        settable.map(|(id, state)| context! { id => id.as_str(), state => word(*state) }).collect();
    context! {
        class => class.name(),
        label => label,
        source => source.map(|(source, _)| who(source)),
        site => source.and_then(|(source, _)| source.place()),
        frames => source.map(|(source, _)| source.functions()).unwrap_or_default(),
        own => class == EventClass::TimerTick && source.is_none(),
        sure => source.map_or("unknown", |(_, confidence)| known(confidence)),
        cpus => list(&row.cpus.iter().copied().collect::<Vec<_>>()),
        counts => row.counts.clone(),
        net_ns => row.net_ns,
        max_ns => row.max_ns,
        settable => settable,
        in_place => against.in_place,
        why_none => against.why_none,
    }
}

pub(super) fn known(confidence: Option<Confidence>) -> &'static str {
    match confidence {
        Some(Confidence::Exact) => "exact",
        Some(Confidence::Order) => "by order",
        None => "not at all",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn rows_of_the_same_source_are_one_and_nothing_is_lost() {
        let document = fixture::document();
        let rows = pool(&document, 3);
        assert_eq!(rows.len(), 3, "three sources on two CPUs");
        let counted: u64 = rows.iter().flat_map(|(_, row)| &row.counts).sum();
        let interference =
            |row: &&attribution::attribute::section::AttributedRow| row.class != EventClass::SelfCaused;
        let all =
            document.analysis.attribution.iter().flat_map(|window| window.rows.iter().filter(interference));
        let (count, net_ns) = all.fold((0, 0), |sum, row| (sum.0 + row.count, sum.1 + row.net_ns));
        assert_eq!((counted, rows.iter().map(|(_, row)| row.net_ns).sum::<u64>()), (count, net_ns));
        assert!(rows.iter().all(|(_, row)| row.counts[0] == 0 && row.cpus.len() == 2));
    }
}
