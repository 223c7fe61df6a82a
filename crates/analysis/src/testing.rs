//! Records and series for the tests of this crate.

use attribution::attribute::Causes;
use attribution::spans::Span;
use attribution::view::{Level, Task};
use model::probe::{NoiseDetail, ProbeDetail, Releases, Served};
use model::run::{Losses, ObserverCost, ProbeRecord, Run, SCHEMA};
use model::sample::{Policy, ProbeKind};
use model::usage::Stretch;
use model::{Cpus, EventClass};

/// A record of a window from 0 to 1 s on CPU 1, nothing measured.
pub(crate) fn record(probe: ProbeKind) -> ProbeRecord {
    let mut detail = probe.detail();
    if let Some(releases) = detail.releases_mut() {
        releases.period_ns = 1_000_000;
    }
    ProbeRecord {
        detail,
        phase: "disturbed".into(),
        pid: 100,
        tid: 101,
        t1_ns: 1_000_000_000,
        counter: "CLOCK_MONOTONIC".into(),
        timer_slack_ns: 50_000,
        ..ProbeRecord::of(probe, 1, Policy::fifo(80))
    }
}

/// What a wake-up probe says of so many releases.
pub(crate) fn releases(period_ns: u64, released: u64, missed: u64) -> ProbeDetail {
    let served = Served { released, missed };
    ProbeDetail::Wakeup(Releases { period_ns, served, ..Releases::default() })
}

/// What a busy loop says that ran in these stretches.
pub(crate) fn spun(slices: &[[i64; 2]]) -> ProbeDetail {
    let slices: Vec<_> = slices.iter().map(|&[t0_ns, t1_ns]| Stretch { t0_ns, t1_ns }).collect();
    let spin_ns = slices.iter().map(|slice| (slice.t1_ns - slice.t0_ns) as u64).sum();
    ProbeDetail::Noise(NoiseDetail { spin_ns, slices, ..NoiseDetail::default() })
}

/// What ran in an interrupt, and counts.
pub(crate) fn span(cpu: u32, class: EventClass, [t0_ns, t1_ns]: [i64; 2]) -> Span {
    let (net_ns, label, task) = (t0_ns.abs_diff(t1_ns), 0, Task::unnamed(0, 0));
    let (level, causes) = (Level::Hard, Causes::default());
    Span { cpu, class, t0_ns, t1_ns, net_ns, label, level, task, counts: true, causes }
}

/// A run of one CPU in which nothing was measured.
pub(crate) fn run() -> Run {
    Run {
        schema: SCHEMA.into(),
        tool_version: "0".into(),
        command: Vec::new(),
        started_at: "2026-01-01T00:00:00Z".into(),
        complete: true,
        incomplete_reason: None,
        stopped_at: None,
        machine_before: "machine-before.json".into(),
        machine_after: None,
        measured_cpus: Cpus::one(1),
        housekeeping_cpus: Cpus::one(0),
        dma_latency_us: None,
        idle_states: model::cpu_states::IdleStates::default(),
        frequency_change_ns: model::cpu_states::FrequencyChanges::default(),
        plan: Vec::new(),
        phases: Vec::new(),
        windows: Vec::new(),
        probes: Vec::new(),
        stressors: Vec::new(),
        trace: None,
        losses: Losses::default(),
        observer: ObserverCost::default(),
        seeds: std::collections::BTreeMap::new(),
        limits: Vec::new(),
    }
}
