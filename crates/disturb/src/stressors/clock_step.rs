//! `clock_step`: the wall clock set, forward by nothing.
//!
//! A step of 0 s (adjtimex(2), ADJ_SETOFFSET) goes the way of every step
//! (kernel/time/timekeeping.c: `timekeeping_inject_offset`; kernel/time/hrtimer.c:
//! `clock_was_set`), as time daemons, `date -s` and containers that may set the clock do it. Every
//! CPU is interrupted to look at its timers anew; since 5.15 only those whose timers a step may
//! concern (commit 81d741d3460c). The time stays what it is, and timers that wait for a change of
//! it (TFD_TIMER_CANCEL_ON_SET) do not see one.
//!
//! A step ends what is under way of a correction (kernel/time/ntp.c: `ntp_clear`), and marks the
//! clock as not synchronised. Status and largest error are set again by the very same call; while a
//! correction is under way, or a leap second is announced, which no call could set again, nothing
//! is done.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use model::stressor::Witness;
use rustix::io::Errno;
use std::io;

/// `ADJ_OFFSET_SS_READ`: what adjtime(3) has left to correct.
const READ_ADJTIME: u32 = 0xa001;
/// `NTP_PHASE_LIMIT`, us: an error that is not known (`include/linux/timex.h`).
const LIMIT_US: libc::c_long = 16_000_000;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "clock_step",
    title: "the wall clock set, forward by 0 s: every CPU looks at its timers anew",
    class: "broadcast",
    operation: "a step of 0 s",
    privilege: "CAP_SYS_TIME",
    needs: "a clock that no correction by adjtime(3) or the kernel's own loop is under way for, and no leap second is announced for",
    kernel_paths: &[
        "timekeeping_inject_offset",
        "clock_was_set",
        "on_each_cpu(retrigger_next_event)",
        "timerfd_clock_was_set",
    ],
    witness: "the clock's estimated error: the kernel takes it to its limit whenever the clock is set; one an operation",
    cleanup: "the estimated error is given back; after SIGKILL the time daemon's next update sets it",
    danger: "the clock's status is set as it was a moment before: what a time daemon sets in that moment is lost",
    default_rate: Some(10.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let first = discipline().map_err(Error::refused("read the clock's status"))?;
    if let Some(what) = busy(&first, corrected().map_err(Error::refused("read the clock's status"))?) {
        return Err(Error::absent(what));
    }
    set_error(first.esterror).map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM) => Error::absent("setting the clock needs CAP_SYS_TIME"),
        _ => Error::refused("set the clock's status")(error),
    })?;
    job.begin()?;
    let mut seen = 0;
    let done = job.repeat(|| {
        seen += u64::from(step()?);
        Ok(())
    });
    let restored = set_error(first.esterror);
    let name = "estimated errors that the kernel took to their limit".to_owned();
    let witness = Witness { name, expected: done.tally.ok, seen };
    restored.map_err(Error::refused("set the clock's status"))?;
    Ok(done.account(job, witness))
}

/// One operation; whether the kernel says that the clock was set.
fn step() -> io::Result<bool> {
    let now = discipline()?;
    if busy(&now, corrected()?).is_some() {
        return Err(Errno::BUSY.into());
    }
    set_error(LIMIT_US - 1)?;
    let modes = libc::ADJ_SETOFFSET | libc::ADJ_STATUS | libc::ADJ_MAXERROR;
    let zero = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let after = adjust(libc::timex { modes, time: zero, ..now })?;
    Ok(after.esterror == LIMIT_US)
}

/// Why a step would end something that nobody could begin again.
fn busy(now: &libc::timex, corrected: libc::c_long) -> Option<&'static str> {
    let pps = libc::STA_PPSFREQ | libc::STA_PPSTIME;
    if now.offset != 0 || corrected != 0 {
        Some("the clock is being corrected: a step would end that")
    } else if now.status & (libc::STA_INS | libc::STA_DEL) != 0 {
        Some("a leap second is announced: a step would cancel it")
    } else if now.status & pps != 0 {
        Some("the clock follows a pulse a second: a step would disturb that")
    } else {
        None
    }
}

/// The state of the clock's correction.
fn discipline() -> io::Result<libc::timex> {
    adjust(asking(0))
}

/// What adjtime(3) has left to correct, us.
fn corrected() -> io::Result<libc::c_long> {
    Ok(adjust(asking(READ_ADJTIME))?.offset)
}

/// Sets the estimated error, which nothing in the kernel works with.
fn set_error(esterror: libc::c_long) -> io::Result<()> {
    adjust(libc::timex { esterror, ..asking(libc::ADJ_ESTERROR) }).map(drop)
}

fn asking(modes: u32) -> libc::timex {
    // SAFETY: an all-zero timex is a valid one.
    let zero: libc::timex = unsafe { std::mem::zeroed() };
    libc::timex { modes, ..zero }
}

fn adjust(mut state: libc::timex) -> io::Result<libc::timex> {
    // SAFETY: `state` is valid for reading and writing.
    match unsafe { libc::adjtimex(&raw mut state) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_step_would_end_is_left_alone() {
        let state = |status, offset| libc::timex { status, offset, ..asking(0) };
        assert_eq!(busy(&state(libc::STA_UNSYNC, 0), 0), None);
        assert!(busy(&state(0, 3), 0).unwrap().contains("corrected"));
        assert!(busy(&state(0, 0), -7).unwrap().contains("corrected"));
        assert!(busy(&state(libc::STA_INS, 0), 0).unwrap().contains("leap second"));
        assert!(busy(&state(libc::STA_PPSFREQ, 0), 0).unwrap().contains("pulse"));
    }

    #[test]
    fn reading_needs_no_privilege() {
        assert!(discipline().unwrap().tick > 0);
        assert!(corrected().is_ok());
    }
}
