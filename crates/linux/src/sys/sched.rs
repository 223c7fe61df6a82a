//! Scheduling policy and affinity of the calling thread.
//!
//! `sched_setattr(2)` and `sched_getattr(2)` are called raw, and what the kernel reports back is what a run records.

use model::Cpus;
use model::sample::Policy;
use std::io;

/// Where the kernel's `struct sched_attr` ends in its first version (48 bytes), which every kernel accepts.
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

/// SCHED_FIFO at this priority, for the calling thread. EPERM without privilege or an RLIMIT_RTPRIO that allows it.
pub fn set_fifo(priority: u32) -> io::Result<()> {
    set(libc::SCHED_FIFO, priority)
}

/// SCHED_OTHER, for the calling thread.
pub fn set_other() -> io::Result<()> {
    set(libc::SCHED_OTHER, 0)
}

fn set(policy: i32, priority: u32) -> io::Result<()> {
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: policy as u32,
        priority,
        ..SchedAttr::default()
    };
    // SAFETY: `attr` is a valid sched_attr of the size it states; the kernel only reads it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The policy the kernel reports for the calling thread.
pub fn effective() -> io::Result<Policy> {
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most the stated size into `attr`.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size_of::<SchedAttr>(), 0) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Policy { name: name(attr.policy as i32), priority: attr.priority })
}

fn name(policy: i32) -> String {
    let known = match policy {
        libc::SCHED_OTHER => "SCHED_OTHER",
        libc::SCHED_FIFO => "SCHED_FIFO",
        libc::SCHED_RR => "SCHED_RR",
        libc::SCHED_BATCH => "SCHED_BATCH",
        libc::SCHED_IDLE => "SCHED_IDLE",
        6 => "SCHED_DEADLINE",
        7 => "SCHED_EXT",
        other => return format!("policy {other}"),
    };
    known.to_owned()
}

/// Whether this process may use SCHED_FIFO: asks for the lowest priority in a thread of its own and lets it end.
pub fn fifo_allowed() -> bool {
    std::thread::spawn(|| set_fifo(1).is_ok()).join().unwrap_or(false)
}

/// Pins the calling thread; threads and children made afterwards inherit it. EINVAL when no CPU of the set is online.
pub fn pin(cpus: &Cpus) -> io::Result<()> {
    pin_task(0, cpus)
}

/// Pins a task by its thread id. EINVAL also for kernel threads that belong to their CPU (`PF_NO_SETAFFINITY`); ESRCH where it has
/// ended.
pub fn pin_task(tid: i32, cpus: &Cpus) -> io::Result<()> {
    let mut mask = vec![0u64; cpus.iter().max().unwrap_or(0) as usize / 64 + 1];
    cpus.iter().for_each(|cpu| mask[cpu as usize / 64] |= 1 << (cpu % 64));
    // SAFETY: the mask is valid for the length given.
    let result = unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, mask.len() * 8, mask.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPUs that the calling thread may run on.
pub fn affinity() -> io::Result<Cpus> {
    let mut mask = [0u64; 128];
    // SAFETY: the mask is valid for writing over the length given.
    let bytes =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    if bytes < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((0..mask.len() as u32 * 64).filter(|cpu| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect())
}

/// The calling thread's id: what a trace calls its pid.
pub fn tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Timers of a SCHED_OTHER thread expire up to 50 µs late by default; this asks for 1 ns.
pub fn no_timer_slack() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes one integer.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            set_other().unwrap();
            assert_eq!(effective().unwrap(), Policy { name: "SCHED_OTHER".into(), priority: 0 });
            if set_fifo(3).is_ok() {
                assert_eq!(effective().unwrap(), Policy { name: "SCHED_FIFO".into(), priority: 3 });
            }
        })
        .join()
        .unwrap();
    }
}
