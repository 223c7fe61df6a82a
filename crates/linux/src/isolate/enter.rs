//! Onto isolated CPUs: a task that is to run there must first join the partition that owns them, because no other group has them.

use super::probe::partition_of;
use crate::machine::Root;
use crate::sys::sched;
use model::Cpus;
use std::fs;
use std::io;

/// Pins the calling process to the CPUs; where a cpuset partition owns them it joins that first. EINVAL where they are offline or in
/// several partitions.
pub fn enter(cpus: &Cpus) -> io::Result<()> {
    // For both calls 0 stands for the caller.
    place(0, cpus)
}

/// As [`enter`], for another process of one thread.
pub(crate) fn place(pid: i32, cpus: &Cpus) -> io::Result<()> {
    match sched::pin_task(pid, cpus) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let Some(group) = partition_of(&Root::live(), cpus) else { return Err(error) };
            fs::write(format!("{group}/cgroup.procs"), pid.to_string())?;
            sched::pin_task(pid, cpus)
        }
        // Up to 5.10 the kernel silently cuts the mask to what the cpuset allows.
        result => result,
    }
}
