//! The measuring side of a probe: set up, pin, lock, prefault, wait for the start, measure, report.
//!
//! Runs as `stillcore internal probe SPEC`, with the shared ring as descriptor 3. Everything that
//! can fault, allocate or fail happens before the probe says that it is ready.

use super::kind::{Loop, LoopResult, ProbeReport, Window};
use super::releases::Releases;
use super::ring::{Ring, State};
use super::spec::ProbeSpec;
use journal::enter;
use model::probe::{self, ProbeDetail};
use model::usage::Usage;
use rustix::fd::{FromRawFd, OwnedFd};
use std::io;
use sys::{clock, memory, policy, sched, signals, spawn};

/// Polling interval of the ring while waiting for the start: short against a window, long against
/// anything measured.
const WAIT_STEP_NS: i64 = 2_000_000;
/// Length of a rehearsal.
const SHORT_NS: i64 = 5_000_000;
/// A probe whose parent never starts it ends by itself.
const WAIT_LIMIT_NS: i64 = 60 * clock::SECOND_NS;

/// Does what the spec says on the ring at descriptor 3. The only caller is the hidden verb.
/// `announce` takes what is known before the window, for whoever reads the samples of a run that is
/// killed.
pub fn run(
    spec: &ProbeSpec,
    announce: &mut dyn FnMut(&ProbeReport) -> io::Result<()>,
) -> io::Result<ProbeReport> {
    // SAFETY: the parent placed the ring at this number (sys/spawn.rs), and nothing else in this
    // process owns it.
    let file = unsafe { OwnedFd::from_raw_fd(spawn::SHARED_FD) };
    let mut ring = Ring::map(&file)?;
    enter::onto(&spec.cpus)?;
    signals::allow_wake();
    let memory_unlocked = memory::lock_on_fault().err().map(|error| error.to_string());
    let mut measuring = spec.task.probe().prepare(spec.place())?;
    let policy_refused = set_policy(spec)?;
    let releases = policy::effective()?.reservation.map(Releases::open);
    memory::prefault_stack();
    let start_ns = clock::now_ns();
    measuring.rehearse(Window {
        ring: &mut ring,
        start_ns,
        duration_ns: SHORT_NS,
        releases: releases.as_ref(),
    });
    timed(&mut Nothing, Window { ring: &mut ring, start_ns, duration_ns: 0, releases: None })?;
    ring.rewind();
    let mut report = ProbeReport {
        pid: rustix::process::getpid().as_raw_nonzero().get(),
        tid: sched::tid(),
        counter: measuring.counter(),
        policy_effective: policy::effective()?,
        policy_refused,
        deadline_unread: releases.as_ref().and_then(|one| one.unread().map(str::to_owned)),
        timer_slack_ns: sched::timer_slack(),
        memory_unlocked,
        t0_ns: 0,
        limits: Vec::new(),
        result: LoopResult::default(),
        used: Usage::default(),
        cpu_time_ns: 0,
        rss_kib: 0,
        detail: measuring.detail(),
        taken: false,
    };
    announce(&report)?;
    ring.set_state(State::Ready);
    report.t0_ns = wait_for_start(&ring)?;

    let (start_ns, duration_ns) = (report.t0_ns, spec.duration_ns);
    let window = Window { ring: &mut ring, start_ns, duration_ns, releases: releases.as_ref() };
    let Timed { result, usage: [before, after], cpu_ns } = timed(&mut *measuring, window)?;
    policy::leave_class(&report.policy_effective)?;
    report.result = result?;
    ring.set_state(State::Done);
    report.taken = sched::affinity()? != spec.cpus;
    report.used = after - before;
    report.cpu_time_ns = (cpu_ns[1] - cpu_ns[0]) as u64;
    report.rss_kib = clock::peak_rss_kib();
    measuring.close(&mut report)?;
    Ok(report)
}

/// A loop, and what its thread had used before and behind it.
struct Timed {
    result: io::Result<LoopResult>,
    usage: [Usage; 2],
    cpu_ns: [i64; 2],
}

/// Runs a loop. Nothing that has not run before may come between the two readings: the first step
/// into a page of code is a fault. So this runs once before, with [`Nothing`], and is no part of its
/// callers.
#[inline(never)]
fn timed(measuring: &mut dyn Loop, window: Window<'_>) -> io::Result<Timed> {
    let before = clock::thread_usage()?;
    let cpu_before = clock::thread_cpu_ns();
    let result = measuring.run(window);
    let after = clock::thread_usage()?;
    let cpu_after = clock::thread_cpu_ns();
    Ok(Timed { result, usage: [before, after], cpu_ns: [cpu_before, cpu_after] })
}

/// A loop without turns.
struct Nothing;

impl Loop for Nothing {
    fn run(&mut self, _window: Window<'_>) -> io::Result<LoopResult> {
        Ok(LoopResult::default())
    }

    fn detail(&self) -> ProbeDetail {
        ProbeDetail::Wakeup(probe::Releases::default())
    }
}

/// Requests the policy, or stays with SCHED_OTHER and returns the reason.
fn set_policy(spec: &ProbeSpec) -> io::Result<Option<String>> {
    if spec.timer_slack_ns > 0 {
        sched::set_timer_slack(spec.timer_slack_ns)?;
    }
    let refused = policy::set_policy(&spec.policy).err();
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
