//! The conditions of a run: what was measured, by whom, when, how long, with what policy, clock,
//! kernel and losses. No value means anything without them.

use crate::{Document, format, guarantee, heading};
use model::run::{ProbeRecord, Run, TRACED};
use serde::Serialize;
use std::collections::BTreeSet;

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Condition {
    /// What it is about.
    pub name: &'static str,
    /// What it was; ASCII.
    pub text: String,
    /// Whether it differs from the request, or weakens every value.
    pub weak: bool,
}

/// All of them, in the order in which a reader asks.
pub(crate) fn conditions(document: &Document) -> Vec<Condition> {
    let strong = |name, text| Condition { name, text, weak: false };
    let (run, machine) = (&document.run, &document.machine.machine);
    let what = if [heading::TOP, heading::MONITOR].contains(&heading::verb(run).as_str()) {
        "watched"
    } else {
        "measured"
    };
    let mut all = vec![
        strong(what, measured(document)),
        strong("by", by(document)),
        strong("command", run.command.join(" ")),
        strong("started", format::moment(&run.started_at)),
    ];
    all.extend(samples(document).into_iter().map(|text| strong("samples", text)));
    all.extend(policies(&run.probes));
    all.extend(clocks(&run.probes).into_iter().map(|text| strong("clock", text)));
    all.push(strong("idle states", idle_states(run)));
    let host =
        machine.hypervisor.as_ref().map_or_else(String::new, |name| format!("; virtual machine ({name})"));
    let preempt =
        machine.kernel.preempt.as_ref().map_or_else(String::new, |model| format!(", preemption {model}"));
    let realtime = if machine.kernel.realtime { ", PREEMPT_RT" } else { "" };
    let (release, arch) = (&machine.kernel.release, &machine.kernel.arch);
    all.push(strong("kernel", format!("{release} {arch}{preempt}{realtime}{host}")));
    all.push(losses(document));
    all
}

fn measured(document: &Document) -> String {
    let run = &document.run;
    let span = |record: &ProbeRecord| record.t1_ns.saturating_sub(record.t0_ns).max(0) as u64;
    let longest = run.probes.iter().filter(|record| record.phase != TRACED).map(span).max();
    let length = longest.map_or_else(String::new, |ns| format!(", {}", format::span(ns)));
    let phases = run.phases.iter().filter(|phase| phase.name != TRACED).count();
    let windows =
        if phases > 1 { format!(" a window, {} windows", run.windows.len()) } else { String::new() };
    format!(
        "{}{length}{windows}; all else on {}",
        heading::cpus(&run.measured_cpus),
        heading::cpus(&run.housekeeping_cpus)
    )
}

fn by(document: &Document) -> String {
    let user = match document.machine.machine.limits.euid {
        0 => "root".to_owned(),
        euid => format!("user {euid}, without root"),
    };
    format!("stillcore {}, as {user}", document.run.tool_version)
}

/// A line a kind of probe: how many, and what became of them.
fn samples(document: &Document) -> Vec<String> {
    let probes = &document.run.probes;
    // What was measured for the trace alone comes last, and apart.
    let key = |record: &ProbeRecord| (record.phase == TRACED, record.probe());
    let kinds: BTreeSet<_> = probes.iter().map(key).collect();
    let line = |(traced, kind)| {
        let ours = probes.iter().filter(|one| key(one) == (traced, kind));
        let sum = |of: fn(&ProbeRecord) -> u64| ours.clone().map(of).fold(0, u64::saturating_add);
        let (n, lost) = (format::count(sum(|one| one.samples)), format::count(sum(|one| one.ring_lost)));
        let (released, missed) =
            (format::count(sum(ProbeRecord::released)), format::count(sum(ProbeRecord::missed)));
        let known = document.run.has_ended();
        let accounts = match kind {
            kind if !known && kind.has_releases() => {
                format!("served {n}, missed {missed} among them; how many were lost is not known")
            }
            _ if !known => format!("{n} stored; how many were lost is not known"),
            model::sample::ProbeKind::Ipi => format!("sent {released} = received {n} + lost {missed}"),
            model::sample::ProbeKind::Graph => {
                let lost = format::count(sum(|one| one.missed().saturating_add(one.ring_lost)));
                format!("sent {released} = received {n} + lost {lost}")
            }
            kind if kind.has_releases() => {
                format!("released {released} = served {n} + missed {missed} + lost {lost}")
            }
            _ => format!("{n} stored, {lost} lost"),
        };
        let apart = if traced { " (for the trace, in no figure)" } else { "" };
        format!("{}{apart}: {accounts}", kind.name())
    };
    kinds.into_iter().map(line).collect()
}

/// A line for every pair of requested and effective policy.
fn policies(probes: &[ProbeRecord]) -> Vec<Condition> {
    let mut conditions: Vec<Condition> = Vec::new();
    for record in probes {
        let (asked, effective) = (&record.policy_asked, &record.policy_effective);
        let mut text = guarantee::policy(effective);
        if asked != effective {
            text = format!("{text}; asked for: {}", guarantee::policy(asked));
        }
        if !effective.is_real_time() {
            text = format!("{text}; timer slack {}", format::ns(record.timer_slack_ns as i64));
        }
        let condition = Condition { name: "policy", text, weak: asked != effective };
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    conditions
}

fn idle_states(run: &Run) -> String {
    match run.dma_latency_us {
        Some(0) => "none that takes time to leave: /dev/cpu_dma_latency was held at 0 us".to_owned(),
        Some(us) => format!("none that takes more than {us} us to leave (/dev/cpu_dma_latency was held)"),
        None => "the machine's: the time to leave them is in the figures".to_owned(),
    }
}

fn clocks(probes: &[ProbeRecord]) -> BTreeSet<String> {
    let line = |record: &ProbeRecord| {
        let releases = record.detail.releases().and_then(|releases| releases.release_clock.as_ref());
        let releases = releases.map_or_else(String::new, |clock| format!(", releases by {clock}"));
        let error = record.detail.clock_error_ns();
        let error = error.map_or_else(String::new, |ns| format!(", known to {}", format::ns(ns as i64)));
        (record.counter.clone() + &releases, error)
    };
    let mut lines: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    for record in probes {
        let (clock, error) = line(record);
        let kept = lines.entry(clock).or_default();
        // The vaguest of several: by the number, since texts of ns and us do not compare.
        let worst = probes.iter().filter_map(|one| one.detail.clock_error_ns()).max()
            == record.detail.clock_error_ns();
        if kept.is_empty() || worst {
            *kept = error;
        }
    }
    lines.into_iter().map(|(clock, error)| clock + &error).collect()
}

fn losses(document: &Document) -> Condition {
    let losses = document.run.losses;
    let text = format!(
        "missed releases {}, samples {}, trace events {}",
        format::count(losses.missed_releases),
        format::count(losses.ring_samples),
        format::count(losses.trace_events)
    );
    let text = match &document.run {
        run if run.complete => text,
        run if run.has_ended() => format!("{text}; the run is partial"),
        _ => "not known: the run was cut off before it counted its losses".to_owned(),
    };
    let lost = [losses.missed_releases, losses.ring_samples, losses.trace_events].iter().any(|one| *one > 0);
    let weak = lost || !document.run.complete;
    Condition { name: "lost", text, weak }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use model::sample::Policy;

    fn text(document: &Document, name: &str) -> String {
        let conditions = conditions(document);
        conditions
            .iter()
            .filter(|one| one.name == name)
            .map(|one| one.text.as_str())
            .collect::<Vec<_>>()
            .join(" | ")
    }

    #[test]
    fn a_refused_policy_is_reported() {
        let mut document = fixture::document();
        assert_eq!(text(&document, "policy"), "SCHED_FIFO, priority 95");
        document.run.probes[0].policy_effective = Policy::other();
        let policies = conditions(&document);
        let refused = policies.iter().find(|one| one.weak && one.name == "policy").unwrap();
        assert_eq!(refused.text, "SCHED_OTHER; asked for: SCHED_FIFO, priority 95; timer slack 50.00 us");
    }

    #[test]
    fn what_was_measured_for_the_trace_alone_is_marked() {
        let mut document = fixture::document();
        document.run.probes[0].phase = TRACED.to_owned();
        let samples = text(&document, "samples");
        assert_eq!(samples.matches("wakeup").count(), 2, "{samples}");
        assert!(samples.contains("wakeup (for the trace, in no figure): released"), "{samples}");
    }

    #[test]
    fn samples_and_losses_are_accounted_for() {
        let mut document = fixture::document();
        assert!(text(&document, "samples").contains("missed 1"), "{}", text(&document, "samples"));
        document.run.losses = model::run::Losses::default();
        assert!(conditions(&document).iter().all(|one| !one.weak));
        document.run.complete = false;
        assert!(conditions(&document).iter().any(|one| one.weak && one.name == "lost"));
    }
}
