//! `u_fork`: a fork storm. One process at a time is made, exits at once, and is waited for, in up to two workers.
//!
//! Each worker is a small process with one thread, because the cost of fork and of the address-space teardown grows with what the
//! process holds. Fork and exit reach other CPUs through scheduler wake-ups and balancing, RCU callbacks, and TLB flushes of the
//! shared, write-protected pages. The workers are processes of the stressor's own group and die with it.

use super::catalogue::StressorSpec;
use super::child::{Account, floor, proc_dir};
use super::job::{Job, recover};
use super::settle::{arm_alarm, die_with};
use super::tally::Tally;
use super::{Error, witness};
use crate::sys::clock::{now_ns, sleep_until};
use model::stressor::Witness;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

const MAX_WORKERS: usize = 2;
/// How often the workers are asked after.
const NAP_NS: i64 = 10_000_000;

pub(super) const SPEC: StressorSpec = StressorSpec {
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
    work,
};

/// What one worker reports.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    tally: Tally,
    t0_ns: i64,
    t1_ns: i64,
}

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let workers = job.cpus.len().clamp(1, MAX_WORKERS) as u32;
    let before = witness::forks(proc_dir())?;
    job.begin()?;
    let started = (0..workers).map(|_| start_worker(job, workers)).collect::<Result<Vec<_>, _>>()?;
    wait_for_workers(job, &started.iter().map(|(pid, _)| *pid).collect::<Vec<_>>())?;
    let reports = started.into_iter().map(|(_, pipe)| read_report(pipe)).collect::<Result<Vec<_>, _>>()?;
    let seen = witness::forks(proc_dir())?.saturating_sub(before);
    let mut tally = Tally::default();
    for report in &reports {
        tally.add(&report.tally);
    }
    let t0_ns = reports.iter().map(|report| report.t0_ns).min().unwrap_or_default();
    let t1_ns = reports.iter().map(|report| report.t1_ns).max().unwrap_or_default();
    let witness = Witness { name: "/proc/stat processes".into(), expected: tally.ok, seen };
    Ok(Account { floor: floor(job.rate, t0_ns, t1_ns), tally, t0_ns, t1_ns, witness, wrong: None })
}

/// Forks a worker that writes its report to the pipe returned.
fn start_worker(job: &Job<'_>, workers: u32) -> Result<(Pid, File), Error> {
    let (from, to) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(Error::refused("make a pipe"))?;
    let parent = getpid().as_raw_nonzero().get();
    // SAFETY: the stressor's process has one thread (`child::run`), so no lock is held by a thread that the copy lacks; the copy
    // leaves by `exit_now` and never returns into its caller.
    match unsafe { libc::fork() } {
        0 => {
            drop(from);
            let worked =
                catch_unwind(AssertUnwindSafe(|| worker(job, workers, parent, File::from(to)).is_ok()));
            exit_now(i32::from(!worked.unwrap_or(false)))
        }
        pid => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(|pid| (pid, File::from(from)))
            .ok_or_else(|| Error::refused("fork a worker")(std::io::Error::last_os_error())),
    }
}

fn worker(job: &Job<'_>, workers: u32, parent: i32, mut to: File) -> Result<(), Error> {
    die_with(parent)?;
    arm_alarm(job.end_ns - now_ns());
    let mut pace = job.pace(workers);
    let mut tally = Tally::default();
    let t0_ns = now_ns();
    while pace.proceed(1) {
        if !tally.count(fork_and_wait()) {
            recover();
        }
    }
    let report = Report { tally, t0_ns, t1_ns: now_ns() };
    let text = serde_json::to_vec(&report).map_err(std::io::Error::from);
    text.and_then(|text| to.write_all(&text)).map_err(Error::refused("report to the stressor"))
}

/// One operation. A child that ends in any other way than it was made to is a failure.
fn fork_and_wait() -> Result<(), Errno> {
    // SAFETY: as in `start_worker`; the copy does nothing but leave.
    match unsafe { libc::fork() } {
        0 => exit_now(0),
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        pid => match waitpid(Pid::from_raw(pid), WaitOptions::empty())? {
            Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
            _ => Err(Errno::CHILD),
        },
    }
}

/// Waits for the workers' ends. A signal to the group that came between the start of one worker and the next is pending here and
/// not there, so it is passed on.
fn wait_for_workers(job: &Job<'_>, workers: &[Pid]) -> Result<(), Error> {
    let mut left = workers.to_vec();
    while !left.is_empty() {
        if job.end.arrived().is_some() {
            for worker in &left {
                let _ = kill_process(*worker, Signal::TERM);
            }
        }
        sleep_until(now_ns() + NAP_NS);
        for worker in std::mem::take(&mut left) {
            if waitpid(Some(worker), WaitOptions::NOHANG)
                .map_err(Error::refused("wait for a worker"))?
                .is_none()
            {
                left.push(worker);
            }
        }
    }
    Ok(())
}

/// A report is smaller than a pipe, so that it is there in full once its worker has ended.
fn read_report(mut pipe: File) -> Result<Report, Error> {
    let mut text = Vec::new();
    pipe.read_to_end(&mut text).map_err(Error::refused("read a worker's report"))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::refused("read a worker's report")(std::io::Error::from(error)))
}

/// Leaves a forked copy without running what its parent meant to run at exit.
fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process; nothing of it is used afterwards.
    unsafe { libc::_exit(code) }
}
