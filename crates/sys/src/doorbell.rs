//! Waiting for any of several senders, or for a point of CLOCK_MONOTONIC, whichever comes first.
//!
//! A bell is a word in shared memory that every sender counts up, and the number of waiters that
//! sleep on it. A waiter reads the word, looks whether there is anything to do, and then waits for
//! the word to differ from what it read: a message that came in between ends the wait at once, so
//! no wake-up is lost (`futex(7)`, "compare and block"). A sender that finds nobody asleep makes no
//! system call.
//!
//! Three manners of sleeping, all with an absolute time: `FUTEX_WAIT_BITSET` on the word; epoll
//! over descriptors (an eventfd stands for the word, a timerfd with `TFD_TIMER_ABSTIME` for the
//! time: `epoll_wait(2)` itself only knows durations, in which a preemption between reading the
//! clock and sleeping is lateness); or not at all.

use super::clock;
use super::memory::{Mapping, shared_file};
use super::relax::relax;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use serde::{Deserialize, Serialize};
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of the shared file of a bell.
pub const BYTES: usize = 4096;
/// All bits: whoever waits is woken (`FUTEX_BITSET_MATCH_ANY`).
const ANY: NonZeroU32 = NonZeroU32::MAX;
/// Looks at the word between two looks at the clock, while nobody sleeps.
const LOOKS: u32 = 64;
/// Events taken from epoll at once; the rest stays for the next wait.
const AT_ONCE: usize = 8;
/// What epoll says of the eventfd and of the timer.
const EVENT: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// How a waiter sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// On the word.
    Futex,
    /// In epoll, so that descriptors can wake it as well.
    Epoll,
    /// It does not.
    Poll,
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A bell rang, or a descriptor can be read; look again.
    Rung,
    /// The time came.
    Deadline,
}

/// A bell as those see it who ring it.
#[derive(Debug)]
pub struct Bell {
    page: Mapping,
    file: OwnedFd,
    event: Option<OwnedFd>,
}

impl Bell {
    /// A new bell.
    pub fn new(manner: Manner) -> io::Result<Self> {
        let event = match manner {
            Manner::Epoll => Some(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
            Manner::Futex | Manner::Poll => None,
        };
        Self::adopt(shared_file("stillcore-bell", BYTES)?, event)
    }

    /// The bell behind descriptors: its shared file, and the eventfd of [`Manner::Epoll`].
    pub fn adopt(file: OwnedFd, event: Option<OwnedFd>) -> io::Result<Self> {
        Ok(Self { page: Mapping::new(&file, BYTES)?, file, event })
    }

    /// The descriptors that [`Bell::adopt`] takes.
    pub fn descriptors(&self) -> io::Result<(OwnedFd, Option<OwnedFd>)> {
        let event = self.event.as_ref().map(OwnedFd::try_clone).transpose()?;
        Ok((self.file.try_clone()?, event))
    }

    #[inline]
    fn count(&self) -> &AtomicU32 {
        half(&self.page, 0)
    }

    #[inline]
    fn asleep(&self) -> &AtomicU32 {
        half(&self.page, 1)
    }

    /// Says that there is something to do.
    #[inline]
    pub fn ring(&self) {
        // Sequentially consistent against the waiter, which counts itself as asleep and then looks
        // at the word: one of the two sees the other.
        self.count().fetch_add(1, Ordering::SeqCst);
        if self.asleep().load(Ordering::SeqCst) == 0 {
            return;
        }
        // Neither can fail in a way that concerns a sender: a counter that is full has rung.
        let _ = match &self.event {
            Some(event) => rustix::io::write(event, &1u64.to_ne_bytes()).map(drop),
            None => futex::wake(self.count(), futex::Flags::empty(), 1).map(drop),
        };
    }
}

/// Two words of 32 bits in the first of a page, on one cache line: a ring touches both.
#[inline]
#[expect(clippy::cast_ptr_alignment, reason = "a mapping starts on a page")]
fn half(page: &Mapping, index: usize) -> &AtomicU32 {
    const { assert!(size_of::<AtomicU32>() * 2 <= BYTES) };
    // SAFETY: the page is aligned and longer than both words, which are only ever touched as these
    // atomics; it lives as long as the borrow.
    unsafe { &*page.start().as_ptr().cast::<AtomicU32>().add(index) }
}

/// One thread's way of waiting for a bell.
#[derive(Debug)]
pub struct Waiter {
    bell: Bell,
    sleeper: Sleeper,
}

#[derive(Debug)]
enum Sleeper {
    Futex,
    Epoll(Sources),
    Poll,
}

#[derive(Debug)]
struct Sources {
    poll: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set to, where it has not expired yet.
    armed_ns: Option<i64>,
}

impl Waiter {
    /// A waiter for the bell, and for these descriptors to become readable, which only
    /// [`Manner::Epoll`] can. epoll keeps no descriptor open: whoever closes one takes it out of
    /// the wait.
    pub fn new(bell: Bell, manner: Manner, files: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let sleeper = match manner {
            Manner::Poll => Sleeper::Poll,
            Manner::Futex => Sleeper::Futex,
            Manner::Epoll => Sleeper::Epoll(Sources::new(bell.event.as_ref(), files)?),
        };
        Ok(Self { bell, sleeper })
    }

    /// The bell.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Where the bell stands; read this before looking for something to do, and hand it to
    /// [`Waiter::wait`] if there was nothing.
    #[inline]
    pub fn look(&self) -> u32 {
        self.bell.count().load(Ordering::SeqCst)
    }

    /// Sleeps until the bell stands elsewhere than at `seen`, a descriptor can be read, or
    /// CLOCK_MONOTONIC reaches `until_ns`. May return [`Woken::Rung`] for nothing; never
    /// [`Woken::Deadline`] before its time.
    #[inline]
    pub fn wait(&mut self, seen: u32, until_ns: Option<i64>) -> io::Result<Woken> {
        if let Sleeper::Poll = self.sleeper {
            return Ok(self.spin(seen, until_ns));
        }
        self.bell.asleep().fetch_add(1, Ordering::SeqCst);
        let woken = if self.look() == seen { self.sleep(seen, until_ns) } else { Ok(Woken::Rung) };
        self.bell.asleep().fetch_sub(1, Ordering::SeqCst);
        woken
    }

    fn sleep(&mut self, seen: u32, until_ns: Option<i64>) -> io::Result<Woken> {
        match &mut self.sleeper {
            Sleeper::Epoll(sources) => sources.wait(self.bell.event.as_ref(), until_ns),
            Sleeper::Futex | Sleeper::Poll => {
                let until = until_ns.map(timespec);
                let word = self.bell.count();
                match futex::wait_bitset(word, futex::Flags::empty(), seen, until.as_ref(), ANY) {
                    Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(Woken::Rung),
                    Err(Errno::TIMEDOUT) => Ok(Woken::Deadline),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    fn spin(&self, seen: u32, until_ns: Option<i64>) -> Woken {
        loop {
            for _ in 0..LOOKS {
                if self.look() != seen {
                    return Woken::Rung;
                }
                relax();
            }
            if until_ns.is_some_and(|until_ns| clock::now_ns() >= until_ns) {
                return Woken::Deadline;
            }
        }
    }
}

impl Sources {
    fn new(event: Option<&OwnedFd>, files: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let add = |file: BorrowedFd<'_>, number, flags| {
            epoll::add(&poll, file, epoll::EventData::new_u64(number), flags)
        };
        // Edge-triggered: an expiry is reported once, and need not be read from the timer.
        add(timer.as_fd(), TIMER, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        event.map_or(Ok(()), |event| add(event.as_fd(), EVENT, epoll::EventFlags::IN))?;
        files
            .iter()
            .zip(0..)
            .try_for_each(|(file, number)| add(file.as_fd(), number, epoll::EventFlags::IN))?;
        Ok(Self { poll, timer, armed_ns: None })
    }

    fn wait(&mut self, event: Option<&OwnedFd>, until_ns: Option<i64>) -> io::Result<Woken> {
        if self.armed_ns != until_ns {
            self.arm(until_ns)?;
        }
        loop {
            let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; AT_ONCE];
            let (events, _) = match epoll::wait(&self.poll, &mut room, None) {
                Err(Errno::INTR) => return Ok(Woken::Rung),
                other => other?,
            };
            let fired = |number| events.iter().any(|event| event.data.u64() == number);
            if fired(EVENT)
                && let Some(event) = event
            {
                let _ = rustix::io::read(event, &mut [0u8; 8][..]);
            }
            if !fired(TIMER) {
                return Ok(Woken::Rung);
            }
            self.armed_ns = None;
            if events.len() > 1 {
                return Ok(Woken::Rung);
            }
            if until_ns.is_some_and(|until_ns| clock::now_ns() >= until_ns) {
                return Ok(Woken::Deadline);
            }
            // What expired was set for an earlier wait.
            self.arm(until_ns)?;
        }
    }

    fn arm(&mut self, until_ns: Option<i64>) -> io::Result<()> {
        // All zero would disarm it: the beginning of the clock is in the past as much as a
        // nanosecond later.
        let value = timespec(until_ns.map_or(0, |until_ns| until_ns.max(1)));
        let setting = Itimerspec { it_interval: timespec(0), it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.armed_ns = until_ns;
        Ok(())
    }
}

fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns / clock::SECOND_NS, tv_nsec: ns % clock::SECOND_NS }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipes;

    const MANNERS: [Manner; 3] = [Manner::Futex, Manner::Epoll, Manner::Poll];

    fn two_sides(manner: Manner, files: &[BorrowedFd<'_>]) -> (Bell, Waiter) {
        let bell = Bell::new(manner).unwrap();
        let (file, event) = bell.descriptors().unwrap();
        (bell, Waiter::new(Bell::adopt(file, event).unwrap(), manner, files).unwrap())
    }

    #[test]
    fn a_bell_that_rang_before_the_wait_is_not_slept_through() {
        for manner in MANNERS {
            let (bell, mut waiter) = two_sides(manner, &[]);
            let seen = waiter.look();
            bell.ring();
            assert_eq!(waiter.wait(seen, None).unwrap(), Woken::Rung, "{manner:?}");
        }
    }

    #[test]
    fn the_time_is_never_early_and_the_same_time_twice_wakes_twice() {
        for manner in MANNERS {
            let (_bell, mut waiter) = two_sides(manner, &[]);
            let until_ns = clock::now_ns() + 3_000_000;
            for _ in 0..2 {
                let seen = waiter.look();
                assert_eq!(waiter.wait(seen, Some(until_ns)).unwrap(), Woken::Deadline, "{manner:?}");
                assert!(clock::now_ns() >= until_ns);
            }
        }
    }

    #[test]
    fn a_sleeper_is_woken_each_time() {
        const TURNS: u32 = 2000;
        for manner in MANNERS {
            let (there, mut waiter) = two_sides(manner, &[]);
            let (back, mut other) = two_sides(manner, &[]);
            let thread = std::thread::spawn(move || {
                for turn in 0..TURNS {
                    while other.look() == turn {
                        other.wait(turn, None).unwrap();
                    }
                    there.ring();
                }
            });
            for turn in 0..TURNS {
                back.ring();
                while waiter.look() == turn {
                    waiter.wait(turn, None).unwrap();
                }
            }
            thread.join().unwrap();
        }
    }

    #[test]
    fn a_descriptor_wakes_as_well_until_it_is_read() {
        let (read, write) = pipes::pipe(true).unwrap();
        let (_bell, mut waiter) = two_sides(Manner::Epoll, &[read.as_fd()]);
        pipes::write_parts(&write, [b"x", b""]).unwrap();
        for _ in 0..2 {
            let seen = waiter.look();
            assert_eq!(waiter.wait(seen, None).unwrap(), Woken::Rung);
        }
        pipes::read_some(&read, &mut [0; 8]).unwrap();
        let seen = waiter.look();
        let until_ns = clock::now_ns() + 1_000_000;
        assert_eq!(waiter.wait(seen, Some(until_ns)).unwrap(), Woken::Deadline);
    }
}
