//! Sleeps on an idle CPU: wake-ups whose timers may expire elsewhere.
//!
//! On a kernel with `kernel.timer_migration` a timer that is armed on a `nohz_full` CPU is queued
//! on a CPU that is busy anyway (`get_nohz_timer_target`, kernel/sched/core.c;
//! Documentation/admin-guide/sysctl/kernel.rst). A high-resolution timer goes there only if
//! something expires there before it (`hrtimer_check_target`, kernel/time/hrtimer.c), which a CPU
//! with a tick grants.

use super::{APART_NS, Kind, Provoked, Slept, os, start};
use model::sample::Policy;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::{Error, clock};

/// Of the thread that sleeps; it runs for microseconds.
const PRIORITY: u32 = 50;

/// One sleep, with what was measured of it where it was until a time.
pub(super) type Sleep = (Provoked, Option<Slept>);

/// Has a thread sleep on the measured CPU, and keeps this one busy meanwhile: an idle CPU is no
/// place to move a timer to.
pub(super) fn provoke(cpu: u32, times: u32) -> Result<(i32, Vec<Sleep>), Error> {
    let done = Arc::new(AtomicBool::new(false));
    let (tid, thread) = start(cpu, "sleeper", Arc::clone(&done), move |done| {
        let slept = in_turn(times);
        done.store(true, Ordering::Release);
        slept
    })?;
    while !done.load(Ordering::Acquire) && !thread.is_finished() {
        sys::relax::relax();
    }
    let slept = thread.join().map_err(|_| Error::failed("a thread", "it panicked"))??;
    Ok((tid, slept))
}

fn in_turn(times: u32) -> Result<Vec<Sleep>, Error> {
    // As the probes are: an ordinary task's timers expire later than asked, and on PREEMPT_RT in a
    // softirq.
    let policy = Policy { name: "SCHED_FIFO".to_owned(), priority: PRIORITY, reservation: None };
    sys::policy::set_policy(&policy).map_err(os("schedule", "the sleeper"))?;
    let (mut quiet, _nobody) = UnixStream::pair().map_err(os("make", "a socket"))?;
    let patience = Duration::from_nanos(APART_NS.unsigned_abs());
    quiet.set_read_timeout(Some(patience)).map_err(os("set up", "a socket"))?;
    let mut sleeps = Vec::new();
    for _ in 0..times {
        let t0_ns = clock::now_ns();
        let release_ns = t0_ns + APART_NS;
        clock::sleep_until(release_ns);
        let ran_ns = clock::now_ns();
        let timer = Provoked { kind: Kind::Timer, t0_ns, t1_ns: ran_ns };
        sleeps.push((timer, Some(Slept { release_ns, ran_ns })));
        give_up(&mut quiet)?;
        let wheel = Provoked { kind: Kind::Wheel, t0_ns: ran_ns, t1_ns: clock::now_ns() };
        sleeps.push((wheel, None));
    }
    Ok(sleeps)
}

/// Waits for what nobody writes: SO_RCVTIMEO counts jiffies, by a timer of the wheel
/// (`unix_stream_data_wait`, net/unix/af_unix.c).
fn give_up(quiet: &mut UnixStream) -> Result<(), Error> {
    match quiet.read(&mut [0u8]) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(os("read", "a socket")(error)),
        Ok(_) => Err(Error::failed("the sleeper", "a socket that nobody writes to has ended")),
    }
}
