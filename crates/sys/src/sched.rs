//! Scheduling policy and affinity of the calling thread.
//!
//! `sched_setattr(2)` and `sched_getattr(2)` are called raw, and what the kernel reports back is
//! what a run records.

use model::Cpus;
use model::sample::{Policy, Reservation};
use std::io;

/// Where the kernel's `struct sched_attr` ends in its first version (48 bytes), which every kernel
/// accepts.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// SCHED_DEADLINE (`include/uapi/linux/sched.h`).
const SCHED_DEADLINE: i32 = 6;

/// The policies by name.
pub const POLICIES: [(&str, i32); 6] = [
    ("SCHED_OTHER", libc::SCHED_OTHER),
    ("SCHED_FIFO", libc::SCHED_FIFO),
    ("SCHED_RR", libc::SCHED_RR),
    ("SCHED_BATCH", libc::SCHED_BATCH),
    ("SCHED_IDLE", libc::SCHED_IDLE),
    ("SCHED_DEADLINE", SCHED_DEADLINE),
];

/// Requests a policy by its number.
pub(super) fn ask(number: u32, priority: u32, reservation: Option<Reservation>) -> io::Result<()> {
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: number,
        priority,
        runtime: reservation.map_or(0, |one| one.runtime_ns),
        deadline: reservation.map_or(0, |one| one.deadline_ns),
        period: reservation.map_or(0, |one| one.period_ns),
        ..SchedAttr::default()
    };
    // SAFETY: `attr` is a valid sched_attr of the size it states; the kernel only reads it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Requests a policy by `sched_setscheduler(2)`, as libraries of other classes do; raw, because
/// musl's function only refuses.
pub(crate) fn set_scheduler(number: u32, priority: u32) -> io::Result<()> {
    // SAFETY: the kernel only reads the `struct sched_param`, which is this one integer.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, number, &raw const priority) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The policy that Linux reports for the calling thread.
pub(crate) fn effective() -> io::Result<Policy> {
    let attr = attributes(0)?;
    Ok(Policy { name: name(attr.policy as i32), priority: attr.priority, reservation: attr.reservation() })
}

/// The reservation of a thread under SCHED_DEADLINE; `None` under other policies, and where the
/// thread is gone.
pub fn reservation(tid: i32) -> Option<Reservation> {
    attributes(tid).ok()?.reservation()
}

/// Those of a thread; of the calling one for 0.
fn attributes(tid: i32) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most the stated size into `attr`.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, size_of::<SchedAttr>(), 0) };
    if result == 0 { Ok(attr) } else { Err(io::Error::last_os_error()) }
}

impl SchedAttr {
    fn reservation(&self) -> Option<Reservation> {
        (self.policy as i32 == SCHED_DEADLINE).then_some(Reservation {
            runtime_ns: self.runtime,
            deadline_ns: self.deadline,
            period_ns: self.period,
        })
    }
}

/// The absolute deadline of the calling SCHED_DEADLINE thread, CLOCK_MONOTONIC ns. EINVAL on
/// kernels before SCHED_GETATTR_FLAG_DL_DYNAMIC (6.19) and under any other policy.
pub fn absolute_deadline_ns() -> io::Result<i64> {
    const DL_DYNAMIC: u32 = 1;
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most the stated size into `attr`.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size_of::<SchedAttr>(), DL_DYNAMIC)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(attr.deadline as i64)
}

/// Ends the job of a SCHED_DEADLINE thread: it sleeps until its next release (`sched(7)`).
#[inline]
pub fn yield_now() {
    // SAFETY: takes nothing and cannot fail on Linux.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
}

/// Why the kernel refused a policy, in words that say what to do. `narrow`: the thread may run on a
/// part of the CPUs only.
pub fn refusal(policy: &Policy, error: &io::Error, narrow: bool) -> String {
    match (policy.name.as_str(), error.raw_os_error()) {
        ("SCHED_DEADLINE", Some(libc::EPERM)) if narrow => format!(
            "{error}: SCHED_DEADLINE takes a thread only where it may run on all CPUs of its root domain, or is not given to this \
             user; measure with --affinity none, on CPUs that isolcpus= took with --affinity set and all of them, or make the CPU a \
             domain of its own, as `stillcore isolate apply --placement partition` does"
        ),
        ("SCHED_DEADLINE", Some(libc::EPERM)) => {
            format!("{error}: SCHED_DEADLINE needs CAP_SYS_NICE, which no RLIMIT_RTPRIO stands in for")
        }
        ("SCHED_DEADLINE", Some(libc::EBUSY)) => format!(
            "{error}: other threads have reserved what /proc/sys/kernel/sched_rt_runtime_us leaves to SCHED_DEADLINE in this root \
             domain; ask for a shorter --runtime or a longer --period"
        ),
        (_, Some(libc::ENOEXEC)) if policy.is_cobalt() => {
            format!("{error}: the core's interface is not that of Xenomai 3.3 (ABI 19)")
        }
        (_, Some(libc::EAGAIN)) if policy.is_cobalt() => {
            format!("{error}: Cobalt is stopped; start it with corectl --start")
        }
        ("SCHED_DEADLINE", Some(libc::EINVAL)) => format!(
            "{error}: the period must lie within /proc/sys/kernel/sched_deadline_period_min_us and _max_us"
        ),
        _ => error.to_string(),
    }
}

pub(crate) fn name(policy: i32) -> String {
    // Mainline's number since 6.12, and LITMUS^RT's before.
    const SCHED_EXT: i32 = crate::sched::SCHED_LITMUS as i32;
    let known = POLICIES.iter().find(|(_, number)| *number == policy);
    match known {
        Some((name, _)) => (*name).to_owned(),
        None if policy == SCHED_EXT => match std::fs::read_to_string("/proc/litmus/active_plugin") {
            Ok(plugin) => format!("SCHED_LITMUS {}", plugin.trim()),
            Err(_) => "SCHED_EXT".to_owned(),
        },
        None => format!("policy {policy}"),
    }
}

/// Pins the calling thread; threads and children made afterwards inherit it. EINVAL when no CPU of
/// the set is online.
pub fn pin(cpus: &Cpus) -> io::Result<()> {
    pin_task(0, cpus)
}

/// Pins a task by its thread id. EINVAL also for kernel threads that belong to their CPU
/// (`PF_NO_SETAFFINITY`); ESRCH where it has ended.
pub fn pin_task(tid: i32, cpus: &Cpus) -> io::Result<()> {
    let mut mask = vec![0u64; cpus.iter().max().unwrap_or(0) as usize / 64 + 1];
    cpus.iter().for_each(|cpu| mask[cpu as usize / 64] |= 1 << (cpu % 64));
    // SAFETY: the mask is valid for the length given.
    let result = unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, mask.len() * 8, mask.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPUs that the calling thread may run on.
pub fn affinity() -> io::Result<Cpus> {
    affinity_of(0)
}

/// The CPUs that a thread may run on, those that are offline left out. ESRCH where it has ended.
pub fn affinity_of(tid: i32) -> io::Result<Cpus> {
    let mut mask = [0u64; 128];
    // SAFETY: the mask is valid for writing over the length given.
    let bytes =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(&mask), mask.as_mut_ptr()) };
    if bytes < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((0..mask.len() as u32 * 64).filter(|cpu| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect())
}

/// The CPU that the calling thread is on at this moment.
#[inline]
pub fn current_cpu() -> u32 {
    // SAFETY: takes nothing; the vDSO answers where there is one.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// The calling thread's id: what a trace calls its pid.
pub fn tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Timers of a thread that is not real-time expire up to this many ns late (50 µs by default). 0
/// would ask for the default.
pub fn set_timer_slack(ns: u64) -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes one integer.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The calling thread's timer slack, ns.
pub fn timer_slack() -> u64 {
    // SAFETY: PR_GET_TIMERSLACK takes nothing and gives the value as its result.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    u64::try_from(slack).unwrap_or(0)
}

/// The policy's number (`include/uapi/linux/sched.h` of LITMUS^RT); upstream kernels give it to
/// SCHED_EXT.
pub(crate) const SCHED_LITMUS: u32 = 7;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::set_policy;

    #[test]
    fn affinity_is_what_was_set() {
        std::thread::spawn(|| {
            let first = Cpus::one(affinity().unwrap().iter().next().unwrap());
            pin(&first).unwrap();
            assert_eq!(affinity().unwrap(), first);
            assert!(pin(&Cpus::one(model::cpus::MAX_CPU)).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_policy_is_read_back() {
        std::thread::spawn(|| {
            set_policy(&Policy::other()).unwrap();
            assert_eq!(effective().unwrap(), Policy::other());
            if set_policy(&Policy::fifo(3)).is_ok() {
                assert_eq!(effective().unwrap(), Policy::fifo(3));
            }
        })
        .join()
        .unwrap();
    }
}
