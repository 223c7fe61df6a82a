//! How things stand with a monitor, as metrics.
//!
//! Every series of a fixed set is there from the first scrape on, with 0; those with names of
//! threads and sources come when the monitor has given a name its row, and then stay. The number of
//! series is bounded by the rows: see docs/monitor.md.

use super::families::Families;
use model::monitor::{Actions, BOUNDS_NS, BreachKind, Dropped, Fate, NotRecorded, Status};

/// Which text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    Open,
    /// The older text of Prometheus, also for textfile collectors.
    Classic,
}

/// Every fate that a breach can have.
const FATES: [Fate; 7] = [
    Fate::Kept,
    Fate::Dropped(Dropped::Rate),
    Fate::Dropped(Dropped::Quota),
    Fate::Dropped(Dropped::Disk),
    Fate::NotRecorded(NotRecorded::Lost),
    Fate::NotRecorded(NotRecorded::TooLong),
    Fate::NotRecorded(NotRecorded::Ended),
];

/// The whole text. `now_s`: seconds since 1970, of this status.
pub fn monitor(status: &Status, format: Format, now_s: f64) -> String {
    let mut out = match format {
        Format::Open => Families::open(),
        Format::Classic => Families::classic(),
    };
    about(status, &mut out);
    wakeups(status, &mut out);
    breaches(status, &mut out);
    interference(status, &mut out);
    offences(status, &mut out);
    machine(status, &mut out);
    cost(status, &mut out);
    gauge(&mut out, "stillcore_last_success_timestamp_seconds", Some("seconds"), "When this was true", now_s);
    out.end()
}

fn gauge(out: &mut Families, name: &str, unit: Option<&str>, help: &str, value: f64) {
    out.family(name, "gauge", unit, help);
    out.sample(name, &[], value);
}

/// `name` is without `_total`.
fn counter(out: &mut Families, name: &str, unit: Option<&str>, help: &str, value: f64) {
    out.family(name, "counter", unit, help);
    out.sample(&format!("{name}_total"), &[], value);
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn about(status: &Status, out: &mut Families) {
    let cpus = status.cpus.to_string();
    out.family("stillcore_monitor_about", "gauge", None, "What is watched; always 1");
    let labels =
        [("version", status.version.as_str()), ("cpus", &cpus), ("threads", status.threads_watched.as_str())];
    out.sample("stillcore_monitor_about", &labels, 1.0);
    let (name, help) = ("stillcore_observed_seconds", "For how long the CPUs were watched");
    counter(out, name, Some("seconds"), help, seconds(status.watched_ns));
    let (name, help) = ("stillcore_wakeup_threshold_seconds", "A wake-up that takes longer is a breach");
    gauge(out, name, Some("seconds"), help, seconds(status.limit_ns));
}

fn wakeups(status: &Status, out: &mut Families) {
    let family = "stillcore_wakeup_latency_seconds";
    let help = "From the wake-up of a thread until it ran on a watched CPU";
    out.family(family, "histogram", Some("seconds"), help);
    for one in &status.threads {
        let cpu = one.cpu.to_string();
        let labels = [("cpu", cpu.as_str()), ("comm", one.comm.as_str())];
        let bucket = format!("{family}_bucket");
        let mut below = 0;
        for (bound_ns, count) in BOUNDS_NS.iter().zip(one.latency.counts) {
            below += count;
            let bound = seconds(*bound_ns).to_string();
            out.sample(&bucket, &[&labels[..], &[("le", bound.as_str())]].concat(), below as f64);
        }
        let count = one.latency.count() as f64;
        out.sample(&bucket, &[&labels[..], &[("le", "+Inf")]].concat(), count);
        out.sample(&format!("{family}_sum"), &labels, seconds(one.latency.sum_ns));
        out.sample(&format!("{family}_count"), &labels, count);
    }
    let help = "Wake-ups of which not all was recorded, so that nothing is known of their latency";
    counter(out, "stillcore_wakeup_unjudged", None, help, status.unjudged as f64);
}

fn breaches(status: &Status, out: &mut Families) {
    out.family(
        "stillcore_breaches",
        "counter",
        None,
        "Times that something was too late, by what became of their recording",
    );
    for kind in BreachKind::ALL {
        for fate in FATES {
            let (name, why) = (fate.name(), fate.why());
            let is = |row: &&model::monitor::FateCount| {
                row.kind == kind && row.fate == name && row.why.as_deref() == why
            };
            let count = status.breaches.iter().find(is).map_or(0, |row| row.count);
            let labels = [("kind", kind.name()), ("fate", name), ("why", why.unwrap_or_default())];
            out.sample("stillcore_breaches_total", &labels, count as f64);
        }
    }
    let (name, help) = ("stillcore_breaches_kept_bytes", "Disk space of all breaches that are kept");
    gauge(out, name, Some("bytes"), help, status.kept_bytes as f64);
    let (name, help) = ("stillcore_breaches_quota_bytes", "The most that they may take");
    gauge(out, name, Some("bytes"), help, status.quota_bytes as f64);
    if let Some(Actions { done, failed, skipped }) = status.actions {
        let help = "Programs that were to be started for breaches, by what came of them";
        out.family("stillcore_actions", "counter", None, help);
        for (result, count) in [("done", done), ("failed", failed), ("skipped", skipped)] {
            out.sample("stillcore_actions_total", &[("result", result)], count as f64);
        }
    }
}

fn interference(status: &Status, out: &mut Families) {
    let rows: Vec<_> = status.interference.iter().map(|row| (row, row.cpu.to_string())).collect();
    let events = "stillcore_interference_events";
    out.family(events, "counter", None, "What ran on a watched CPU, by class and source");
    for (row, cpu) in &rows {
        let labels = [("cpu", cpu.as_str()), ("class", row.class.name()), ("source", row.source.as_str())];
        out.sample(&format!("{events}_total"), &labels, row.count as f64);
    }
    let time = "stillcore_interference_seconds";
    out.family(time, "counter", Some("seconds"), "How long that ran");
    for (row, cpu) in &rows {
        let labels = [("cpu", cpu.as_str()), ("class", row.class.name()), ("source", row.source.as_str())];
        out.sample(&format!("{time}_total"), &labels, seconds(row.ns));
    }
}

/// By class alone: callers come and go, and `monitor offences` lists them.
fn offences(status: &Status, out: &mut Families) {
    let events = "stillcore_offences";
    out.family(events, "counter", None, "What tasks on other CPUs caused on the watched ones, by class");
    for sum in &status.offence_sums {
        out.sample(&format!("{events}_total"), &[("class", sum.class.name())], sum.count as f64);
    }
    let time = "stillcore_offences_seconds";
    out.family(time, "counter", Some("seconds"), "How long that ran");
    for sum in &status.offence_sums {
        out.sample(&format!("{time}_total"), &[("class", sum.class.name())], seconds(sum.ns));
    }
}

fn machine(status: &Status, out: &mut Families) {
    let steal = "stillcore_hypervisor_steal_seconds";
    out.family(steal, "counter", Some("seconds"), "Time that the hypervisor took from a watched CPU");
    for (cpu, ns) in status.cpus.iter().zip(&status.steal_ns) {
        out.sample(&format!("{steal}_total"), &[("cpu", &cpu.to_string())], seconds(*ns));
    }
    if let Some(throttled) = &status.throttled {
        let name = "stillcore_throttled";
        out.family(name, "counter", None, "How often heat slowed a watched CPU");
        for (cpu, count) in status.cpus.iter().zip(throttled) {
            out.sample(&format!("{name}_total"), &[("cpu", &cpu.to_string())], *count as f64);
        }
    }
    let drifted = status.drifted.as_ref().map(Vec::len);
    let help = "Whether stillcore has isolated CPUs here";
    gauge(out, "stillcore_isolation_applied", None, help, f64::from(u8::from(drifted.is_some())));
    let help = "Settings of that isolation that do not hold now";
    gauge(out, "stillcore_isolation_drifted", None, help, drifted.unwrap_or(0) as f64);
    out.family("stillcore_lost", "counter", None, "What was lost");
    out.sample("stillcore_lost_total", &[("what", "trace_events")], status.lost_events as f64);
}

fn cost(status: &Status, out: &mut Families) {
    let cost = &status.cost;
    out.family("stillcore_observer_cpu_seconds", "counter", Some("seconds"), "CPU time of the monitor");
    for (process, ns) in [("monitor", cost.process_ns), ("explain", cost.children_ns)] {
        out.sample("stillcore_observer_cpu_seconds_total", &[("process", process)], seconds(ns));
    }
    let help = "Events that the kernel recorded for it";
    counter(out, "stillcore_observer_events", None, help, cost.events as f64);
    if let Some(event_ns) = cost.event_ns {
        let help = "What one takes the CPU that it happens on";
        gauge(out, "stillcore_observer_event_seconds", Some("seconds"), help, event_ns / 1e9);
    }
    let help = "Memory of the monitor";
    let bytes = (cost.rss_kib * 1024) as f64;
    gauge(out, "stillcore_observer_resident_memory_bytes", Some("bytes"), help, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::EventClass;
    use model::monitor::{Buckets, FateCount, InterferenceStatus, OffenceSum, ThreadStatus};
    use std::collections::BTreeSet;

    fn status() -> Status {
        let mut latency = Buckets::default();
        [900, 3_000, 3_000, 2_000_000_000].into_iter().for_each(|ns| latency.add(ns));
        let text = serde_json::json!({
            "schema": "stillcore.monitor-status/1", "version": "0.1.0", "pid": 7, "began": "", "at": "",
            "watched_ns": 61_500_000_000u64, "cpus": "2,3", "threads_watched": "real-time threads",
            "limit_ns": 500_000, "interference_limit_ns": null, "threads": [], "interference": [],
            "breaches": [], "last": null, "kept_bytes": 5, "quota_bytes": 9, "given_up": 0, "lost_events": 3,
            "unjudged": 4, "drifted": ["x"], "steal_ns": [1_000_000_000u64, 0], "throttled": [3, 0],
            "cost": { "process_ns": 1, "children_ns": 2, "events": 6, "event_ns": 90.5, "rss_kib": 1 },
            "limits": []
        });
        let mut status: Status = serde_json::from_value(text).unwrap();
        status.threads = vec![ThreadStatus { comm: "a\"b\\c".to_owned(), cpu: 2, latency }];
        let class = EventClass::Irq;
        let source = "eth0".to_owned();
        status.interference = vec![InterferenceStatus { cpu: 3, class, source, count: 8, ns: 1_500 }];
        status.offence_sums = vec![OffenceSum { class, count: 2, ns: 900 }];
        let (fate, why) = ("dropped".to_owned(), Some("rate".to_owned()));
        status.breaches = vec![FateCount { kind: BreachKind::Wakeup, fate, why, count: 11 }];
        status
    }

    /// Name without its suffix, of a sample.
    fn family(name: &str) -> &str {
        let suffixes = ["_total", "_bucket", "_sum", "_count"];
        suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
    }

    #[test]
    fn every_sample_stands_under_its_family_and_once() {
        for format in [Format::Open, Format::Classic] {
            let text = monitor(&status(), format, 1_700_000_000.5);
            assert_eq!(text.ends_with("# EOF\n"), format == Format::Open);
            let (mut now, mut families, mut series) = (String::new(), BTreeSet::new(), BTreeSet::new());
            for line in text.lines().filter(|line| *line != "# EOF") {
                if let Some(rest) = line.strip_prefix("# TYPE ") {
                    let (name, kind) = rest.split_once(' ').unwrap();
                    // The older text declares a counter by the name of its samples.
                    assert_eq!(
                        name.ends_with("_total"),
                        kind == "counter" && format == Format::Classic,
                        "{line}"
                    );
                    now = name.strip_suffix("_total").unwrap_or(name).to_owned();
                    assert!(families.insert(now.clone()), "{line}");
                } else if !line.starts_with('#') {
                    let (name, value) = line.rsplit_once(' ').unwrap();
                    assert!(value.parse::<f64>().is_ok(), "{line}");
                    assert!(series.insert(name.to_owned()), "twice: {line}");
                    assert_eq!(family(name.split('{').next().unwrap()), now, "{line}");
                }
            }
            assert!(families.iter().all(|name| name.starts_with("stillcore_")));
        }
    }

    #[test]
    fn buckets_add_up_and_names_are_quoted() {
        let text = monitor(&status(), Format::Open, 0.0);
        let of = |le: &str| {
            let series = format!(
                "stillcore_wakeup_latency_seconds_bucket{{cpu=\"2\",comm=\"a\\\"b\\\\c\",le=\"{le}\"}} "
            );
            text.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok()).unwrap()
        };
        assert_eq!((of("0.000001"), of("0.000002"), of("0.000005"), of("1"), of("+Inf")), (1, 1, 3, 3, 4));
        let dropped = "stillcore_breaches_total{kind=\"wakeup\",fate=\"dropped\",why=\"rate\"} 11";
        assert!(text.contains(dropped), "{text}");
        assert!(text.contains("stillcore_breaches_total{kind=\"reported\",fate=\"kept\",why=\"\"} 0"));
        assert!(text.contains("stillcore_hypervisor_steal_seconds_total{cpu=\"2\"} 1\n"));
        assert!(text.contains("stillcore_throttled_total{cpu=\"2\"} 3\n"));
        assert!(text.contains("stillcore_isolation_drifted 1\n"));
    }
}
