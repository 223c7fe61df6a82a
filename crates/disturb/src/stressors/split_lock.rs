//! `split_lock`: a locked addition to a word that lies in two cache lines.
//!
//! Within a line the processor locks the line; across two it locks the bus, or what has taken its
//! place, and no other core gets to memory meanwhile (Intel SDM volume 3, 9.1.2, "Bus Locking"). No
//! isolation of CPUs prevents it, any user can do it, and no event of the kernel tells of it: what
//! a measured CPU sees is time. Where the processor reports split locks the kernel warns, slows the
//! program down (`kernel.split_lock_mitigate`) or ends it by SIGBUS
//! (`Documentation/arch/x86/buslock.rst`, `split_lock_detect=`); a hypervisor may do the same. A
//! trial says which before operations begin.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::offspring::fork_and_wait;
use crate::spec::StressorSpec;
use crate::witness::{Counter, own_waits};
use model::stressor::Witness;
use rustix::io::Errno;
use std::io;
use sys::clock::{now_ns, thread_cpu_ns};

/// Additions of one operation.
const ADDITIONS: u64 = 1000;
/// No processor makes a locked addition in less than a nanosecond.
const LEAST_COST_US: u64 = ADDITIONS / 1000;
const LINE: usize = 64;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "split_lock",
    title: "bus locks: locked additions to a word that lies in two cache lines",
    class: "mem",
    operation: "1,000 locked additions, and the sum checked",
    needs: "x86; no split-lock detection that ends or slows down the program",
    kernel_paths: &["none without detection: the bus is locked; with it handle_user_split_lock"],
    witness: "CPU time of the thread, us (1 us an operation at the very least), with the cost of an addition across lines and within one",
    danger: "every core of the machine waits for memory meanwhile, other guests of its host too; bounded by the rate",
    default_rate: Some(100.0),
    dangerous: true,
    peer: Some("--lockbus"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let mut lines = Lines::new()?;
    lines.try_out()?;
    let (across_ns, within_ns) = (lines.cost_ns(LINE - 4), lines.cost_ns(0));
    let time = Counter::read("CPU time of the thread, us", || Ok(thread_cpu_ns() as u64 / 1000))?;
    let before = job.begin_counting(time)?;
    let done = job.repeat(|| lines.add(LINE - 4));
    let witness = before.grown(done.tally.ok * LEAST_COST_US)?;
    let name = format!(
        "{}; an addition took {across_ns} ns across two lines, {within_ns} ns within one",
        witness.name
    );
    Ok(done.account(job, Witness { name, ..witness }))
}

/// Two cache lines.
#[repr(align(128))]
struct Aligned([u8; 2 * LINE]);

struct Lines(Box<Aligned>);

impl Lines {
    fn new() -> Result<Self, Error> {
        if cfg!(not(target_arch = "x86_64")) {
            return Err(Error::absent("only x86 has locked instructions across cache lines"));
        }
        Ok(Self(Box::new(Aligned([0; 2 * LINE]))))
    }

    /// What the kernel does to a process that does it, by a copy: it ends it, or has it sleep.
    fn try_out(&mut self) -> Result<(), Error> {
        let trial = fork_and_wait(|| {
            let before = own_waits()?;
            self.add_once(LINE - 4);
            if own_waits()? == before { Ok(()) } else { Err(Errno::TIMEDOUT.into()) }
        });
        trial.map_err(|error| match error.raw_os_error() {
            Some(libc::ECHILD) => {
                Error::absent("a process that splits a lock is ended here (split_lock_detect=fatal)")
            }
            Some(libc::ETIMEDOUT) => Error::absent(
                "a process that splits a lock is slowed down here (split_lock_detect, kernel.split_lock_mitigate)",
            ),
            _ => Error::refused("try a split lock")(error),
        })
    }

    /// One operation, at a distance from the first line's beginning; the sum must be right.
    fn add(&mut self, at: usize) -> io::Result<()> {
        let before = self.sum(at);
        (0..ADDITIONS).for_each(|_| self.add_once(at));
        if self.sum(at) == before.wrapping_add(ADDITIONS) { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }

    /// What one addition takes, ns.
    fn cost_ns(&mut self, at: usize) -> i64 {
        let start_ns = now_ns();
        (0..ADDITIONS).for_each(|_| self.add_once(at));
        (now_ns() - start_ns) / ADDITIONS as i64
    }

    fn sum(&self, at: usize) -> u64 {
        let word = self.0.0.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        word.map_or(0, u64::from_ne_bytes)
    }

    #[cfg(target_arch = "x86_64")]
    fn add_once(&mut self, at: usize) {
        let word = self.0.0[at..at + 8].as_mut_ptr();
        // SAFETY: the eight bytes lie within the two lines; x86 adds at any address.
        unsafe { std::arch::asm!("lock add qword ptr [{}], 1", in(reg) word, options(nostack)) };
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn add_once(&mut self, at: usize) {
        let sum = self.sum(at).wrapping_add(1);
        self.0.0[at..at + 8].copy_from_slice(&sum.to_ne_bytes());
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn additions_within_a_line_are_summed_and_a_wrong_sum_is_found() {
        let mut lines = Lines::new().unwrap();
        lines.add(0).unwrap();
        lines.add(LINE).unwrap();
        assert_eq!((lines.sum(0), lines.sum(LINE), lines.sum(16)), (ADDITIONS, ADDITIONS, 0));
        lines.add_once(8);
        assert_eq!((lines.sum(8), lines.sum(0)), (1, ADDITIONS));
    }
}
