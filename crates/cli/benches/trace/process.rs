//! The cost of a process: wall time, CPU time, and its highest resident size, by proc(5).
//!
//! The peak is `VmHWM`, which is looked up while the process runs; the CPU time, the sum of user
//! and system time, when it has ended and is not yet reaped.

use crate::common::Failed;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Often enough not to miss the peak of a process that grows, seldom enough not to disturb it.
const POLL: Duration = Duration::from_millis(4);
/// `USER_HZ`, the unit of times in proc(5) on every architecture this runs on.
const TICKS_PER_S: f64 = 100.0;

/// The cost of one run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    pub(crate) clock_s: f64,
    pub(crate) cpu_s: f64,
    pub(crate) peak_mb: f64,
}

/// Runs a program to its end with its output thrown away.
pub(crate) fn watch<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Used, Failed> {
    let name = program.as_ref().display().to_string();
    let started = Instant::now();
    let mut command = Command::new(program.as_ref());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| Failed(format!("cannot run {name}: {error}")))?;
    let place = format!("/proc/{}", child.id());
    let running = AtomicBool::new(true);
    let (clock_s, peak_mb) = std::thread::scope(|scope| {
        let peak = scope.spawn(|| peak_while(&running, &place));
        let id = WaitId::Pid(Pid::from_child(&child));
        // Not reaped: its times can still be read.
        let ended = waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let clock_s = started.elapsed().as_secs_f64();
        running.store(false, Ordering::Relaxed);
        ended.map(|_| (clock_s, peak.join().unwrap_or(0.0)))
    })
    .map_err(Failed::because)?;
    let stat = std::fs::read_to_string(format!("{place}/stat")).map_err(Failed::because)?;
    let cpu_s = cpu_s(&stat).ok_or_else(|| Failed(format!("{name}: no times in {stat:?}")))?;
    let status = child.wait().map_err(Failed::because)?;
    if !status.success() {
        return Err(Failed(format!("{name}: {status}")));
    }
    Ok(Used { clock_s, cpu_s, peak_mb })
}

fn peak_while(running: &AtomicBool, place: &str) -> f64 {
    let mut peak: f64 = 0.0;
    while running.load(Ordering::Relaxed) {
        let status = std::fs::read_to_string(format!("{place}/status")).unwrap_or_default();
        peak = peak.max(peak_mb(&status).unwrap_or(0.0));
        std::thread::sleep(POLL);
    }
    peak
}

/// The sum of `utime` and `stime` in `/proc/PID/stat`. The second field is a name that may hold
/// anything.
fn cpu_s(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / TICKS_PER_S)
}

fn peak_mb(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
