//! Kernel workers that belong to a CPU and may not run there any more. Work that is queued for the
//! CPU then runs elsewhere or not at all, and who waits for it never returns: writing
//! `watchdog_cpumask` does (Linux `kernel/smp.c`, `smp_call_on_cpu`).
//!
//! Seen on Debian's 5.10.262: a cpuset partition below the root group gives every task of that
//! group the CPUs that are left (ec5fbdfb99d1, of 6.1), but for threads that are marked as one
//! CPU's; workers are marked since 5.11 (5c25b5ff89f0).

use machine::{KernelThread, Root, processes};
use model::Cpus;
use std::time::Duration;

/// A worker is bound soon after it was named.
const BINDING: Duration = Duration::from_millis(20);

/// The online CPUs whose workers may run elsewhere.
pub(super) fn cpus_without_their_workers(root: &Root, kernel: &[KernelThread], online: &Cpus) -> Cpus {
    let first = lost(kernel, online);
    if first.is_empty() {
        return Cpus::default();
    }
    if root.is_live() {
        std::thread::sleep(BINDING);
    }
    let again = lost(&processes(root).kernel, online);
    first.iter().filter(|worker| again.contains(worker)).map(|worker| worker.cpu).collect()
}

#[derive(PartialEq, Eq)]
struct Worker {
    pid: u32,
    cpu: u32,
}

fn lost(kernel: &[KernelThread], online: &Cpus) -> Vec<Worker> {
    let workers = kernel.iter().filter_map(|thread| {
        let cpu = cpu_of(&thread.name)?;
        let elsewhere = online.contains(cpu) && thread.allowed != Cpus::one(cpu);
        elsewhere.then_some(Worker { pid: thread.pid, cpu })
    });
    workers.collect()
}

/// `kworker/3:1H-kblockd` is one of CPU 3; `kworker/u8:2` and `kworker/R-rcu_g` are of none.
fn cpu_of(name: &str) -> Option<u32> {
    name.strip_prefix("kworker/")?.split_once(':')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;

    /// As the kernel listed them while a call hung.
    #[test]
    fn workers_that_may_run_elsewhere_are_found_and_others_are_not() {
        let kworker = |pid: u32, name: &str, allowed: &str| {
            let stat = format!("{pid} ({name}) S 2 0 0 0 -1 69238880 {}0 0", "0 ".repeat(28));
            [
                (format!("proc/{pid}/stat"), stat),
                (format!("proc/{pid}/status"), format!("Cpus_allowed_list:\t{allowed}\n")),
            ]
        };
        let found = |threads: &[(u32, &str, &str)]| {
            let files: Vec<_> =
                threads.iter().flat_map(|(pid, name, cpus)| kworker(*pid, name, cpus)).collect();
            let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
            let (_dir, root) = tree(&files);
            let online = "0-3".parse().unwrap();
            cpus_without_their_workers(&root, &processes(&root).kernel, &online).to_string()
        };
        let sound = [
            (20, "kworker/0:1-events", "0"),
            (21, "kworker/3:1H-kblockd", "3"),
            (22, "kworker/u8:2", "0-3"),
            (23, "kworker/R-rcu_g", "0-3"),
            (24, "ksoftirqd/2", "2"),
            // Of a CPU that is offline.
            (25, "kworker/7:0-mm_percpu_wq", "0-3"),
        ];
        assert_eq!(found(&sound), "");
        let lost = [(30, "kworker/3:0-events", "0-1"), (31, "kworker/2:1", "0-3"), (32, "migration/2", "2")];
        assert_eq!(found(&[&sound[..], &lost].concat()), "2,3");
    }
}
