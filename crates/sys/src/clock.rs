//! CLOCK_MONOTONIC, and the other clocks a task can sleep by: reading them, and sleeping until a
//! point of them.

use crate::cobalt;
use model::usage::{Faults, Switches, Usage};
use serde::{Deserialize, Serialize};
use std::io;

/// Nanoseconds in a second.
pub const SECOND_NS: i64 = 1_000_000_000;

/// CLOCK_MONOTONIC now, in ns. Reads the vDSO: no system call on any kernel with a usable counter.
#[inline]
pub fn now_ns() -> i64 {
    ClockId::Monotonic.now_ns()
}

/// Sleeps until CLOCK_MONOTONIC reaches `t_ns`. Returns early, without error, when a signal
/// arrives.
#[inline]
pub fn sleep_until(t_ns: i64) {
    ClockId::Monotonic.sleep_until(t_ns);
}

/// A clock that releases can be set in (`clock_nanosleep(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockId {
    /// CLOCK_MONOTONIC: slewed by NTP, never set.
    #[default]
    Monotonic,
    /// CLOCK_REALTIME: slewed and set.
    Realtime,
    /// CLOCK_TAI: as CLOCK_REALTIME, without leap seconds.
    Tai,
    /// CLOCK_BOOTTIME: as CLOCK_MONOTONIC, running on in suspend.
    Boottime,
}

impl ClockId {
    /// The name that a run records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monotonic => "CLOCK_MONOTONIC",
            Self::Realtime => "CLOCK_REALTIME",
            Self::Tai => "CLOCK_TAI",
            Self::Boottime => "CLOCK_BOOTTIME",
        }
    }

    fn id(self) -> libc::clockid_t {
        match self {
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::Realtime => libc::CLOCK_REALTIME,
            Self::Tai => libc::CLOCK_TAI,
            Self::Boottime => libc::CLOCK_BOOTTIME,
        }
    }

    /// Its time, ns. Reads the vDSO: no system call on any kernel with a usable counter.
    #[inline]
    pub fn now_ns(self) -> i64 {
        read(self.id())
    }

    /// Sleeps until it reaches `t_ns`. Returns early, without error, when a signal arrives.
    #[inline]
    pub fn sleep_until(self, t_ns: i64) {
        let time = libc::timespec { tv_sec: t_ns / SECOND_NS, tv_nsec: t_ns % SECOND_NS };
        sleep(self.id(), &time);
    }
}

/// CLOCK_MONOTONIC_RAW, ns: the clock source as it runs, without NTP. Nothing can be set to it.
#[inline]
pub fn raw_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// The state of time keeping, and the clock's state (`TIME_*`); changes nothing, so needs no
/// privilege.
pub fn adjtimex() -> io::Result<(i32, libc::timex)> {
    // SAFETY: an all-zero timex is a valid one that requests no change.
    let mut time: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `time` is valid for writing.
    let state = unsafe { libc::adjtimex(&raw mut time) };
    if state < 0 { Err(io::Error::last_os_error()) } else { Ok((state, time)) }
}

#[inline]
fn read(id: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; the clocks above exist on every Linux since 3.10, so the
    // call cannot fail.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec * SECOND_NS + time.tv_nsec
}

#[inline]
fn sleep(id: libc::clockid_t, time: &libc::timespec) {
    if cobalt::is_attached() {
        return cobalt::sleep(id, time);
    }
    // SAFETY: `time` is a valid timespec, and an absolute sleep requests no remainder.
    unsafe { libc::clock_nanosleep(id, libc::TIMER_ABSTIME, &raw const *time, std::ptr::null_mut()) };
}

/// CPU time of the calling thread, ns.
pub fn thread_cpu_ns() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the calling process with all its threads, ns.
pub fn process_cpu_ns() -> i64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Page faults and context switches of the calling thread so far.
pub fn thread_usage() -> io::Result<Usage> {
    // SAFETY: an all-zero rusage is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Usage {
        faults: Faults { minor: usage.ru_minflt as u64, major: usage.ru_majflt as u64 },
        switches: Switches { voluntary: usage.ru_nvcsw as u64, involuntary: usage.ru_nivcsw as u64 },
    })
}

/// Peak resident memory of the calling process, KiB.
pub fn peak_rss_kib() -> u64 {
    // VmHWM counts what was touched since exec; ru_maxrss would carry the parent's peak over fork.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
