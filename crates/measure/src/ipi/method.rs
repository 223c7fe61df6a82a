//! The ways one thread wakes another: each the fewest calls an application would make.
//!
//! futex(2), eventfd(2), pipe(2), tgkill(2) with sigwaitinfo(2), and as the floor a word in shared
//! memory that the other spins on.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use sys::relax::relax;
use sys::sched;

/// A way to wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A private futex.
    Futex,
    /// A blocking read of an eventfd.
    Eventfd,
    /// A blocking read of a byte from a pipe.
    Pipe,
    /// A blocked signal that is waited for.
    Signal,
    /// Nobody sleeps: the target reads a word until it changes.
    Spin,
}

impl Method {
    /// All, in the order of their codes in samples files.
    pub const ALL: [Self; 5] = [Self::Futex, Self::Eventfd, Self::Pipe, Self::Signal, Self::Spin];

    /// The number in the column `method`.
    pub fn code(self) -> i64 {
        Self::ALL.iter().position(|one| *one == self).unwrap_or(0) as i64
    }

    /// Whether the target sleeps while it waits.
    pub fn sleeps(self) -> bool {
        self != Self::Spin
    }
}

/// Which signal: one that means nothing to this program, blocked in every thread that may get it.
const SIGNAL: i32 = libc::SIGUSR1;

/// Blocks [`SIGNAL`] in this thread and those it creates: it stays pending until waited for.
pub(super) fn block_signal() -> io::Result<()> {
    let set = signal_set();
    // SAFETY: `set` is an initialised signal set; the old one is not requested.
    let result = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

fn signal_set() -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set before anything reads it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, SIGNAL);
        set
    }
}

/// One direction: one thread waits, another wakes it.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Channel {
    word: AtomicU32,
    /// Who waits, for the signal.
    waiter: AtomicI32,
    method: Method,
    signals: libc::sigset_t,
    ends: Option<(OwnedFd, OwnedFd)>,
}

impl Channel {
    pub(super) fn new(method: Method) -> io::Result<Self> {
        let ends = match method {
            Method::Eventfd => {
                let end = eventfd(0, EventfdFlags::CLOEXEC)?;
                Some((end.try_clone()?, end))
            }
            Method::Pipe => Some(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?),
            _ => None,
        };
        Ok(Self { word: AtomicU32::new(0), waiter: AtomicI32::new(0), method, signals: signal_set(), ends })
    }

    /// The thread that will wait says so, before the first wake-up.
    pub(super) fn enter(&self) {
        self.waiter.store(sched::tid(), Ordering::Release);
    }

    /// Wakes the waiter with the number of this wake-up, from 1 in steps of 1.
    #[inline(always)]
    pub(super) fn wake(&self, number: u32) -> io::Result<()> {
        match (self.method, &self.ends) {
            (Method::Futex, _) => {
                self.word.store(number, Ordering::Release);
                futex(&self.word, libc::FUTEX_WAKE, 1)
            }
            (Method::Spin, _) => {
                self.word.store(number, Ordering::Release);
                Ok(())
            }
            (Method::Signal, _) => {
                let waiter = self.waiter.load(Ordering::Acquire);
                // SAFETY: tgkill takes three integers; the thread lives as long as the exchange.
                let result = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), waiter, SIGNAL) };
                if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
            }
            (Method::Eventfd, Some((_, end))) => Ok(rustix::io::write(end, &1u64.to_ne_bytes()).map(|_| ())?),
            (_, Some((_, end))) => Ok(rustix::io::write(end, &[1]).map(|_| ())?),
            (_, None) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Waits for the wake-up of this number.
    #[inline(always)]
    pub(super) fn wait(&self, number: u32) -> io::Result<()> {
        match (self.method, &self.ends) {
            (Method::Futex, _) => {
                while self.word.load(Ordering::Acquire) < number {
                    // A foreign or early wake-up is no error: the word decides.
                    let _ = futex(&self.word, libc::FUTEX_WAIT, number - 1);
                }
                Ok(())
            }
            (Method::Spin, _) => {
                while self.word.load(Ordering::Acquire) < number {
                    relax();
                }
                Ok(())
            }
            (Method::Signal, _) => self.wait_signal(),
            (Method::Eventfd, Some((end, _))) => {
                let mut count = [0u8; 8];
                retry(|| rustix::io::read(end, &mut count[..]))
            }
            (_, Some((end, _))) => {
                let mut byte = [0u8; 1];
                retry(|| rustix::io::read(end, &mut byte[..]))
            }
            (_, None) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    #[inline(always)]
    fn wait_signal(&self) -> io::Result<()> {
        loop {
            // SAFETY: the set is initialised, and no information on the signal is requested.
            let got = unsafe { libc::sigwaitinfo(&raw const self.signals, std::ptr::null_mut()) };
            if got == SIGNAL {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

#[inline(always)]
fn futex(word: &AtomicU32, action: i32, value: u32) -> io::Result<()> {
    let none = std::ptr::null::<libc::timespec>();
    let action = action | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives as long as the call; no timeout is given.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), action, value, none) };
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[inline(always)]
fn retry(mut read: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<()> {
    loop {
        match read() {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_delivers_each_wake_up_in_turn() {
        for method in Method::ALL {
            let (there, back) = (Channel::new(method).unwrap(), Channel::new(method).unwrap());
            let heard = std::thread::scope(|scope| {
                // The mask is of this test's own thread and its children.
                let thread = scope.spawn(|| {
                    block_signal().unwrap();
                    back.enter();
                    std::thread::scope(|inner| {
                        let waiter = inner.spawn(|| {
                            there.enter();
                            let mut heard = 0;
                            for number in 1..=100 {
                                there.wait(number).unwrap();
                                heard += 1;
                                back.wake(number).unwrap();
                            }
                            heard
                        });
                        while there.waiter.load(Ordering::Acquire) == 0 {
                            std::thread::yield_now();
                        }
                        for number in 1..=100 {
                            there.wake(number).unwrap();
                            back.wait(number).unwrap();
                        }
                        waiter.join().unwrap()
                    })
                });
                thread.join().unwrap()
            });
            assert_eq!(heard, 100, "{method:?}");
        }
    }

    #[test]
    fn codes_are_places_in_the_list() {
        assert_eq!(Method::ALL.map(Method::code), [0, 1, 2, 3, 4]);
    }
}
