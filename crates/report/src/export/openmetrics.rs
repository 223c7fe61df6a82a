//! Values as OpenMetrics text, which Prometheus' node exporter also takes from its textfile
//! directory.
//!
//! OpenMetrics 1.0 (classic histograms, no exemplars, no time stamps: the textfile collector
//! refuses these). Everything but the histograms is a gauge: the counts of a finished run do not
//! grow. Bounds of the buckets are one nanosecond below the round threshold, since `le` includes
//! its bound and stillcore counts samples at or above a threshold. A class that the kernel does not
//! show has no sample.

use analysis::distribution::Distribution;
use model::sample::ProbeKind;
use model::{EventClass, FindingState};
use std::collections::BTreeMap;

use super::families::Families;
use crate::Document;
use crate::distribution::{maximum, quantiles};

/// The whole text.
pub fn openmetrics(document: &Document) -> String {
    let mut out = Families::open();
    about(document, &mut out);
    for (probe, name, what) in [
        (
            ProbeKind::Wakeup,
            "stillcore_wakeup_latency",
            "Wake-up latency from the intended release, missed releases charged",
        ),
        (ProbeKind::Noise, "stillcore_noise_gap", "Gaps of a busy loop, from the shortest that is stored"),
        (ProbeKind::Periodic, "stillcore_periodic", "Execution time of a periodic job"),
    ] {
        let windows: Vec<&Distribution> =
            document.analysis.distributions.iter().filter(|one| one.probe == probe).collect();
        if !windows.is_empty() {
            of_samples(&windows, name, what, &mut out);
        }
    }
    stolen(document, &mut out);
    events(document, &mut out);
    out.end()
}

fn about(document: &Document, out: &mut Families) {
    let (run, machine) = (&document.run, &document.machine.machine);
    let cpus = run.measured_cpus.to_string();
    out.family("stillcore_run_about", "gauge", None, "What the run was; always 1");
    let labels = [
        ("tool_version", run.tool_version.as_str()),
        ("kernel", machine.kernel.release.as_str()),
        ("arch", machine.kernel.arch.as_str()),
        ("started_at", run.started_at.as_str()),
        ("cpus", cpus.as_str()),
    ];
    out.sample("stillcore_run_about", &labels, 1.0);
    out.family("stillcore_run_complete", "gauge", None, "Whether the run was carried out whole");
    out.sample("stillcore_run_complete", &[], f64::from(u8::from(run.complete)));
    out.family("stillcore_run_found", "gauge", None, "Whether there is a finding: exit status 2");
    out.sample("stillcore_run_found", &[], f64::from(u8::from(document.outcome.exit_code() == 2)));
    let lost = run.losses;
    let losses = [
        ("missed_releases", lost.missed_releases),
        ("ring_samples", lost.ring_samples),
        ("trace_events", lost.trace_events),
        ("failed_operations", lost.failed_operations),
    ];
    // A run that was cut off has not counted them.
    if run.has_ended() {
        out.family("stillcore_lost", "gauge", None, "What was lost or missed in the run");
        losses
            .iter()
            .for_each(|(what, count)| out.sample("stillcore_lost", &[("what", what)], *count as f64));
    }
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    document.findings.iter().for_each(|one| *states.entry(FindingState::name(one.state)).or_default() += 1);
    if !states.is_empty() {
        out.family(
            "stillcore_findings",
            "gauge",
            None,
            "Isolation mechanisms by what the audit says of them",
        );
        states.iter().for_each(|(state, n)| out.sample("stillcore_findings", &[("state", state)], *n as f64));
    }
}

/// What exceedances are shares of: all releases, missed ones charged; of gaps all that are stored.
fn counted(one: &Distribution) -> u64 {
    let exceedance = one.exceedances.iter().find(|at| at.share > 0.0);
    let charged = if one.corrected_max_ns.is_some() { one.missed } else { 0 };
    exceedance.map_or(one.n + charged, |at| (at.count as f64 / at.share).round() as u64)
}

fn of_samples(windows: &[&Distribution], name: &str, what: &str, out: &mut Families) {
    let family = format!("{name}_seconds");
    out.family(&family, "histogram", Some("seconds"), what);
    for one in windows {
        let (cpu, thread) = (one.cpu.to_string(), one.thread.to_string());
        let labels = [("phase", one.phase.as_str()), ("cpu", &cpu), ("thread", &thread)];
        let total = counted(one);
        for at in &one.exceedances {
            let bound = (at.threshold_ns - 1) as f64 / 1e9;
            let bound = bound.to_string();
            let labels = [&labels[..], &[("le", bound.as_str())]].concat();
            out.sample(&format!("{family}_bucket"), &labels, total.saturating_sub(at.count) as f64);
        }
        let infinite = [&labels[..], &[("le", "+Inf")]].concat();
        out.sample(&format!("{family}_bucket"), &infinite, total as f64);
        out.sample(&format!("{family}_sum"), &labels, one.sum_ns as f64 / 1e9);
        out.sample(&format!("{family}_count"), &labels, total as f64);
    }
    let quantile = format!("{name}_quantile_seconds");
    out.family(
        &quantile,
        "gauge",
        Some("seconds"),
        "Quantiles, missed releases charged, where ten samples lie above",
    );
    each(windows, out, |one, labels, out| {
        for q in quantiles(one) {
            let Some(value) = q.value_ns else { continue };
            let p = q.p.to_string();
            out.sample(&quantile, &[labels, &[("quantile", p.as_str())]].concat(), value as f64 / 1e9);
        }
    });
    let most = format!("{name}_observed_max_seconds");
    out.family(
        &most,
        "gauge",
        Some("seconds"),
        "Largest of the samples that were taken; no bound on any other",
    );
    each(windows, out, |one, labels, out| {
        if let Some(max) = maximum(one) {
            out.sample(&most, labels, max as f64 / 1e9);
        }
    });
}

/// Calls with each window and its labels.
fn each(
    windows: &[&Distribution],
    out: &mut Families,
    write: impl Fn(&Distribution, &[(&str, &str)], &mut Families),
) {
    for one in windows {
        let (cpu, thread) = (one.cpu.to_string(), one.thread.to_string());
        write(one, &[("phase", one.phase.as_str()), ("cpu", &cpu), ("thread", &thread)], out);
    }
}

fn stolen(document: &Document, out: &mut Families) {
    let windows: Vec<&Distribution> =
        document.analysis.distributions.iter().filter(|one| one.stolen.is_some()).collect();
    if windows.is_empty() {
        return;
    }
    out.family("stillcore_stolen_ratio", "gauge", Some("ratio"), "Share of its time that a busy loop lost");
    each(&windows, out, |one, labels, out| {
        let share = one.stolen.as_ref().map_or(0.0, |stolen| stolen.share);
        out.sample("stillcore_stolen_ratio", labels, share);
    });
}

fn events(document: &Document, out: &mut Families) {
    let windows = &document.analysis.events;
    if windows.is_empty() {
        return;
    }
    let known = || {
        windows.iter().flat_map(|window| {
            let known = window.classes.iter().filter(|row| row.observable || row.count > 0);
            known.map(move |row| (window, row))
        })
    };
    let mut family = |name: &str, unit: Option<&str>, help: &str, value: &dyn Fn(usize) -> f64| {
        out.family(name, "gauge", unit, help);
        for (at, (window, row)) in known().enumerate() {
            let (cpu, thread) = (window.cpu.to_string(), window.thread.to_string());
            let labels = [
                ("probe", window.probe.name()),
                ("phase", window.phase.as_str()),
                ("cpu", cpu.as_str()),
                ("thread", thread.as_str()),
                ("class", EventClass::name(row.class)),
            ];
            out.sample(name, &labels, value(at));
        }
    };
    let all: Vec<_> = known().collect();
    family("stillcore_interference_events", None, "Events on a measured CPU while the probe ran", &|at| {
        all[at].1.count as f64
    });
    family(
        "stillcore_interference_seconds",
        Some("seconds"),
        "Time that they took, nested ones excluded",
        &|at| all[at].1.net_ns as f64 / 1e9,
    );
    family("stillcore_interference_longest_seconds", Some("seconds"), "Longest of them", &|at| {
        all[at].1.max_ns as f64 / 1e9
    });
    family(
        "stillcore_interference_observed_seconds",
        Some("seconds"),
        "Time over which they were counted",
        &|at| all[at].0.duration_ns as f64 / 1e9,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use std::collections::BTreeSet;

    #[test]
    fn families_are_whole_named_once_and_typed_before_their_samples() {
        let text = openmetrics(&fixture::document());
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut family = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap();
                assert!(seen.insert(family), "{family} comes twice");
            } else if !line.starts_with('#') {
                assert!(line.starts_with(family), "{line} under {family}");
                let value = line.rsplit(' ').next().unwrap();
                assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
            } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                let (name, unit) = rest.split_once(' ').unwrap();
                assert!(name.ends_with(&format!("_{unit}")), "{line}");
            }
        }
        assert!(text.ends_with("# EOF\n") && seen.len() >= 12, "{seen:?}");
        assert!(!text.contains('\u{2212}'));
    }

    #[test]
    fn buckets_rise_to_all_samples() {
        let document = fixture::document();
        let text = openmetrics(&document);
        let one = document.analysis.distributions.iter().find(|one| one.probe == ProbeKind::Wakeup).unwrap();
        let labels = format!("{{phase=\"{}\",cpu=\"{}\",thread=\"0\"", one.phase, one.cpu);
        let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        let buckets: Vec<f64> = text
            .lines()
            .filter(|line| line.starts_with(&format!("stillcore_wakeup_latency_seconds_bucket{labels}")))
            .map(value)
            .collect();
        assert_eq!(buckets.len(), one.exceedances.len() + 1);
        assert!(buckets.is_sorted());
        assert!((buckets.last().unwrap() - one.n as f64).abs() < 0.5);
    }

    #[test]
    fn a_hostile_name_stays_inside_its_quotes() {
        let mut document = fixture::document();
        document.machine.machine.kernel.release = "6.1\"} 1\nevil 2 \\".into();
        let text = openmetrics(&document);
        assert!(text.contains("kernel=\"6.1\\\"} 1\\nevil 2 \\\\\""), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("evil")));
    }
}
