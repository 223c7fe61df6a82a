//! `llc_thrash`: cache pressure. One walker a CPU changes random words of a working set of its own,
//! 20 MiB unless asked otherwise.
//!
//! It takes shared cache and memory bandwidth from other cores. No software isolation of CPUs
//! prevents that; only cache allocation (`resctrl`) does. A random walk defeats prefetchers; a
//! read-modify-write makes every line dirty, so that it has to be written back. Cerqueira and
//! Brandenburg's CPU-bound background (OSPERT 2013, §3.2) is such a walk over 20 MiB on each core.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::{self, Counter};
use crate::workers::repeat_in;
use model::Cpus;
use rustix::io::Errno;
use std::io;
use sys::sched;

/// Words changed in one operation.
const STEPS: usize = 65_536;
const DEFAULT_BYTES: u64 = 20 << 20;
/// No CPU changes 65,536 words, each at an address that depends on the one before, in less, ns:
/// that would be eight a nanosecond.
const LEAST_COST_NS: u64 = 8_192;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "llc_thrash",
    title: "cache pressure: a random walk that changes words of 20 MiB, one a CPU",
    class: "mem",
    operation: "65,536 random words read, changed and written back",
    needs: "memory for a working set a CPU",
    kernel_paths: &["none once its pages are there: shared cache and memory bandwidth"],
    witness: "CPU time of the walkers, us (8 us an operation at the very least); each pass must have met every word once",
    danger: "memory bandwidth; bounded by one walker a CPU at a weak nice value",
    memory_bytes: 64 << 20,
    fills: |order| {
        let workers = order.workers.map_or(order.cpus.len() as u64, u64::from).max(1);
        workers.saturating_mul(order.bytes.unwrap_or(DEFAULT_BYTES))
    },
    peer: Some("--cache"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let cpus: Vec<u32> = job.cpus.iter().collect();
    let workers = job.workers.unwrap_or(cpus.len() as u32).max(1);
    let words = (job.bytes.unwrap_or(DEFAULT_BYTES) / 8).clamp(1024, 1 << 40) as usize;
    let before =
        job.begin_counting(Counter::read("CPU time of the walkers, us", witness::children_cpu_us)?)?;
    let done = repeat_in(job, workers, |number| {
        let cpu = cpus.get(number as usize % cpus.len().max(1)).copied().unwrap_or_default();
        sched::pin(&Cpus::one(cpu)).map_err(Error::refused("run on one CPU"))?;
        let mut walk = Walk::over(words);
        Ok(move || walk.go(STEPS))
    })?;
    let witness = before.grown(done.tally.ok * LEAST_COST_NS / 1000)?;
    Ok(done.account(job, witness))
}

/// A walk that meets every word once a pass, in an order that looks random: a linear congruential
/// generator of full period over the next power of two (Hull and Dobell 1962: increment odd,
/// multiplier 1 modulo 4), without the places beyond the end.
struct Walk {
    words: Vec<u64>,
    place: usize,
    /// Words met in this pass, and passes before.
    met: usize,
    passes: u64,
}

impl Walk {
    fn over(words: usize) -> Self {
        Self { words: vec![0; words], place: 0, met: 0, passes: 0 }
    }

    /// Changes as many words; an error where memory does not hold what was written.
    fn go(&mut self, steps: usize) -> io::Result<()> {
        for _ in 0..steps {
            self.words[self.place] += 1;
            self.place = self.next();
            self.met += 1;
            if self.met == self.words.len() {
                (self.met, self.passes) = (0, self.passes + 1);
                if self.words.iter().any(|word| *word != self.passes) {
                    return Err(Errno::BADMSG.into());
                }
            }
        }
        Ok(())
    }

    fn next(&self) -> usize {
        let mask = self.words.len().next_power_of_two() - 1;
        let mut place = self.place;
        loop {
            place = place.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) & mask;
            if place < self.words.len() {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_pass_meets_every_word_once(words in 1usize..5000, passes in 1usize..4) {
            let mut walk = Walk::over(words);
            walk.go(words * passes).unwrap();
            prop_assert!(walk.words.iter().all(|word| *word == passes as u64));
        }
    }

    #[test]
    fn a_word_that_changed_by_itself_is_found() {
        let mut walk = Walk::over(100);
        walk.words[7] = 1;
        assert!(walk.go(100).is_err());
    }
}
