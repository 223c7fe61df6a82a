//! Records and series for the tests of this crate.

use attribution::attribute::Causes;
use attribution::spans::Span;
use attribution::view::{Level, Task};
use model::run::{Losses, ObserverCost, ProbeRecord, Run, SCHEMA};
use model::sample::{Policy, ProbeKind};
use model::{Cpus, EventClass};

/// A record of a window from 0 to 1 s on CPU 1, nothing measured.
pub(crate) fn record(probe: ProbeKind) -> ProbeRecord {
    ProbeRecord {
        phase: "disturbed".into(),
        pid: 100,
        tid: 101,
        t1_ns: 1_000_000_000,
        counter: "CLOCK_MONOTONIC".into(),
        timer_slack_ns: 50_000,
        period_ns: Some(1_000_000),
        ..ProbeRecord::of(probe, 1, Policy::fifo(80))
    }
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
