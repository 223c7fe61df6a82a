//! Onto CPUs: a task that is to run on isolated ones must first join the partition that owns them,
//! because no other group has them; and where a process can come to run at all.

use machine::{Root, partition_of, partitions};
use model::Cpus;
use rustix::fs::{Access, access};
use std::{fs, io};
use sys::sched;

/// Pins the calling process to the CPUs; where a cpuset partition owns them it joins that first.
/// EINVAL where they are offline, in several partitions, or outside of the cpuset that it is in.
pub fn onto(cpus: &Cpus) -> io::Result<()> {
    // For both calls 0 stands for the caller.
    place(0, cpus)
}

/// As [`onto`], for another process of one thread.
pub fn place(pid: i32, cpus: &Cpus) -> io::Result<()> {
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

/// Those of these CPUs that [`onto`] can lead to: the cpuset of this process has them, as that of a
/// container does not have all, or a partition that it may join.
pub fn reachable(online: &Cpus) -> io::Result<Cpus> {
    let asked = online.clone();
    // A thread requests all CPUs and gets those of its cpuset (cpuset(7)). Its affinity dies with
    // it.
    let thread = std::thread::Builder::new();
    let thread = thread.spawn(move || sched::pin(&asked).and_then(|()| sched::affinity()))?;
    let own = thread.join().map_err(|_| io::Error::other("a thread has panicked"))??;
    let partitions = partitions(&Root::live()).into_iter().filter(|partition| {
        partition.is_valid() && access(format!("{}/cgroup.procs", partition.group), Access::WRITE_OK).is_ok()
    });
    Ok(partitions.fold(own, |all, partition| all.or(&partition.left)).and(online))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Affinity is no limit: whoever has it can ask for more.
    #[test]
    fn what_the_caller_is_pinned_to_is_not_all_it_can_reach() {
        let before = sched::affinity().unwrap();
        let all = reachable(&before).unwrap();
        assert_eq!(all, before);
        let one = before.iter().next().map(Cpus::one).unwrap();
        std::thread::spawn(move || {
            sched::pin(&one).unwrap();
            assert_eq!(reachable(&before).unwrap(), before);
            assert_eq!(sched::affinity().unwrap(), one, "the caller stays where it was");
        })
        .join()
        .unwrap();
    }
}
