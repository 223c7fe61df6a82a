//! `thr_exit`: processes of 8 threads that exit while all threads are there.
//!
//! `exit_group` has to take every thread down (kernel/exit.c: `do_group_exit`,
//! `zap_other_threads`): each is woken on its CPU to die, the last one tears the address space
//! down, and stacks and task structures are freed after an RCU grace period.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::offspring::fork_and_wait;
use crate::spec::StressorSpec;
use crate::witness::Counter;
use crate::workers::repeat_in;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{Builder, park, yield_now};

const MAX_WORKERS: usize = 2;
/// Threads of a process, the first one included.
const THREADS: u32 = 8;
const STACK_BYTES: usize = 64 << 10;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "thr_exit",
    title: "processes of 8 threads that exit with all of them",
    class: "sched",
    operation: "a process made, its 7 further threads made, all ended at once, waited for",
    needs: "room for 20 processes and threads under pids.max and RLIMIT_NPROC",
    kernel_paths: &[
        "kernel_clone",
        "do_group_exit",
        "zap_other_threads",
        "signal wake-ups",
        "exit_mmap",
        "delayed_put_task_struct",
    ],
    witness: "growth of `processes` in /proc/stat, which counts threads too: 8 an operation at the least",
    cleanup: "none: every process ends with its supervisor",
    danger: "process ids run out; bounded by one process of 8 threads at a time a worker, and pids.max",
    default_rate: Some(100.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let workers = job.workers.unwrap_or_else(|| job.cpus.len().clamp(1, MAX_WORKERS) as u32);
    let before = job.begin_counting(Counter::forks()?)?;
    let done = repeat_in(job, workers, |_| Ok(|| fork_and_wait(crowd)))?;
    let witness = before.grown(done.tally.ok * u64::from(THREADS))?;
    Ok(done.account(job, witness))
}

/// Makes the threads and returns once all have run: the caller exits over their heads.
fn crowd() -> io::Result<()> {
    let there = Arc::new(AtomicU32::new(1));
    for _ in 1..THREADS {
        let there = Arc::clone(&there);
        Builder::new().stack_size(STACK_BYTES).spawn(move || {
            there.fetch_add(1, Ordering::Release);
            loop {
                park();
            }
        })?;
    }
    while there.load(Ordering::Acquire) < THREADS {
        yield_now();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_is_eight_in_the_kernels_count() {
        let before = Counter::forks().unwrap().start().unwrap();
        fork_and_wait(crowd).unwrap();
        let witness = before.grown(8).unwrap();
        assert!(witness.seen >= witness.expected, "{witness:?}");
    }
}
