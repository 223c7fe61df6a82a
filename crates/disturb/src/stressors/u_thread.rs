//! `u_thread`: thread churn. Batches of 16 threads are made, each touches its stack, and all are
//! joined.
//!
//! The stacks of one batch (16 × 4 MiB of addresses, of which a few KiB are touched) exceed the 40
//! MiB that glibc keeps for reuse, so that each batch maps and unmaps fresh ones; musl, which the
//! shipped program uses, never keeps any. Unmapping in a process whose threads run on several CPUs
//! flushes their TLBs by IPI; joining is a futex wake-up across CPUs.

use crate::Error;
use crate::account::Account;
use crate::job::{Done, Job, recover};
use crate::spec::StressorSpec;
use crate::tally::Tally;
use crate::witness::Counter;
use std::hint::black_box;
use std::io;
use std::thread::{Builder, JoinHandle};
use sys::clock::now_ns;

const BATCH: u32 = 16;
const STACK_BYTES: usize = 4 << 20;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "u_thread",
    title: "thread churn: batches of 16 threads made and joined, on fresh stacks",
    class: "sched",
    operation: "a thread made and joined",
    privilege: "none",
    needs: "room for 16 threads under pids.max and RLIMIT_NPROC, 64 MiB of address space",
    kernel_paths: &[
        "kernel_clone",
        "do_exit",
        "futex wake-up",
        "mmap",
        "munmap",
        "TLB shootdown",
        "load balancing",
    ],
    witness: "growth of `processes` in /proc/stat, which counts threads too, machine-wide: a lower bound",
    cleanup: "none: threads end with their process",
    danger: "memory for stacks; bounded by 16 threads at a time, RLIMIT_DATA and memory.max",
    default_rate: Some(2000.0),
    peer: Some("--pthread"),
    work,
    memory_bytes: 128 << 20,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let before = job.begin_counting(Counter::forks()?)?;
    let mut pace = job.pace(1);
    let mut tally = Tally::default();
    let t0_ns = now_ns();
    while pace.proceed(BATCH) {
        let before = tally.ok;
        if !batch(&mut tally) {
            recover();
        }
        job.meter.add(tally.ok - before);
    }
    let t1_ns = now_ns();
    let witness = before.grown(tally.ok)?;
    Ok(Done { tally, t0_ns, t1_ns }.account(job, witness))
}

/// Makes and joins one batch; false when any of it failed.
fn batch(tally: &mut Tally) -> bool {
    let threads: Vec<io::Result<JoinHandle<u8>>> =
        (0..BATCH).map(|_| Builder::new().stack_size(STACK_BYTES).spawn(touch_stack)).collect();
    let joined = threads.into_iter().map(|thread| match thread {
        Ok(thread) => tally.count(thread.join().map_err(|_| io::Error::other("thread panicked"))),
        Err(error) => tally.count::<(), _>(Err(error)),
    });
    // Every thread is joined whatever became of the others, hence no short cut.
    joined.fold(true, |all, one| all & one)
}

/// Makes the kernel map two pages of the fresh stack.
#[inline(never)]
fn touch_stack() -> u8 {
    let stack = [1u8; 4096];
    black_box(&stack)[stack.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_every_thread() {
        let mut tally = Tally::default();
        assert!(batch(&mut tally));
        assert_eq!(tally, Tally { ok: u64::from(BATCH), ..Tally::default() });
    }
}
