//! `u_fork`: a fork storm. One process at a time is made, exits at once, and is waited for, in up
//! to two workers.
//!
//! Each worker is a small process with one thread, because the cost of fork and of the
//! address-space teardown grows with what the process holds. Fork and exit reach other CPUs through
//! scheduler wake-ups and balancing, RCU callbacks, and TLB flushes of the shared, write-protected
//! pages. The workers are processes of the stressor's own group and die with it.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::Counter;
use crate::workers::{exit_now, repeat_in};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io;

const MAX_WORKERS: usize = 2;
pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "u_fork",
    title: "fork storm: fork, _exit, wait, in up to two small processes",
    class: "sched",
    operation: "a process made, ended and waited for",
    privilege: "none",
    needs: "room for 4 processes under pids.max and RLIMIT_NPROC",
    kernel_paths: &[
        "kernel_clone",
        "do_exit",
        "wake_up_new_task",
        "load balancing",
        "call_rcu",
        "TLB flush of copied pages",
    ],
    witness: "growth of `processes` in /proc/stat, machine-wide: a lower bound",
    cleanup: "none: every process ends with its supervisor",
    danger: "process ids run out; bounded by one process at a time a worker, and pids.max",
    default_rate: Some(1000.0),
    peer: Some("--fork"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let workers = job.workers.unwrap_or_else(|| job.cpus.len().clamp(1, MAX_WORKERS) as u32);
    let before = job.begin_counting(Counter::forks()?)?;
    let done = repeat_in(job, workers, |_| Ok(fork_and_wait))?;
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

/// One operation. A child that ends in any other way than it was made to is a failure.
fn fork_and_wait() -> io::Result<()> {
    // SAFETY: a worker has one thread, so no lock is held by a thread that the copy lacks; the copy
    // does nothing but leave.
    match unsafe { libc::fork() } {
        0 => exit_now(0),
        -1 => Err(io::Error::last_os_error()),
        pid => match waitpid(Pid::from_raw(pid), WaitOptions::empty())? {
            Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
            _ => Err(Errno::CHILD.into()),
        },
    }
}
