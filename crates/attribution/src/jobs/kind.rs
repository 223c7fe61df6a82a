//! In what a thread sleeps: what may separate its jobs.

use crate::attribute::watch::waker::By;
use model::syscalls::{Syscall, Wait};

/// `TIMER_ABSTIME` of clock_nanosleep(2): the second argument.
const ABSOLUTE: u64 = 1;

/// What a thread slept in. Sleeps of one kind are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A system call.
    Call {
        /// Its name.
        name: &'static str,
        /// What is waited for in it.
        wait: Wait,
        /// Which of several: a descriptor, the address of a futex in units of 8 bytes (a condition
        /// of the GNU C library alternates between the two halves of one), for sleeps 1 where the
        /// time is absolute.
        which: u64,
    },
    /// The end of its budget under `SCHED_DEADLINE`, or `sched_yield(2)` there: it waits for the
    /// next period of its reservation.
    Replenished,
    /// Somewhere else in the kernel, or in a call that was not recorded; by who ended it.
    Elsewhere(Ender),
}

/// Who ends a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ender {
    /// A high-resolution timer.
    Timer,
    /// Another interrupt.
    Interrupt,
    /// A thread.
    Thread,
    /// Not known.
    Unknown,
}

impl Kind {
    pub(super) fn of_call(call: &'static Syscall, arguments: [u64; 2]) -> Self {
        let which = match call.wait {
            // The second argument of nanosleep(2) is an address.
            Wait::Sleep if call.name == "clock_nanosleep" => arguments[1] & ABSOLUTE,
            Wait::Futex => arguments[0] >> 3,
            Wait::Descriptor | Wait::MessageQueue => arguments[0],
            Wait::Poll if call.name.starts_with("epoll") => arguments[0],
            _ => 0,
        };
        Self::Call { name: call.name, wait: call.wait, which }
    }

    pub(super) fn of_waker(by: By) -> Self {
        Self::Elsewhere(match by {
            By::Timer { .. } => Ender::Timer,
            By::Interrupt(_) | By::SomeInterrupt => Ender::Interrupt,
            By::Thread(_) => Ender::Thread,
            By::Unknown => Ender::Unknown,
        })
    }

    /// A sleep until a given time, which may have passed already.
    pub(super) fn is_absolute_sleep(self) -> bool {
        matches!(self, Self::Call { wait: Wait::Sleep, which: ABSOLUTE, .. })
    }

    /// A sleep for a given time: what comes next depends on when it began.
    pub fn is_relative_sleep(self) -> bool {
        matches!(self, Self::Call { wait: Wait::Sleep, which: 0, .. })
    }

    /// Whether a thread waits for this where a signal could end it. In such a call it may block
    /// besides, on a lock of the kernel for example: that is no wait of this kind.
    pub(super) fn is_interruptible(self) -> bool {
        !matches!(self, Self::Call { wait: Wait::Child | Wait::Other, .. })
    }

    /// Whether these words ([`Self::words`]) are of this kind but for its descriptor or address,
    /// which may be another in another run of the program.
    pub fn is_like(self, words: &str) -> bool {
        let is_of =
            |name: &str, rest: &str| words.strip_prefix(name).is_some_and(|end| end.starts_with(rest));
        match self {
            Self::Call { name, wait: Wait::Futex, .. } => is_of(name, " at "),
            Self::Call { name, wait: Wait::Descriptor | Wait::MessageQueue, .. } => {
                is_of(name, " of descriptor ")
            }
            _ => words == self.words(),
        }
    }

    /// In words, such as `clock_nanosleep until a time`.
    pub fn words(self) -> String {
        match self {
            Self::Call { name, wait: Wait::Sleep, which } => {
                format!("{name} {}", if which == ABSOLUTE { "until a time" } else { "for a time" })
            }
            Self::Call { name, wait: Wait::Futex, which } => format!("{name} at {:#x}", which << 3),
            Self::Call { name, wait: Wait::Descriptor | Wait::MessageQueue, which } => {
                format!("{name} of descriptor {which}")
            }
            Self::Call { name, .. } => name.to_owned(),
            Self::Replenished => "the next period of its reservation".to_owned(),
            Self::Elsewhere(Ender::Timer) => "a sleep that a timer ends".to_owned(),
            Self::Elsewhere(Ender::Interrupt) => "a sleep that an interrupt ends".to_owned(),
            Self::Elsewhere(Ender::Thread) => "a sleep that another thread ends".to_owned(),
            Self::Elsewhere(Ender::Unknown) => "a sleep of which the end is not known".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::syscalls;

    fn kind(name: &str, arguments: [u64; 2]) -> Kind {
        Kind::of_call(syscalls::SYSCALLS.iter().find(|call| call.name == name).unwrap(), arguments)
    }

    #[test]
    fn sleeps_are_of_one_kind_where_they_wait_for_the_same() {
        assert!(kind("clock_nanosleep", [1, 1]).is_absolute_sleep());
        assert!(kind("clock_nanosleep", [1, 0]).is_relative_sleep());
        // The second argument of nanosleep is an address.
        assert!(kind("nanosleep", [0x7000, 0x7001]).is_relative_sleep());
        assert_eq!(kind("futex", [0x1028, 0]), kind("futex", [0x102c, 0]));
        assert_ne!(kind("futex", [0x1028, 0]), kind("futex", [0x1030, 0]));
        assert_ne!(kind("read", [3, 0]), kind("read", [4, 0]));
        assert_eq!(kind("ppoll", [0x7000, 0]), kind("ppoll", [0x8000, 0]));
    }

    #[test]
    fn sleeps_of_two_runs_are_alike_but_for_addresses_and_descriptors() {
        let like = |one: Kind, other: Kind| one.is_like(&other.words());
        assert!(like(kind("futex", [0x1028, 0]), kind("futex", [0x9000, 0])));
        assert!(like(kind("read", [3, 0]), kind("read", [4, 0])));
        assert!(!like(kind("read", [3, 0]), kind("futex", [3, 0])));
        assert!(like(kind("clock_nanosleep", [1, 1]), kind("clock_nanosleep", [0, 1])));
        assert!(!like(kind("clock_nanosleep", [1, 1]), kind("clock_nanosleep", [1, 0])));
        assert!(!like(Kind::Replenished, Kind::Elsewhere(Ender::Timer)));
    }
}
