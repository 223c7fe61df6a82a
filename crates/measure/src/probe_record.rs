//! What the run says of a probe: the metadata of its samples, its record, what it could not do.

use super::budgets::budgets;
use super::drain::Tally;
use super::spec::{Burn, ProbeReport, ProbeSpec, Task, TasksetSpec, Wake};
use machine::Root;
use model::probe::{
    IpiDetail, NoiseDetail, NoiseRecord, OverheadsDetail, PeriodicDetail, ProbeDetail, Releases, Served,
    TaskRecord, TasksetDetail, WakeUpsRecord,
};
use model::run::ProbeRecord;
use model::sample::{ProbeKind, SampleMeta};
use model::usage::Stretch;
use sys::clock::ClockId;

pub(super) fn meta(spec: &ProbeSpec, report: &ProbeReport, phase: &str) -> SampleMeta {
    let (period_ns, clock) = match &spec.task {
        Task::Wakeup(task) => (Some(task.period_ns as u64), task.clock),
        Task::Noise(_) | Task::Ipi(_) | Task::Overheads(_) => (None, ClockId::Monotonic),
        Task::Periodic(task) => (Some(task.period_ns as u64), ClockId::Monotonic),
        Task::Taskset(task) => (Some(task.period_ns as u64), ClockId::Monotonic),
    };
    let yields = match &spec.task {
        Task::Wakeup(_) => true,
        Task::Periodic(task) => task.wake == Wake::Scheduler,
        _ => false,
    };
    let by_kernel = yields && report.policy_effective.reservation.is_some();
    SampleMeta {
        probe: spec.kind(),
        cpu: spec.cpu(),
        thread: spec.thread,
        phase: phase.to_owned(),
        unit: "ns".to_owned(),
        clock: if by_kernel { SCHEDULER_CLOCK.to_owned() } else { clock.name().to_owned() },
        counter: report.counter.name().to_owned(),
        policy_asked: spec.policy.clone(),
        policy_effective: report.policy_effective.clone(),
        period_ns,
        threshold_ns: (spec.kind() == ProbeKind::Noise).then_some(report.threshold_ns),
    }
}

#[expect(clippy::too_many_arguments, reason = "it puts together what comes from as many places")]
pub(super) fn record(
    spec: &ProbeSpec,
    meta: &SampleMeta,
    report: &ProbeReport,
    file: String,
    samples: u64,
    ring_lost: u64,
    tally: Tally,
    slices: Vec<Stretch>,
) -> ProbeRecord {
    let served = Served {
        released: report.result.released,
        // Releases that passed after the last sample are in no sample's `missed`, but they were
        // requested.
        missed: report.result.released.saturating_sub(samples + ring_lost),
    };
    let by_kernel = meta.clock == SCHEDULER_CLOCK && report.deadline_unread.is_none();
    let releases = Releases {
        period_ns: meta.period_ns.unwrap_or(0),
        served,
        release_clock: (meta.clock != ClockId::Monotonic.name()).then(|| meta.clock.clone()),
        clock_error_ns: by_kernel.then_some(tally.clock_error_ns),
    };
    let detail = match &spec.task {
        Task::Wakeup(_) => ProbeDetail::Wakeup(releases),
        Task::Noise(_) => ProbeDetail::Noise(NoiseDetail {
            threshold_ns: report.threshold_ns,
            iterations: report.result.iterations,
            spin_ns: tally.spin_ns,
            clock_error_ns: Some(tally.clock_error_ns),
            noise: report.noise.clone().map(|noise| with_budgets(noise, meta.cpu)),
            slices,
        }),
        Task::Periodic(_) => ProbeDetail::Periodic(PeriodicDetail { releases, jobs: report.jobs.clone() }),
        Task::Taskset(task) => ProbeDetail::Taskset(TasksetDetail { releases, task: Some(task_of(task)) }),
        Task::Ipi(task) => {
            let wake_ups = WakeUpsRecord { interval_ns: task.interval_ns as u64, busy: task.busy };
            ProbeDetail::Ipi(IpiDetail { served, wake_ups: Some(wake_ups) })
        }
        Task::Overheads(_) => ProbeDetail::Overheads(OverheadsDetail {}),
    };
    ProbeRecord {
        detail,
        phase: meta.phase.clone(),
        thread: meta.thread,
        cpus: (spec.cpus.len() > 1).then(|| spec.cpus.clone()),
        pid: report.pid,
        tid: report.tid,
        file,
        t0_ns: report.t0_ns + report.noise.as_ref().map_or(0, |noise| noise.preheat_ns as i64),
        t1_ns: report.result.t1_ns,
        counter: meta.counter.clone(),
        timer_slack_ns: report.timer_slack_ns,
        policy_effective: meta.policy_effective.clone(),
        samples,
        ring_lost,
        faults: report.used.faults,
        switches: report.used.switches,
        cpu_time_ns: report.cpu_time_ns,
        rss_kib: report.rss_kib,
        ..ProbeRecord::of(meta.probe, meta.cpu, meta.policy_asked.clone())
    }
}

/// Which task of a set it was.
fn task_of(task: &TasksetSpec) -> TaskRecord {
    let slot_ns = match task.burn {
        Burn::Slots { slot_ns } => Some(slot_ns as u64),
        Burn::CpuTime => None,
    };
    TaskRecord {
        name: task.name.clone(),
        deadline_ns: task.deadline_ns as u64,
        cost_ns: task.cost_ns as u64,
        offset_ns: task.offset_ns as u64,
        slot_ns,
    }
}

/// What else may take the CPU is read on this side: the probe has no memory to spare.
fn with_budgets(noise: NoiseRecord, cpu: u32) -> NoiseRecord {
    let (throttling, fair_server) = budgets(&Root::live(), cpu);
    NoiseRecord { throttling, fair_server, ..noise }
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
