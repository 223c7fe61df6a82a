//! The measuring side of a probe: set up, pin, lock, prefault, wait for the start, measure, report.
//!
//! Runs as `stillcore internal probe SPEC`, with the shared ring as descriptor 3. Everything that can fault, allocate or fail happens
//! before the probe says that it is ready.

use super::noise::{self, Dial, Gear};
use super::own::Own;
use super::periodic::{self, Kit};
use super::ring::{Ring, State};
use super::spec::{LoopResult, ProbeReport, ProbeSpec, Task};
use super::wakeup_deadline::{self, Releases};
use super::{taskset, wakeup};
use crate::batch::Finished;
use crate::{ipi, overheads};
use journal::enter;
use model::run::NoiseRecord;
use model::usage::Usage;
use rustix::fd::{FromRawFd, OwnedFd};
use std::io;
use sys::counter::Counter;
use sys::{clock, memory, sched, signals, spawn};

/// Polling interval of the ring while waiting for the start: short against a window, long against
/// anything measured.
const WAIT_STEP_NS: i64 = 2_000_000;
/// A probe whose parent never starts it ends by itself.
const WAIT_LIMIT_NS: i64 = 60 * clock::SECOND_NS;

/// Does what the spec says on the ring at descriptor 3. The only caller is the hidden verb.
/// `announce` takes what is known before the window, for whoever reads the samples of a run that is
/// killed.
pub fn run(
    spec: &ProbeSpec,
    announce: &mut dyn FnMut(&ProbeReport) -> io::Result<()>,
) -> io::Result<ProbeReport> {
    // SAFETY: the parent placed the ring at this number (sys/spawn.rs), and nothing else in this process owns it.
    let file = unsafe { OwnedFd::from_raw_fd(spawn::SHARED_FD) };
    let mut ring = Ring::map(&file)?;
    enter::onto(&spec.cpus)?;
    signals::allow_wake();
    let memory_unlocked = memory::lock_on_fault().err().map(|error| error.to_string());
    let mut kit = Kit::of(spec)?;
    let policy_refused = set_policy(spec)?;
    let mut gear = match &spec.task {
        Task::Noise(noise) => Some(Gear { dial: Dial::calibrate(noise), own: Own::open(spec.cpu()) }),
        Task::Wakeup(_) | Task::Taskset(_) | Task::Periodic(_) | Task::Ipi(_) | Task::Overheads(_) => None,
    };
    let releases = sched::effective()?.reservation.map(Releases::open);
    memory::prefault_stack();
    rehearse(&mut ring, spec, gear.as_mut(), releases.as_ref())?;
    kit.iter_mut().for_each(|kit| kit.rehearse(&mut ring, releases.as_ref()));
    let mut report = ProbeReport {
        pid: rustix::process::getpid().as_raw_nonzero().get(),
        tid: sched::tid(),
        counter: counter(spec, gear.as_ref()),
        policy_effective: sched::effective()?,
        policy_refused,
        deadline_unread: releases.as_ref().and_then(|one| one.unread().map(str::to_owned)),
        timer_slack_ns: sched::timer_slack(),
        memory_unlocked,
        t0_ns: 0,
        threshold_ns: gear.as_ref().map_or(0, |gear| gear.dial.threshold_ns()),
        limits: Vec::new(),
        result: LoopResult::default(),
        used: Usage::default(),
        cpu_time_ns: 0,
        rss_kib: 0,
        jobs: kit.as_ref().map(Kit::record),
        noise: gear.as_ref().and_then(|gear| noise_record(spec, gear)),
        taken: false,
    };
    announce(&report)?;
    ring.set_state(State::Ready);
    report.t0_ns = wait_for_start(&ring)?;

    let before = clock::thread_usage()?;
    let cpu_time = clock::thread_cpu_ns();
    report.result = match &mut kit {
        Some(kit) => kit.run(&mut ring, report.t0_ns, spec.duration_ns, releases.as_ref()),
        None => measure(&mut ring, spec, gear.as_ref(), releases.as_ref(), report.t0_ns),
    };
    // Nothing that has not run before may come between the loop and these: the first call into a page of code is a fault.
    let used = || clock::thread_usage().map(|usage| (usage, clock::thread_cpu_ns()));
    let mut after = used()?;
    let batch = of_batch(&mut ring, spec, report.t0_ns)?;
    if batch.is_some() {
        after = used()?;
    }
    let (used_after, cpu_time_after) = after;
    ring.set_state(State::Done);
    report.taken = sched::affinity()? != spec.cpus;
    report.jobs = kit.map(Kit::close).transpose()?;
    report.limits.extend(report.jobs.iter().flat_map(periodic::limits));
    report.used = used_after - before;
    if let Some(batch) = batch {
        (report.result, report.limits, report.used.faults) = (batch.result, batch.limits, batch.used.faults);
    }
    report.cpu_time_ns = (cpu_time_after - cpu_time) as u64;
    report.rss_kib = clock::peak_rss_kib();
    Ok(report)
}

/// What the values are read from.
fn counter(spec: &ProbeSpec, gear: Option<&Gear>) -> Counter {
    match &spec.task {
        Task::Noise(_) => gear.map_or(Counter::Monotonic, |gear| gear.dial.counter),
        Task::Ipi(_) | Task::Overheads(_) => Counter::choose(),
        Task::Wakeup(_) | Task::Taskset(_) | Task::Periodic(_) => Counter::Monotonic,
    }
}

/// What the busy loop is; what else may take its CPU is for the other side to read.
fn noise_record(spec: &ProbeSpec, gear: &Gear) -> Option<NoiseRecord> {
    let Task::Noise(noise) = &spec.task else { return None };
    let least_turn_ns = gear.dial.least_turn_ns();
    Some(NoiseRecord {
        workload_bytes: noise.memmove_bytes,
        preheat_ns: noise.preheat_ns,
        least_turn_ns,
        bias_ns: if noise.bias { least_turn_ns.round() as u64 } else { 0 },
        read_ns: noise::read_costs(),
        smi: gear.own.smi.name(),
        smi_counted: gear.own.smi.read().is_some(),
        ..NoiseRecord::default()
    })
}

/// Runs the probe's loop; the noise loop is the one with gear, and under SCHED_DEADLINE the kernel releases the jobs.
fn measure(
    ring: &mut Ring,
    spec: &ProbeSpec,
    gear: Option<&Gear>,
    releases: Option<&Releases>,
    start_ns: i64,
) -> LoopResult {
    match (&spec.task, gear) {
        (Task::Wakeup(wakeup), _) => match releases {
            Some(releases) => wakeup_deadline::run(ring, wakeup, releases, start_ns, spec.duration_ns),
            None => wakeup::run(ring, wakeup, start_ns, spec.duration_ns),
        },
        (Task::Noise(noise), Some(gear)) => noise::run(ring, noise, gear, start_ns, spec.duration_ns),
        (Task::Taskset(one), _) => taskset::run(ring, one, start_ns, spec.duration_ns),
        // The periodic probe has its kit, and is run by that; the last two are run by `batch`.
        (Task::Noise(_), None) | (Task::Periodic(_) | Task::Ipi(_) | Task::Overheads(_), _) => {
            LoopResult::default()
        }
    }
}

/// Runs all that the window will run, once and short, so that no page of code or data is touched there for the first time.
fn rehearse(
    ring: &mut Ring,
    spec: &ProbeSpec,
    mut gear: Option<&mut Gear>,
    releases: Option<&Releases>,
) -> io::Result<()> {
    const SHORT_NS: i64 = 5_000_000;
    let mut short = ProbeSpec { duration_ns: SHORT_NS, ..spec.clone() };
    if let Task::Wakeup(wakeup) = &mut short.task {
        (wakeup.period_ns, wakeup.offset_ns, wakeup.warm_up, wakeup.loops) = (SHORT_NS / 4, 0, 2, 0);
    }
    if let Task::Taskset(one) = &mut short.task {
        (one.period_ns, one.offset_ns, one.cost_ns) = (SHORT_NS / 4, 0, SHORT_NS / 40);
    }
    if let Task::Noise(noise) = &mut short.task {
        noise.preheat_ns = 0;
    }
    // No gap is as long as this threshold: the ring, which nobody drains yet, cannot fill up.
    let threshold = gear.as_mut().map(|gear| std::mem::replace(&mut gear.dial.threshold_ticks, u64::MAX));
    measure(ring, &short, gear.as_deref(), releases, clock::now_ns());
    if let (Some(gear), Some(threshold)) = (gear, threshold) {
        gear.dial.threshold_ticks = threshold;
    }
    noise::store(ring, 0, 0);
    clock::thread_usage()?;
    clock::thread_cpu_ns();
    ring.rewind();
    Ok(())
}

/// Requests the policy, or stays with SCHED_OTHER and returns the reason.
fn set_policy(spec: &ProbeSpec) -> io::Result<Option<String>> {
    if spec.timer_slack_ns > 0 {
        sched::set_timer_slack(spec.timer_slack_ns)?;
    }
    let refused = sys::policy::set_policy(&spec.policy).err();
    let narrow = || {
        !std::fs::read_to_string("/sys/devices/system/cpu/online")
            .is_ok_and(|online| online.trim().parse().is_ok_and(|online: model::Cpus| online == spec.cpus))
    };
    Ok(refused.map(|error| sched::refusal(&spec.policy, &error, narrow())))
}

fn wait_for_start(ring: &Ring) -> io::Result<i64> {
    let give_up = clock::now_ns() + WAIT_LIMIT_NS;
    loop {
        if let Some(start) = ring.start_ns() {
            return Ok(start);
        }
        let now = clock::now_ns();
        if ring.stopped() || now > give_up {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the window never opened"));
        }
        clock::sleep_until(now + WAIT_STEP_NS);
    }
}

/// Runs the task of the order, if its loop finishes its samples itself.
fn of_batch(ring: &mut Ring, spec: &ProbeSpec, start_ns: i64) -> io::Result<Option<Finished>> {
    match &spec.task {
        Task::Ipi(task) => ipi::run(ring, task, spec, start_ns).map(Some),
        Task::Overheads(task) => overheads::run(ring, task, spec, start_ns).map(Some),
        _ => Ok(None),
    }
}
