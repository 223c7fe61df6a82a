//! `mem_bandwidth`: a streaming copy. One copier a CPU copies memory from one half of its working
//! set to the other, without end.
//!
//! It takes bandwidth of the memory and of the shared cache from the measured CPUs, as the copy of
//! STREAM does (McCalpin 1995), which only hardware can share out (resctrl,
//! Documentation/arch/x86/resctrl.rst). A million bytes a second are about as many operations.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::{self, Counter};
use crate::workers::repeat_in;
use model::Cpus;
use rustix::io::Errno;
use std::hint::black_box;
use std::io;
use sys::sched;

/// Words copied in one operation: 1 MiB.
const STEP: usize = (1 << 20) / 8;
const ALL_BYTES: u64 = 256 << 20;
/// A copier's source and target together, where no size is given and there is room for all.
const DEFAULT_BYTES: u64 = 64 << 20;
/// No core copies 1 MiB in less, ns: that would be 200 GB per second.
const LEAST_COST_NS: u64 = 5_000;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "mem_bandwidth",
    title: "memory bandwidth: a streaming copy of 32 MiB over and over, one a CPU",
    class: "mem",
    operation: "1 MiB copied",
    needs: "memory for a working set a CPU",
    kernel_paths: &["none once its pages are there: shared cache and memory bandwidth"],
    witness: "CPU time of the copiers, us (5 us an operation at the very least); each copy's first and last word checked",
    danger: "memory bandwidth; bounded by one copier a CPU at a weak nice value",
    memory_bytes: ALL_BYTES,
    fills: |order| {
        let workers = order.workers.map_or(order.cpus.len() as u64, u64::from).max(1);
        let own = DEFAULT_BYTES.min(ALL_BYTES / workers);
        workers.saturating_mul(order.bytes.unwrap_or(own))
    },
    peer: Some("--memcpy"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let cpus: Vec<u32> = job.cpus.iter().collect();
    let workers = job.workers.unwrap_or(cpus.len() as u32).max(1);
    let own = DEFAULT_BYTES.min(ALL_BYTES / u64::from(workers));
    let steps = (job.bytes.unwrap_or(own) / 2 / (8 * STEP as u64)).max(1) as usize;
    let before =
        job.begin_counting(Counter::read("CPU time of the copiers, us", witness::children_cpu_us)?)?;
    let done = repeat_in(job, workers, |number| {
        let cpu = cpus.get(number as usize % cpus.len().max(1)).copied().unwrap_or_default();
        sched::pin(&Cpus::one(cpu)).map_err(Error::refused("run on one CPU"))?;
        let mut copier = Copier::over(steps);
        Ok(move || copier.copy_next())
    })?;
    let witness = before.grown(done.tally.ok * LEAST_COST_NS / 1000)?;
    Ok(done.account(job, witness))
}

/// Two equal halves, and how often a step has been copied.
struct Copier {
    from: Vec<u64>,
    to: Vec<u64>,
    copied: u64,
}

impl Copier {
    fn over(steps: usize) -> Self {
        Self { from: vec![1; steps * STEP], to: vec![0; steps * STEP], copied: 0 }
    }

    /// Copies the next step, whose first and last word are new each time.
    fn copy_next(&mut self) -> io::Result<()> {
        self.copied += 1;
        let start = (self.copied as usize - 1) % (self.from.len() / STEP) * STEP;
        let (first, last) = (start, start + STEP - 1);
        (self.from[first], self.from[last]) = (self.copied, !self.copied);
        self.to[first..=last].copy_from_slice(black_box(&self.from[first..=last]));
        let to = black_box(&self.to);
        if (to[first], to[last]) == (self.copied, !self.copied) { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_copies_every_word_and_begins_again() {
        let mut copier = Copier::over(3);
        for _ in 0..4 {
            copier.copy_next().unwrap();
        }
        assert_eq!(copier.from, copier.to);
        assert_eq!([copier.to[0], copier.to[STEP], copier.to[2 * STEP]], [4, 2, 3]);
        assert_eq!(copier.to[1], 1);
    }
}
