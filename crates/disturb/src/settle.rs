//! How a stressor's process confines itself before its first operation: bound to its parent, its
//! CPUs, ordinary scheduling, small limits, first choice of the out-of-memory killer, and an alarm
//! that ends it whatever happens.
//!
//! Order matters: what binds it to its parent and its CPUs comes first, entering control groups
//! before anything is allocated there.

use super::{Error, StressorSpec};
use crate::protocol::{Group, StressArgs};
use model::sample::Policy;
use rustix::process::{
    Resource, Rlimit, Signal, getpriority_process, getrlimit, set_parent_process_death_signal,
    setpriority_process, setrlimit,
};
use std::fs;
use sys::clock::SECOND_NS;
use sys::signals::EndSignals;
use sys::{policy, sched};

/// How long after its duration a stressor is ended by the kernel, s.
const GRACE_S: u32 = 5;
/// Data that the program has besides what a stressor requests.
const PROGRAM_BYTES: u64 = 64 << 20;
/// Descriptors a stressor may need: 256 timers and a few more.
const FILES_WANTED: u64 = 512;

/// Confines the calling process; returns the signals that end it, and how it is confined.
pub(super) fn settle(spec: &StressorSpec, args: &StressArgs) -> Result<(EndSignals, Vec<String>), Error> {
    if args.cpus.is_empty() {
        return Err(Error::NoCpu { what: spec.name.to_owned() });
    }
    die_with(args.supervisor)?;
    arm_alarm(args.duration_ns);
    reap_ourselves();
    let end = EndSignals::block().map_err(Error::refused("block signals"))?;
    sched::pin(&args.cpus).map_err(Error::refused("set the CPU affinity"))?;
    let mut confined_by = enter_groups(&args.groups);
    // Entering a cpuset replaces the affinity by the set's CPUs on kernels before 6.2.
    sched::pin(&args.cpus).map_err(Error::refused("set the CPU affinity"))?;
    confirm_affinity(args)?;
    confined_by.push("affinity".to_owned());
    schedule_ordinarily(args.nice)?;
    limit_resources(spec.memory_bytes.max(args.bytes.unwrap_or(0)))?;
    prefer_for_oom();
    Ok((end, confined_by))
}

/// Makes the kernel kill this process when the thread that started it ends.
pub(super) fn die_with(supervisor: i32) -> Result<(), Error> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(Error::refused("bind to the parent's life"))?;
    // The supervisor may have died before that call. Across a pid namespace a living parent shows
    // as none.
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if supervisor != 0 && parent != supervisor {
        return Err(Error::Orphan { expected: supervisor });
    }
    Ok(())
}

/// SIGALRM ends the process some seconds after its duration, even if its loop hangs. Not inherited
/// over fork: each process that a stressor keeps for longer than one operation arms its own.
pub(super) fn arm_alarm(duration_ns: i64) {
    let seconds =
        u32::try_from((duration_ns.max(0) as u64).div_ceil(SECOND_NS as u64)).unwrap_or(u32::MAX - GRACE_S);
    // SAFETY: restoring a default disposition and arming an alarm touch no memory; an ignored
    // SIGALRM survives exec, hence the first.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(seconds.saturating_add(GRACE_S));
    }
}

/// An ignored SIGCHLD survives exec too, and would leave `u_fork` nothing to wait for.
fn reap_ourselves() {
    // SAFETY: restoring a default disposition touches no memory.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Enters each group, and says how that confines; a group that cannot be entered is named with the
/// reason.
fn enter_groups(groups: &[Group]) -> Vec<String> {
    let enter = |group: &Group| match fs::write(group.dir.join("cgroup.procs"), "0") {
        Ok(()) if group.controllers.is_empty() => "cgroup".to_owned(),
        Ok(()) => format!("cgroup {}", group.controllers.join(",")),
        Err(error) => format!("not cgroup {}: {error}", group.controllers.join(",")),
    };
    groups.iter().map(enter).collect()
}

fn confirm_affinity(args: &StressArgs) -> Result<(), Error> {
    let effective = sched::affinity().map_err(Error::refused("read the CPU affinity"))?;
    if effective.is_subset(&args.cpus) && !effective.is_empty() {
        return Ok(());
    }
    let source = std::io::Error::other(format!("asked for CPUs {}, got {effective}", args.cpus));
    Err(Error::Refused { action: "set the CPU affinity", source })
}

/// SCHED_OTHER whatever the parent's policy, at `nice` or the weaker value inherited.
fn schedule_ordinarily(nice: i32) -> Result<(), Error> {
    let inherited = getpriority_process(None).unwrap_or(0);
    if let Err(source) = policy::set_policy(&Policy::other()) {
        // Without privilege an inherited nice value may not be strengthened; being ordinary already
        // is all that is needed.
        if policy::effective().map_or(true, |policy| policy.name != "SCHED_OTHER") {
            return Err(Error::Refused { action: "set SCHED_OTHER", source });
        }
    }
    let wanted = nice.clamp(0, 19).max(inherited);
    setpriority_process(None, wanted).map_err(Error::refused("set the nice value"))
}

/// Memory is limited per process here; the group limits what all have together.
fn limit_resources(memory_bytes: u64) -> Result<(), Error> {
    let refused = || Error::refused("set resource limits");
    let lower = |resource, limit: u64| {
        let old = getrlimit(resource);
        let maximum = Some(old.maximum.map_or(limit, |maximum| maximum.min(limit)));
        setrlimit(resource, Rlimit { current: maximum, maximum })
    };
    lower(Resource::Core, 0).map_err(refused())?;
    lower(Resource::Data, memory_bytes + PROGRAM_BYTES).map_err(refused())?;
    let files = getrlimit(Resource::Nofile);
    if files.current.is_some_and(|current| current < FILES_WANTED) {
        let current = Some(files.maximum.map_or(FILES_WANTED, |maximum| maximum.min(FILES_WANTED)));
        setrlimit(Resource::Nofile, Rlimit { current, maximum: files.maximum }).map_err(refused())?;
    }
    Ok(())
}

/// A disturbance is the first thing to give up when memory runs out. Raising the score needs no
/// privilege; where /proc is read-only the limits above still hold.
fn prefer_for_oom() {
    let _ = fs::write(crate::witness::proc_dir().join("self/oom_score_adj"), "1000");
}
