//! `hackbench`: 400 processes that talk. Ten groups of 20 senders and 20 receivers; each sender
//! writes 100 bytes to each receiver of its group in turn, over unix sockets.
//!
//! It is the scheduler's classic load (hackbench, Rusty Russell 2001; Cerqueira and Brandenburg's
//! I/O-bound background of 400 processes, OSPERT 2013, §3.2): wake-ups of threads on other CPUs,
//! run queues as long as groups are large, socket memory. Messages are counted where they arrive.

use crate::Error;
use crate::account::Account;
use crate::job::{Done, Job};
use crate::rates::Meter;
use crate::settle::{arm_alarm, die_with};
use crate::shared::SharedTally;
use crate::spec::StressorSpec;
use crate::witness::{self, Counter};
use crate::workers::{exit_now, wait_for};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use sys::clock::now_ns;

/// Senders, and as many receivers, of a group.
const SIDE: usize = 20;
const GROUPS: u32 = 10;
const MESSAGE: [u8; 100] = [0x5a; 100];
/// No machine writes, wakes for and reads a message in less, ns: that would be ten system calls a
/// microsecond.
const LEAST_COST_NS: u64 = 200;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "hackbench",
    title: "hackbench: 400 processes in ten groups that send each other messages",
    class: "sched",
    operation: "a message of 100 bytes received",
    needs: "CONFIG_UNIX; room for 401 processes under pids.max and RLIMIT_NPROC",
    kernel_paths: &[
        "unix_stream_sendmsg",
        "sock_def_readable",
        "try_to_wake_up",
        "load balancing",
        "reschedule IPI",
        "kernel_clone",
    ],
    witness: "CPU time of the processes, us (0.2 us a message at the very least); counted by the receivers, not the senders",
    cleanup: "none: every process ends with its supervisor",
    danger: "400 processes and their run queues; bounded by a fixed number of processes at a weak nice value, and the rate",
    default_rate: Some(20_000.0),
    memory_bytes: 256 << 20,
    processes: 420,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    // More would not fit in what its group may hold.
    let groups = job.workers.unwrap_or(GROUPS).clamp(1, GROUPS);
    let tally = SharedTally::new()?;
    let before =
        job.begin_counting(Counter::read("CPU time of the processes, us", witness::children_cpu_us)?)?;
    let t0_ns = now_ns();
    let mut children = Vec::new();
    for _ in 0..groups {
        start_group(job, &tally, groups, &mut children)?;
    }
    wait_for(job, &children)?;
    let done = Done { tally: tally.sum(), t0_ns, t1_ns: now_ns() };
    let witness = before.grown(done.tally.ok * LEAST_COST_NS / 1000)?;
    Ok(done.account(job, witness))
}

/// Starts the processes of one group. Each keeps its own ends and no other, so that a receiver sees
/// the end of the last sender.
fn start_group(
    job: &Job<'_>,
    tally: &SharedTally,
    groups: u32,
    children: &mut Vec<Pid>,
) -> Result<(), Error> {
    let pairs = (0..SIDE).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>();
    let (mut to, mut from): (Vec<UnixStream>, Vec<UnixStream>) =
        pairs.map_err(Error::refused("make a pair of sockets"))?.into_iter().unzip();
    for at in 0..SIDE {
        children.push(start(job, || {
            to.clear();
            let own = from.swap_remove(at);
            from.clear();
            receive(own, tally, &job.meter);
        })?);
    }
    from.clear();
    for _ in 0..SIDE {
        children.push(start(job, || send(job, &mut to, groups, tally))?);
    }
    Ok(())
}

/// Forks a process that does this and leaves.
fn start(job: &Job<'_>, body: impl FnOnce()) -> Result<Pid, Error> {
    let parent = getpid().as_raw_nonzero().get();
    // SAFETY: the stressor's process has one thread, so no lock is held by a thread that the copy
    // lacks; the copy leaves by `exit_now`.
    match unsafe { libc::fork() } {
        0 => {
            if die_with(parent).is_ok() {
                arm_alarm(job.end_ns - now_ns());
                body();
            }
            exit_now(0)
        }
        pid => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .ok_or_else(|| Error::refused("fork a process")(io::Error::last_os_error())),
    }
}

/// Writes to each receiver in turn, at this sender's share of the pace, until the end.
fn send(job: &Job<'_>, to: &mut [UnixStream], groups: u32, tally: &SharedTally) {
    let mut pace = job.pace(groups * SIDE as u32);
    while pace.proceed(SIDE as u32) {
        for receiver in to.iter_mut() {
            if let Err(error) = receiver.write_all(&MESSAGE) {
                tally.fail(&error);
                return;
            }
        }
    }
}

/// Reads and checks messages until every sender has gone.
fn receive(mut from: UnixStream, tally: &SharedTally, meter: &Meter) {
    let mut message = MESSAGE;
    loop {
        message.fill(0);
        match from.read_exact(&mut message) {
            Ok(()) if message == MESSAGE => {
                tally.succeed(1);
                meter.add(1);
            }
            Ok(()) => tally.fail(&Errno::BADMSG.into()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return,
            Err(error) => {
                tally.fail(&error);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_where_they_arrive_and_checked() {
        let tally = SharedTally::new().unwrap();
        let (mut to, from) = UnixStream::pair().unwrap();
        to.write_all(&MESSAGE).unwrap();
        to.write_all(&[7; 100]).unwrap();
        drop(to);
        receive(from, &tally, &Meter::default());
        let sum = tally.sum();
        assert_eq!((sum.ok, sum.failed["EBADMSG"]), (1, 1));
    }
}
