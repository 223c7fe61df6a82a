//! `vm_fill`: a share of memory. It is written from one end to the other, freed at once
//! (MADV_DONTNEED), and filled again.
//!
//! Where `fault` turns over 4 MiB, this keeps much of what it may have: the page allocator runs
//! down its lists and, near the limit of its group, reclaims (mm/vmscan.c); MADV_DONTNEED frees in
//! bulk. Five such workers over 70 % of the memory allowed are the memory load of the multicore
//! deployments paper (IEEE Access 2020, §V). `bytes` is what all workers have together.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::children_faults;
use crate::spec::StressorSpec;
use crate::workers::repeat_in;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::param::page_size;
use std::io;

const STEP: usize = 1 << 20;
const ALLOWED_BYTES: u64 = 128 << 20;
/// Share of the memory allowed, where no size is given.
const SHARE_PERCENT: u64 = 70;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "vm_fill",
    title: "a share of memory (70 % of 128 MiB): filled, given back, filled again",
    class: "mm",
    operation: "1 MiB of fresh memory written, to be given back when all is full",
    needs: "as much memory as is asked for, within its group",
    kernel_paths: &[
        "handle_mm_fault",
        "page allocator",
        "clear_page",
        "memory cgroup charge and reclaim",
        "MADV_DONTNEED",
        "free_unref_page_list",
    ],
    witness: "minor faults of the workers (getrusage): one a page",
    cleanup: "none: memory goes with the process",
    danger: "memory runs out; bounded by its bytes, its control group, RLIMIT_DATA, and being the first that is killed",
    default_rate: Some(200.0),
    memory_bytes: ALLOWED_BYTES,
    fills: |order| order.bytes.unwrap_or(ALLOWED_BYTES * SHARE_PERCENT / 100),
    peer: Some("--vm"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let workers = job.workers.unwrap_or(1).max(1);
    let bytes = job.bytes.unwrap_or(ALLOWED_BYTES * SHARE_PERCENT / 100) / u64::from(workers);
    let steps = (bytes as usize / STEP).max(1);
    let before = job.begin_counting(children_faults()?)?;
    let done = repeat_in(job, workers, |_| {
        let mut share = Share::new(steps).map_err(Error::refused("map a share of memory"))?;
        Ok(move || share.fill_next())
    })?;
    let witness = before.grown(done.tally.ok * (STEP / page_size()) as u64)?;
    Ok(done.account(job, witness))
}

/// A worker's share, and how far it is full.
struct Share {
    start: *mut u8,
    steps: usize,
    full: usize,
}

impl Share {
    fn new(steps: usize) -> io::Result<Self> {
        let bytes = steps * STEP;
        // SAFETY: a fresh private mapping overlaps nothing; the advice is for that range. It is
        // never unmapped: the process ends.
        let start = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let start = mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)?;
            // Kernels without huge pages refuse the advice, and need none.
            let _ = madvise(start, bytes, Advice::LinuxNoHugepage);
            start
        };
        Ok(Self { start: start.cast(), steps, full: 0 })
    }

    /// Writes the next MiB; when all is full its last words are checked and all is freed.
    fn fill_next(&mut self) -> io::Result<()> {
        let value = self.full as u8 | 1;
        // SAFETY: `full` is below `steps`, so that the MiB lies within the mapping, which nobody
        // else uses.
        unsafe { self.start.add(self.full * STEP).write_bytes(value, STEP) };
        self.full += 1;
        if self.full < self.steps {
            return Ok(());
        }
        let kept = (0..self.steps).all(|step| self.last_of(step) == step as u8 | 1);
        self.full = 0;
        // SAFETY: the range is the mapping's own, and nothing points into it.
        unsafe { madvise(self.start.cast(), self.steps * STEP, Advice::LinuxDontNeed)? };
        if kept { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }

    fn last_of(&self, step: usize) -> u8 {
        // SAFETY: the last byte of a step lies within the mapping.
        unsafe { self.start.add((step + 1) * STEP - 1).read_volatile() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_filled_and_freed() {
        let mut share = Share::new(3).unwrap();
        share.fill_next().unwrap();
        share.fill_next().unwrap();
        assert_eq!([share.last_of(0), share.last_of(1), share.last_of(2)], [1, 1, 0]);
        share.fill_next().unwrap();
        assert_eq!(
            [share.last_of(0), share.last_of(2), share.full as u8],
            [0, 0, 0],
            "given back, and zero again"
        );
    }

    #[test]
    fn memory_that_changed_by_itself_is_found() {
        let mut share = Share::new(2).unwrap();
        share.fill_next().unwrap();
        // SAFETY: the first MiB of the mapping.
        unsafe { share.start.write_bytes(0, STEP) };
        assert!(share.fill_next().is_err());
    }
}
