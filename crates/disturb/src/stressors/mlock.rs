//! `mlock`: pages locked and unlocked. Fresh memory is mapped, locked (which makes all its pages
//! present), unlocked and unmapped.
//!
//! Locking moves pages to the unevictable list and unlocking back (mm/mlock.c), in batches kept per
//! CPU; kernels before 5.18 drained the batches of all CPUs for a lock (`lru_add_drain_all`: a work
//! item on each CPU).

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::vmstat;
use crate::spec::StressorSpec;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap_anonymous, munlock, munmap};
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};

/// What ordinary users could lock on all kernels before 5.16.
const BYTES: usize = 64 << 10;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "mlock",
    title: "64 KiB mapped, locked in memory, unlocked and unmapped",
    class: "mm",
    operation: "64 KiB mapped, locked, unlocked, unmapped",
    needs: "RLIMIT_MEMLOCK of 64 KiB",
    kernel_paths: &["mlock", "populate_vma_page_range", "mlock_folio", "lru_add_drain", "munlock"],
    witness: "unevictable_pgs_mlocked of /proc/vmstat: every page of every operation",
    danger: "memory that cannot be reclaimed; bounded to 64 KiB",
    default_rate: Some(1000.0),
    peer: Some("--mlock"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    if let Some(limit) = getrlimit(Resource::Memlock).current
        && limit < BYTES as u64
        && lock_and_unlock().is_err()
    {
        return Err(Error::absent(format!("RLIMIT_MEMLOCK is {limit} bytes; expected {BYTES}")));
    }
    let before = job.begin_counting(vmstat("unevictable_pgs_mlocked")?)?;
    let done = job.repeat(|| Ok(lock_and_unlock()?));
    let witness = before.grown(done.tally.ok * (BYTES / page_size()) as u64)?;
    Ok(done.account(job, witness))
}

fn lock_and_unlock() -> rustix::io::Result<()> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh private mapping at an address of the kernel's choosing overlaps nothing.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), BYTES, protection, MapFlags::PRIVATE)? };
    // SAFETY: the range is the one just mapped, and no pointer into it outlives the last call.
    unsafe {
        // Kernels without huge pages refuse the advice, and need none.
        let _ = madvise(start, BYTES, Advice::LinuxNoHugepage);
        let locked = mlock(start, BYTES).and_then(|()| munlock(start, BYTES));
        munmap(start, BYTES)?;
        locked
    }
}
