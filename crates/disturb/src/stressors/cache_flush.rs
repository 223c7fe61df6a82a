//! `cache_flush`: lines of memory written and thrown out of all caches, as programs do that keep
//! persistent memory or share it with devices.
//!
//! One flush of a line throws it out of the caches of every core (CLFLUSH, Intel SDM volume 2; DC
//! CIVAC, Arm ARM), dirty ones to memory. No kernel is called, and none counts it; what others
//! notice is memory bandwidth and snooping.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::Counter;
use rustix::io::Errno;
use std::io;
use sys::clock::thread_cpu_ns;

const BYTES: usize = 1 << 20;
const LINE: usize = 64;
/// No processor writes and flushes a line in less than a nanosecond: 16,384 of them.
const LEAST_COST_US: u64 = (BYTES / LINE) as u64 / 1000;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "cache_flush",
    title: "cache lines written and flushed from all caches: 1 MiB",
    class: "mem",
    operation: "1 MiB written, each line flushed, read back and compared",
    needs: "x86 or arm64",
    kernel_paths: &["none: caches of all cores and memory bandwidth"],
    witness: "CPU time of the thread, us (16 us an operation at the very least); every line read back",
    cleanup: "none: memory goes with the process",
    danger: "memory bandwidth; bounded by 1 MiB at a time and the rate",
    default_rate: Some(100.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return Err(Error::absent("no instruction of this architecture that flushes a line is known here"));
    }
    let mut lines = Lines::new();
    lines.go().map_err(Error::refused("flush cache lines"))?;
    let time = Counter::read("CPU time of the thread, us", || Ok(thread_cpu_ns() as u64 / 1000))?;
    let before = job.begin_counting(time)?;
    let done = job.repeat(|| lines.go());
    let witness = before.grown(done.tally.ok * LEAST_COST_US)?;
    Ok(done.account(job, witness))
}

/// Memory, one word of each line of which is used.
struct Lines {
    words: Vec<u64>,
    round: u64,
}

impl Lines {
    fn new() -> Self {
        Self { words: vec![0; BYTES / 8], round: 0 }
    }

    /// One operation.
    fn go(&mut self) -> io::Result<()> {
        self.round += 1;
        for word in self.words.iter_mut().step_by(LINE / 8) {
            *word = self.round;
            flush(std::ptr::from_ref(word));
        }
        settle();
        let kept = self.words.iter().step_by(LINE / 8).all(|word| *word == self.round);
        if kept { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }
}

#[cfg(target_arch = "x86_64")]
fn flush(word: *const u64) {
    // SAFETY: every x86-64 processor has the instruction, and it changes no memory.
    unsafe { std::arch::x86_64::_mm_clflush(word.cast()) };
}

/// Waits until the flushes are done.
#[cfg(target_arch = "x86_64")]
fn settle() {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_mm_mfence() };
}

#[cfg(target_arch = "aarch64")]
fn flush(word: *const u64) {
    // SAFETY: Linux allows the instruction to programs (arch/arm64, SCTLR_EL1.UCI); it changes no
    // memory.
    unsafe { std::arch::asm!("dc civac, {}", in(reg) word, options(nostack)) };
}

/// Waits until the flushes are done.
#[cfg(target_arch = "aarch64")]
fn settle() {
    // SAFETY: a barrier changes no memory.
    unsafe { std::arch::asm!("dsb ish", options(nostack)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn flush(_: *const u64) {}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn settle() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_flushed_is_in_memory() {
        let mut lines = Lines::new();
        lines.go().unwrap();
        lines.go().unwrap();
        let used = lines.words.iter().filter(|word| **word == 2).count();
        assert_eq!((used, lines.words[1]), (BYTES / LINE, 0));
    }
}
