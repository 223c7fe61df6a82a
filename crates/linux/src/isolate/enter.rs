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
    match sched::pin(cpus) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let Some(group) = partition_of(&Root::live(), cpus) else { return Err(error) };
            // 0 stands for the writer.
            fs::write(format!("{group}/cgroup.procs"), "0")?;
            sched::pin(cpus)
        }
        // Up to 5.10 the kernel silently cuts the mask to what the cpuset allows.
        result => result,
    }
}
