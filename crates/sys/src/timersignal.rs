//! A POSIX timer whose expiry is a signal that a thread waits for (`timer_create(2)`,
//! `sigtimedwait(2)`): how cFS's operating system abstraction layer and many older control programs
//! make a tick.
//!
//! The signal is sent to the thread itself (SIGEV_THREAD_ID), so that no other one takes it, or
//! ends by it. One that is not taken before the next expiry is not sent twice; the kernel counts
//! the others as overruns (`timer_getoverrun(2)`).

use super::clock::{self, SECOND_NS};
use std::io;
use std::marker::PhantomData;

/// A timer of the thread that made it.
#[derive(Debug)]
pub struct SignalTimer {
    timer: libc::timer_t,
    signal: i32,
    /// No other thread hears its signal.
    here: PhantomData<*const ()>,
}

impl SignalTimer {
    /// A timer on CLOCK_MONOTONIC that does not run yet. Its signal is blocked in the calling
    /// thread from now on, and means one timer there.
    pub fn new() -> io::Result<Self> {
        let signal = libc::SIGRTMIN();
        let set = only(signal);
        // SAFETY: the set is initialised, and the old one is not requested.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        let mut timer = std::ptr::null_mut();
        // SAFETY: an all-zero sigevent is a valid one; both pointers are valid for the call.
        let made = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = super::sched::tid();
            libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer)
        };
        if made == 0 {
            Ok(Self { timer, signal, here: PhantomData })
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Expires at `first_ns` (CLOCK_MONOTONIC) and every `period_ns` after it; what lies in the
    /// past expires at once.
    pub fn arm(&self, first_ns: i64, period_ns: i64) -> io::Result<()> {
        // All zero would stop it.
        let times = libc::itimerspec { it_interval: time(period_ns), it_value: time(first_ns.max(1)) };
        let none = std::ptr::null_mut();
        // SAFETY: the timer is ours, and the times are valid for reading.
        let set = unsafe { libc::timer_settime(self.timer, libc::TIMER_ABSTIME, &raw const times, none) };
        if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits for the next signal, at most until `until_ns` (CLOCK_MONOTONIC): the expiries that
    /// came while it waited to be taken, beside its own. `None` where there was no signal until
    /// then.
    pub fn wait(&self, until_ns: i64) -> io::Result<Option<u64>> {
        let set = only(self.signal);
        let rest = time((until_ns - clock::now_ns()).max(0));
        // SAFETY: set and time are valid for reading, and nothing more is requested.
        let taken = unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const rest) };
        if taken != self.signal {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                _ => Err(error),
            };
        }
        // SAFETY: the timer is ours.
        let overruns = unsafe { libc::timer_getoverrun(self.timer) };
        u64::try_from(overruns).map(Some).map_err(|_| io::Error::last_os_error())
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and is not used any more.
        unsafe { libc::timer_delete(self.timer) };
    }
}

fn time(ns: i64) -> libc::timespec {
    libc::timespec { tv_sec: ns / SECOND_NS, tv_nsec: ns % SECOND_NS }
}

fn only(signal: i32) -> libc::sigset_t {
    // SAFETY: the set is initialised by sigemptyset before use; the signal is a valid one.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn every_expiry_is_a_signal_or_an_overrun() {
        let timer = SignalTimer::new().unwrap();
        assert_eq!(timer.wait(clock::now_ns() + 5 * MS).unwrap(), None, "it does not run yet");
        let start = clock::now_ns();
        timer.arm(start, MS).unwrap();
        let (mut counted, mut overruns) = (0, 0);
        for _ in 0..10 {
            let before = clock::now_ns();
            let more = timer.wait(before + 10_000 * MS).unwrap().unwrap();
            (counted, overruns) = (counted + 1 + more, overruns + more);
            // Everything that had come when it began to wait is counted, and nothing that came
            // later than this.
            let [least, most] = [before, clock::now_ns()].map(|t_ns| (t_ns - start) as u64 / MS as u64 + 1);
            assert!((least..=most).contains(&counted), "{counted} of {least} to {most}");
            // Longer than a period: the kernel has to count what it does not send.
            clock::sleep_until(clock::now_ns() + 3 * MS);
        }
        assert!(overruns > 0);
    }

    #[test]
    fn several_threads_have_a_timer_each() {
        let ticks = |period_ns: i64| {
            std::thread::spawn(move || {
                let timer = SignalTimer::new().unwrap();
                let start = clock::now_ns();
                timer.arm(start, period_ns).unwrap();
                (0..5).map(|_| 1 + timer.wait(start + 10_000 * MS).unwrap().unwrap()).sum::<u64>()
            })
        };
        let threads = [MS, 2 * MS].map(ticks);
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() >= 5));
    }
}
