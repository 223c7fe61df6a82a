//! Several small processes that share a stressor's work: each repeats the operation at its share of
//! the pace, and reports.
//!
//! Processes, not threads, where what is measured grows with what a process holds (fork, exit), or
//! where threads would share what must not be shared (a memory map, a current directory). They
//! belong to the stressor's process group and die with it.

use super::Error;
use super::job::{Done, Job, recover};
use super::settle::{arm_alarm, die_with};
use super::tally::Tally;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use std::fs::File;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use sys::clock::now_ns;
use sys::signals::EndSignals;

/// Makes `workers` processes, has each repeat what `prepare` makes for its number, and waits for
/// all. The job must have begun.
pub(super) fn repeat_in<Op: FnMut() -> io::Result<()>>(
    job: &Job<'_>,
    workers: u32,
    prepare: impl Fn(u32) -> Result<Op, Error>,
) -> Result<Done, Error> {
    let start = |number| start_worker(|to| repeat(job, workers, prepare(number)?, to));
    let started = (0..workers).map(start).collect::<Result<Vec<_>, _>>()?;
    wait_for(job, &started.iter().map(|(pid, _)| *pid).collect::<Vec<_>>())?;
    let reports = started.into_iter().map(|(_, pipe)| read_report(pipe)).collect::<Result<Vec<_>, _>>()?;
    Ok(Done::together(&reports))
}

/// Forks a worker that writes its report to the pipe returned.
fn start_worker(body: impl FnOnce(File) -> Result<(), Error>) -> Result<(Pid, File), Error> {
    let (from, to) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(Error::refused("make a pipe"))?;
    let parent = getpid().as_raw_nonzero().get();
    // SAFETY: the stressor's process has one thread (`child::run`), so no lock is held by a thread
    // that the copy lacks; the copy leaves by `exit_now` and never returns into its caller.
    match unsafe { libc::fork() } {
        0 => {
            drop(from);
            let work = || die_with(parent).and_then(|()| body(File::from(to))).is_ok();
            exit_now(i32::from(!catch_unwind(AssertUnwindSafe(work)).unwrap_or(false)))
        }
        pid => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(|pid| (pid, File::from(from)))
            .ok_or_else(|| Error::refused("fork a worker")(io::Error::last_os_error())),
    }
}

fn repeat(
    job: &Job<'_>,
    workers: u32,
    mut operation: impl FnMut() -> io::Result<()>,
    mut to: File,
) -> Result<(), Error> {
    arm_alarm(job.end_ns - now_ns());
    let mut pace = job.pace(workers);
    let mut tally = Tally::default();
    let t0_ns = now_ns();
    while pace.proceed(1) {
        if tally.count(operation()) {
            job.meter.add(1);
        } else {
            recover();
        }
    }
    let text = serde_json::to_vec(&Done { tally, t0_ns, t1_ns: now_ns() }).map_err(io::Error::from);
    text.and_then(|text| to.write_all(&text)).map_err(Error::refused("report to the stressor"))
}

/// Waits for the workers' ends. A signal to the group that came between the start of one worker and
/// the next is pending here and not there, so it is passed on.
pub(super) fn wait_for(job: &Job<'_>, workers: &[Pid]) -> Result<(), Error> {
    const WAIT: &str = "wait for a worker";
    for (ended, worker) in workers.iter().enumerate() {
        while waitpid(Some(*worker), WaitOptions::NOHANG).map_err(Error::refused(WAIT))?.is_none() {
            EndSignals::wait_with_process(*worker, Some(&job.end)).map_err(Error::refused(WAIT))?;
            if job.end.arrived().is_some() {
                for worker in &workers[ended..] {
                    let _ = kill_process(*worker, Signal::TERM);
                }
            }
        }
    }
    Ok(())
}

/// A report is smaller than a pipe, so that it is there in full once its worker has ended.
fn read_report(mut pipe: File) -> Result<Done, Error> {
    let mut text = Vec::new();
    pipe.read_to_end(&mut text).map_err(Error::refused("read a worker's report"))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::refused("read a worker's report")(io::Error::from(error)))
}

/// Leaves a forked copy without running what its parent meant to run at exit.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process; nothing of it is used afterwards.
    unsafe { libc::_exit(code) }
}
