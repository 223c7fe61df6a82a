//! The values of a run as one long table, one row per value, which CSV and Parquet write as it is.
//!
//! Long and not wide, so that a new value is a new row and no new column. What a run could not
//! estimate has no row.

use analysis::distribution::Distribution;
use analysis::events::{ClassCount, WindowEvents};
use model::EventClass;
use model::sample::ProbeKind;

use crate::distribution::{maximum, quantiles};
use crate::{Document, format};

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Probe of the window.
    pub probe: ProbeKind,
    /// Phase of the window.
    pub phase: String,
    /// The CPU.
    pub cpu: u32,
    /// Number of the measuring thread.
    pub thread: u32,
    /// Class of events, for values of events.
    pub class: Option<EventClass>,
    /// What it is: `n`, `p99.9`, `observed_max`, `count`.
    pub figure: String,
    /// Unit of the value: `ns`, `1`, `per s`.
    pub unit: &'static str,
    /// The value.
    pub value: f64,
}

/// All values, windows in the order of the analysis.
pub fn figures(document: &Document) -> Vec<Figure> {
    let samples = document.analysis.distributions.iter().flat_map(of_samples);
    samples.chain(document.analysis.events.iter().flat_map(of_events)).collect()
}

fn of_samples(one: &Distribution) -> Vec<Figure> {
    let figure = |name: &str, unit, value: f64| Figure {
        probe: one.probe,
        phase: one.phase.clone(),
        cpu: one.cpu,
        thread: one.thread,
        class: None,
        figure: name.to_owned(),
        unit,
        value,
    };
    let count = |name: &str, value: u64| figure(name, "1", value as f64);
    let mut rows = vec![count("n", one.n), count("excluded", one.excluded), count("missed", one.missed)];
    rows.extend(one.ring_lost.map(|lost| count("ring_lost", lost)));
    rows.push(count("early", one.early));
    rows.push(figure("duration", "ns", one.duration_ns as f64));
    let ns = |name: &str, value: Option<i64>| value.map(|value| figure(name, "ns", value as f64));
    rows.extend(ns("min", one.min_ns));
    let known = quantiles(one).iter();
    rows.extend(known.filter_map(|q| ns(&format::quantile_name(q.p), q.value_ns)));
    rows.extend(ns("observed_max", maximum(one)));
    for exceeded in &one.exceedances {
        let from = format::ns_round(exceeded.threshold_ns as f64).replace(' ', "");
        rows.push(figure(&format!("share_from_{from}"), "1", exceeded.share));
        rows.push(figure(&format!("share_from_{from}_upper"), "1", exceeded.upper_share));
    }
    if let Some(stolen) = &one.stolen {
        rows.push(figure("stolen", "ns", stolen.total_ns as f64));
        rows.push(figure("stolen_share", "1", stolen.share));
    }
    rows
}

/// Only classes that this kernel shows, or that were seen anyway: for others a zero is no count.
fn of_events(window: &WindowEvents) -> Vec<Figure> {
    let seen = window.classes.iter().filter(|row| row.observable || row.count > 0);
    seen.flat_map(|row| of_class(window, row)).collect()
}

fn of_class(window: &WindowEvents, row: &ClassCount) -> [Figure; 5] {
    let figure = |name: &str, unit, value: f64| Figure {
        probe: window.probe,
        phase: window.phase.clone(),
        cpu: window.cpu,
        thread: window.thread,
        class: Some(row.class),
        figure: name.to_owned(),
        unit,
        value,
    };
    [
        figure("count", "1", row.count as f64),
        figure("net", "ns", row.net_ns as f64),
        figure("longest", "ns", row.max_ns as f64),
        figure("rate", "per s", row.per_s),
        figure("rate_upper", "per s", row.upper_per_s),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_is_not_known_has_no_row() {
        let mut document = fixture::document();
        let all = figures(&document);
        assert!(all.iter().all(|one| one.value.is_finite()));
        document.analysis.distributions[0].corrected_quantiles[2].value_ns = None;
        document.analysis.events[0].classes[0].observable = false;
        document.analysis.events[0].classes[0].count = 0;
        assert_eq!(figures(&document).len(), all.len() - 1 - 5);
    }
}
