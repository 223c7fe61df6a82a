//! Runs the guest's command as pid 1: reaps every orphan, keeps what the command prints, and leaves
//! nothing running.
//!
//! stdout goes to a file only (it is the command's answer, read after the end); stderr goes to a
//! file and to the console, where it can be followed. The console is a serial line whose interrupts
//! fall on housekeeping CPUs.

use super::FirstProgram;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// How the command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// As a shell gives it: 128 + n after signal n, 127 if it could not be started.
    pub exit_code: i32,
    /// It was killed because its time was over.
    pub timed_out: bool,
    /// Why it could not be started.
    pub problem: Option<String>,
}

/// What to run.
#[derive(Debug)]
pub struct Orders<'a> {
    /// Program and arguments.
    pub argv: &'a [String],
    /// The whole environment.
    pub env: &'a BTreeMap<String, String>,
    /// Working directory.
    pub cwd: &'a Path,
    /// Everything is killed after so long.
    pub limit: Duration,
    /// File for stdout.
    pub stdout: &'a Path,
    /// File for stderr.
    pub stderr: &'a Path,
}

/// Runs the command to its end, then kills and reaps every other process of the guest.
pub fn run_command(_: &FirstProgram, orders: &Orders<'_>) -> Ended {
    let started = match start(orders) {
        Ok(started) => started,
        Err(error) => {
            let program = orders.argv.first().map_or("", String::as_str);
            return Ended {
                exit_code: 127,
                timed_out: false,
                problem: Some(format!("start {program:?}: {error}")),
            };
        }
    };
    let timed_out = Arc::new(AtomicBool::new(false));
    let (done, is_done) = mpsc::channel::<()>();
    let late = Arc::clone(&timed_out);
    let limit = orders.limit;
    let guard = thread::spawn(move || {
        if is_done.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            late.store(true, Ordering::Relaxed);
            kill_all();
        }
    });
    let exit_code = reap_until(started.pid);
    drop(done);
    kill_all();
    reap_rest();
    // Both threads end by themselves now: the limit is off, and nobody is left to hold the pipe.
    let _ = guard.join();
    let _ = started.tee.join();
    Ended { exit_code, timed_out: timed_out.load(Ordering::Relaxed), problem: None }
}

struct Started {
    pid: i32,
    tee: thread::JoinHandle<()>,
}

fn start(orders: &Orders<'_>) -> io::Result<Started> {
    let program = orders.argv.first().ok_or_else(|| io::Error::other("empty command"))?;
    let mut kept = File::create(orders.stderr)?;
    let mut command = Command::new(program);
    command.args(&orders.argv[1..]).env_clear().envs(orders.env).current_dir(orders.cwd);
    command.stdin(Stdio::null()).stdout(File::create(orders.stdout)?).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut pipe = child.stderr.take().ok_or_else(|| io::Error::other("no pipe"))?;
    let tee = thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(len @ 1..) = pipe.read(&mut buffer) {
            // The file may be full and the console gone; the command must not stop for that.
            let _ = kept.write_all(&buffer[..len]);
            let _ = io::stderr().write_all(&buffer[..len]);
        }
    });
    Ok(Started { pid: child.id().cast_signed(), tee })
}

/// Waits for any child until the wanted one has ended; returns its code as a shell does.
fn reap_until(wanted: i32) -> i32 {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_pid() == wanted => {
                return status
                    .exit_status()
                    .or_else(|| status.terminating_signal().map(|signal| 128 + signal))
                    .unwrap_or(1);
            }
            Ok(_) | Err(Errno::INTR) => {}
            // Cannot be: the wanted child is ours until it is reaped.
            Err(_) => return 1,
        }
    }
}

/// SIGKILL to every process but this one: kill(2) with -1, which is what the group of pid 1 comes
/// to.
fn kill_all() {
    // Fails only when there is nobody left.
    let _ = kill_process_group(Pid::INIT, Signal::KILL);
}

fn reap_rest() {
    while !matches!(wait(WaitOptions::empty()), Err(Errno::CHILD)) {}
}
