//! The measuring side of a probe: set up, pin, lock, prefault, wait for the start, measure, report.
//!
//! Runs as `stillcore internal probe SPEC`, with the shared ring as descriptor 3. Everything that can fault, allocate or fail happens
//! before the probe says that it is ready.

use super::noise::{self, Dial};
use super::ring::{Ring, State};
use super::spec::{LoopResult, ProbeReport, ProbeSpec, Task};
use super::wakeup;
use crate::isolate;
use crate::sys::counter::Counter;
use crate::sys::{clock, memory, sched, spawn};
use rustix::fd::{FromRawFd, OwnedFd};
use std::io;

/// Distance of looks at the ring while waiting for the start: short against a window, long against anything measured.
const WAIT_STEP_NS: i64 = 2_000_000;
/// A probe whose parent never starts it ends by itself.
const WAIT_LIMIT_NS: i64 = 60 * clock::SECOND_NS;

/// Does what the spec says on the ring at descriptor 3. The only caller is the hidden verb.
pub fn run(spec: &ProbeSpec) -> io::Result<ProbeReport> {
    // SAFETY: the parent placed the ring at this number (sys/spawn.rs), and nothing else in this process owns it.
    let file = unsafe { OwnedFd::from_raw_fd(spawn::SHARED_FD) };
    let mut ring = Ring::map(&file)?;
    isolate::enter(&spec.cpus)?;
    let memory_unlocked = memory::lock_on_fault().err().map(|error| error.to_string());
    let policy_refused = set_policy(spec)?;
    let dial = match &spec.task {
        Task::Noise(noise) => Some(Dial::calibrate(noise)),
        Task::Wakeup(_) => None,
    };
    memory::prefault_stack();
    rehearse(&mut ring, spec, dial)?;
    let mut report = ProbeReport {
        pid: rustix::process::getpid().as_raw_nonzero().get(),
        tid: sched::tid(),
        counter: dial.map_or(Counter::Monotonic, |dial| dial.counter),
        policy_effective: sched::effective()?,
        policy_refused,
        timer_slack_ns: sched::timer_slack(),
        memory_unlocked,
        t0_ns: 0,
        threshold_ns: dial.map_or(0, Dial::threshold_ns),
        result: LoopResult::default(),
        faults: [0; 2],
        switches: [0; 2],
        cpu_time_ns: 0,
        rss_kib: 0,
    };
    ring.set_state(State::Ready);
    report.t0_ns = wait_for_start(&ring)?;

    let (faults, switches) = clock::thread_usage()?;
    let cpu_time = clock::thread_cpu_ns();
    report.result = measure(&mut ring, spec, dial, report.t0_ns);
    let cpu_time_after = clock::thread_cpu_ns();
    let (faults_after, switches_after) = clock::thread_usage()?;
    ring.set_state(State::Done);
    // The kernel takes a CPU that goes offline out of the affinity, and with it the meaning of everything measured since.
    if sched::affinity()? != spec.cpus {
        return Err(io::Error::other(format!("CPU {} was taken from it while it measured", spec.cpu())));
    }

    report.faults = std::array::from_fn(|kind| faults_after[kind] - faults[kind]);
    report.switches = std::array::from_fn(|kind| switches_after[kind] - switches[kind]);
    report.cpu_time_ns = (cpu_time_after - cpu_time) as u64;
    report.rss_kib = clock::peak_rss_kib();
    Ok(report)
}

/// Runs the probe's loop; the noise loop is the one with a dial.
fn measure(ring: &mut Ring, spec: &ProbeSpec, dial: Option<Dial>, start_ns: i64) -> LoopResult {
    match (&spec.task, dial) {
        (Task::Wakeup(wakeup), _) => wakeup::run(ring, wakeup, start_ns, spec.duration_ns),
        (Task::Noise(noise), Some(dial)) => noise::run(ring, noise, dial, start_ns, spec.duration_ns),
        (Task::Noise(_), None) => LoopResult::default(),
    }
}

/// Runs all that the window will run, once and short, so that no page of code or data is touched there for the first time.
fn rehearse(ring: &mut Ring, spec: &ProbeSpec, dial: Option<Dial>) -> io::Result<()> {
    const SHORT_NS: i64 = 5_000_000;
    let mut short = ProbeSpec { duration_ns: SHORT_NS, ..spec.clone() };
    if let Task::Wakeup(wakeup) = &mut short.task {
        (wakeup.period_ns, wakeup.offset_ns, wakeup.warm_up, wakeup.loops) = (SHORT_NS / 4, 0, 2, 0);
    }
    // No gap is as long as this threshold: the ring, which nobody drains yet, cannot fill up.
    let deaf = dial.map(|dial| Dial { threshold_ticks: u64::MAX, ..dial });
    measure(ring, &short, deaf, clock::now_ns());
    noise::store(ring, 0, 0);
    clock::thread_usage()?;
    clock::thread_cpu_ns();
    ring.rewind();
    Ok(())
}

/// Asks for the policy, or stays with SCHED_OTHER and says why.
fn set_policy(spec: &ProbeSpec) -> io::Result<Option<String>> {
    if spec.timer_slack_ns > 0 {
        sched::set_timer_slack(spec.timer_slack_ns)?;
    }
    Ok(sched::set_policy(&spec.policy).err().map(|error| error.to_string()))
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
