//! What the sections about samples share: which windows, in which order, with which charts.

use analysis::distribution::Distribution;
use model::sample::ProbeKind;
use serde::Serialize;

use crate::Document;
use crate::distribution::{maximum, quantile, quantiles};
use crate::svg::Curve;

/// CPUs that get charts of their own: those with the largest maxima.
pub(super) const CHARTS: usize = 4;
/// Of these, CPUs that get a histogram beside the exceedance curve, which says more in less room.
pub(super) const HISTOGRAMS: usize = 2;
/// CPUs that tables list: again those with the largest maxima. Keeps the page small on machines
/// with many CPUs.
pub(super) const LISTED: usize = 32;

/// Threads of one CPU that get a curve: as many as there are styles.
const THREADS: usize = 3;

/// One row of a table of distributions.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    pub(super) phase: &'a str,
    pub(super) style: usize,
    pub(super) cpu: u32,
    pub(super) thread: u32,
    pub(super) policy: String,
    pub(super) d: Figures<'a>,
    /// Missed releases charged where the probe has releases.
    pub(super) quantiles: Vec<Option<i64>>,
    pub(super) max_ns: Option<i64>,
    /// When the largest was observed, seconds after the first phase began.
    pub(super) max_at_s: Option<f64>,
    /// Samples file.
    pub(super) file: Option<&'a str>,
}

/// The plain values of a distribution, without its lists.
#[derive(Debug, Serialize)]
pub(super) struct Figures<'a> {
    n: u64,
    excluded: u64,
    missed: u64,
    ring_lost: Option<u64>,
    early: u64,
    duration_ns: u64,
    min_ns: Option<i64>,
    stolen: &'a Option<analysis::distribution::Stolen>,
}

/// Names of the phases in order.
pub(super) fn phases(document: &Document) -> Vec<String> {
    document.run.phases.iter().map(|phase| phase.name.clone()).collect()
}

/// Position of a phase, which is its style.
pub(super) fn style(document: &Document, phase: &str) -> usize {
    document.run.phases.iter().position(|p| p.name == phase).unwrap_or(0)
}

/// When a moment was, seconds after the first phase began.
pub(super) fn seconds(document: &Document, t_ns: i64) -> Option<f64> {
    document.run.phases.first().map(|first| (t_ns - first.t0_ns) as f64 / 1e9)
}

/// The windows of a probe, by phase, then CPU.
pub(super) fn of(document: &Document, probe: ProbeKind) -> Vec<&Distribution> {
    let mut windows: Vec<_> = document.analysis.distributions.iter().filter(|d| d.probe == probe).collect();
    windows.sort_by_key(|d| (style(document, &d.phase), d.cpu, d.thread));
    windows
}

/// Whether some CPU has several threads in one window, so that threads must be distinguished.
pub(super) fn shared(windows: &[&Distribution]) -> bool {
    windows.windows(2).any(|two| (two[0].cpu, &two[0].phase) == (two[1].cpu, &two[1].phase))
}

/// The `most` CPUs with the largest maxima, in ascending order, and those left out.
pub(super) fn worst_cpus(windows: &[&Distribution], most: usize) -> (Vec<u32>, Vec<u32>) {
    let mut worst: std::collections::BTreeMap<u32, i64> = std::collections::BTreeMap::new();
    for window in windows {
        let max = maximum(window).unwrap_or(0);
        let entry = worst.entry(window.cpu).or_insert(max);
        *entry = max.max(*entry);
    }
    let mut by_max: Vec<u32> = worst.keys().copied().collect();
    by_max.sort_by_key(|cpu| (std::cmp::Reverse(worst[cpu]), *cpu));
    let mut left_out = by_max.split_off(by_max.len().min(most));
    by_max.sort_unstable();
    left_out.sort_unstable();
    (by_max, left_out)
}

/// `0-3,7`, or nothing for no CPU.
pub(super) fn list(cpus: &[u32]) -> Option<String> {
    (!cpus.is_empty()).then(|| cpus.iter().copied().collect::<model::Cpus>().to_string())
}

/// A row for each window.
pub(super) fn rows<'a>(document: &'a Document, windows: &[&'a Distribution], names: &[f64]) -> Vec<Row<'a>> {
    windows.iter().map(|window| row(document, window, names)).collect()
}

fn row<'a>(document: &'a Document, d: &'a Distribution, names: &[f64]) -> Row<'a> {
    let probes = &document.run.probes;
    let ours = |r: &&model::run::ProbeRecord| {
        (r.probe(), r.cpu, r.thread, &r.phase) == (d.probe, d.cpu, d.thread, &d.phase)
    };
    let record = probes.iter().find(ours);
    Row {
        phase: &d.phase,
        style: style(document, &d.phase),
        cpu: d.cpu,
        thread: d.thread,
        policy: crate::guarantee::policy(&d.policy),
        quantiles: names.iter().map(|&p| quantile(d, p)).collect(),
        max_ns: maximum(d),
        max_at_s: d.observed_max_at_ns.and_then(|t_ns| seconds(document, t_ns)),
        file: record.map(|record| record.file.as_str()),
        d: Figures {
            n: d.n,
            excluded: d.excluded,
            missed: d.missed,
            ring_lost: d.ring_lost,
            early: d.early,
            duration_ns: d.duration_ns,
            min_ns: d.min_ns,
            stolen: &d.stolen,
        },
    }
}

/// The probabilities for which at least one window has a value.
pub(super) fn known_quantiles(windows: &[&Distribution]) -> Vec<f64> {
    let mut known: Vec<f64> = windows
        .iter()
        .flat_map(|d| quantiles(d))
        .filter(|quantile| quantile.value_ns.is_some())
        .map(|quantile| quantile.p)
        .collect();
    known.sort_by(f64::total_cmp);
    known.dedup();
    known
}

/// The curves of one CPU, a phase each, divided by what `total` says of the window.
pub(super) fn curves(
    document: &Document,
    windows: &[&Distribution],
    cpu: u32,
    total: impl Fn(&Distribution) -> f64,
) -> Vec<Curve> {
    let shared = shared(windows);
    let windows = windows.iter().filter(|d| d.cpu == cpu && d.observed_max_ns.is_some());
    // Of many threads the worst: more curves than that hide each other.
    let mut windows: Vec<&Distribution> = windows.copied().collect();
    if shared {
        windows.sort_by_key(|d| std::cmp::Reverse(maximum(d)));
        windows.truncate(THREADS);
        windows.sort_by_key(|d| d.thread);
    }
    let curve = |(index, d): (usize, &Distribution)| Curve {
        label: if shared { format!("thread {}", d.thread) } else { d.phase.clone() },
        style: if shared { index } else { style(document, &d.phase) },
        histogram: d.histogram.clone(),
        max_ns: d.observed_max_ns.unwrap_or(0),
        total: total(d),
    };
    windows.into_iter().enumerate().map(curve).collect()
}
