//! What the run says of a probe: the metadata of its samples, its record, what it could not do.

use super::kind::{Drain, ProbeReport};
use super::spec::ProbeSpec;
use model::probe::{ProbeDetail, Served};
use model::run::ProbeRecord;
use model::sample::SampleMeta;
use sys::clock::ClockId;

pub(super) fn meta(spec: &ProbeSpec, report: &ProbeReport, phase: &str) -> SampleMeta {
    let probe = spec.task.probe();
    let by_kernel = probe.yields() && report.policy_effective.reservation.is_some();
    let clock = if by_kernel { SCHEDULER_CLOCK } else { probe.clock().name() };
    let threshold_ns = match &report.detail {
        ProbeDetail::Noise(noise) => Some(noise.threshold_ns),
        _ => None,
    };
    SampleMeta {
        probe: spec.kind(),
        cpu: spec.cpu(),
        thread: spec.thread,
        phase: phase.to_owned(),
        unit: "ns".to_owned(),
        clock: clock.to_owned(),
        counter: report.counter.name().to_owned(),
        policy_asked: spec.policy.clone(),
        policy_effective: report.policy_effective.clone(),
        period_ns: probe.period_ns().map(|ns| ns as u64),
        threshold_ns,
    }
}

/// The record of a probe as far as it is known before the window.
pub(super) fn record(spec: &ProbeSpec, meta: &SampleMeta, report: &ProbeReport, file: String) -> ProbeRecord {
    let mut record = ProbeRecord {
        detail: report.detail.clone(),
        phase: meta.phase.clone(),
        thread: meta.thread,
        cpus: (spec.cpus.len() > 1).then(|| spec.cpus.clone()),
        pid: report.pid,
        tid: report.tid,
        file,
        t0_ns: report.t0_ns,
        t1_ns: report.result.t1_ns,
        counter: meta.counter.clone(),
        timer_slack_ns: report.timer_slack_ns,
        policy_effective: meta.policy_effective.clone(),
        faults: report.used.faults,
        switches: report.used.switches,
        cpu_time_ns: report.cpu_time_ns,
        rss_kib: report.rss_kib,
        ..ProbeRecord::of(meta.probe, meta.cpu, meta.policy_asked.clone())
    };
    if let Some(releases) = record.detail.releases_mut() {
        releases.period_ns = meta.period_ns.unwrap_or(0);
        releases.release_clock = (meta.clock != ClockId::Monotonic.name()).then(|| meta.clock.clone());
    }
    spec.task.probe().complete(&mut record);
    record
}

/// Adds what was counted by the end of the window.
pub(super) fn count(record: &mut ProbeRecord, report: &ProbeReport, drain: &dyn Drain) {
    let accounted = record.samples + record.ring_lost;
    if let Some(served) = record.detail.served_mut() {
        let released = report.result.released;
        // Releases that passed after the last sample are in no sample's `missed`, but they were
        // requested.
        *served = Served { released, missed: released.saturating_sub(accounted) };
    }
    if let Some(releases) = record.detail.releases_mut() {
        let known =
            releases.release_clock.as_deref() == Some(SCHEDULER_CLOCK) && report.deadline_unread.is_none();
        releases.clock_error_ns = known.then(|| drain.error_ns());
    }
    drain.account(record, report.result);
}

/// Name of the clock that the kernel releases SCHED_DEADLINE jobs in.
const SCHEDULER_CLOCK: &str = "scheduler";

/// What the probe could not do, one sentence each.
pub(super) fn limits(meta: &SampleMeta, report: &ProbeReport, postponed: u64) -> Vec<String> {
    let cpu = meta.cpu;
    let policy = report.policy_refused.as_ref().map(|why| {
        format!(
            "measured under {} instead of {} on CPU {cpu} ({why}): latencies include waiting for ordinary tasks and a timer slack \
             of {} ns, and are not comparable with real-time figures",
            report.policy_effective.name, meta.policy_asked.name, report.timer_slack_ns
        )
    });
    let memory = report.memory_unlocked.as_ref().map(|why| {
        format!("the memory of the probe on CPU {cpu} could not be locked ({why}): page faults may show as latency")
    });
    let releases = report.deadline_unread.as_ref().map(|why| {
        format!(
            "the deadlines of the probe on CPU {cpu} could not be read ({why}): its releases are taken to be the earliest wake-ups, a \
             period apart, so that lateness is against their lower envelope and drifts with the scheduler's clock"
        )
    });
    let postponed = (postponed > 0).then(|| {
        format!(
            "{postponed} jobs of the probe on CPU {cpu} ran out of the runtime reserved for them, and the kernel held them back until the \
             next period: a longer --runtime gives them room"
        )
    });
    let said = report.limits.iter().cloned();
    policy.into_iter().chain(memory).chain(said).chain(releases).chain(postponed).collect()
}
