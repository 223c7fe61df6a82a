//! `fault`: page faults. 4 MiB of anonymous memory are mapped without huge pages, every page is
//! touched, all is unmapped.
//!
//! Exercises the page allocator (per-CPU lists, zone locks, memory-group charging), the zeroing of
//! pages, and on unmap the TLB flush of its own process, which has one thread and so stays on the
//! CPUs it has run on.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::Counter;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;
use sys::clock::thread_usage;

const BYTES: usize = 4 << 20;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "fault",
    title: "page faults: 4 MiB mapped without huge pages, touched, unmapped",
    class: "mm",
    operation: "4 MiB mapped, every page touched, unmapped",
    privilege: "none",
    needs: "4 MiB of memory",
    kernel_paths: &[
        "handle_mm_fault",
        "page allocator",
        "clear_page",
        "memory cgroup charge",
        "munmap",
        "TLB flush",
    ],
    witness: "minor faults of the thread (getrusage)",
    cleanup: "none: memory goes with the process",
    danger: "memory bandwidth; bounded by a working set of 4 MiB and the rate",
    default_rate: Some(100.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let before = job.begin_counting(Counter::read("getrusage minor faults", minor_faults)?)?;
    let done = job.repeat(|| Ok(map_touch_unmap()?));
    let pages = (BYTES / page_size()) as u64;
    let expected = done.tally.ok * pages;
    Ok(done.account(job, before.grown(expected)?))
}

fn minor_faults() -> Result<u64, Error> {
    Ok(thread_usage().map_err(Error::refused("read the resource usage"))?.faults.minor)
}

fn map_touch_unmap() -> rustix::io::Result<()> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh private mapping at an address of the kernel's choosing overlaps nothing.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), BYTES, protection, MapFlags::PRIVATE)? };
    // Kernels without huge pages refuse the advice, and need none.
    // SAFETY: the range is the one just mapped.
    let _ = unsafe { madvise(start, BYTES, Advice::LinuxNoHugepage) };
    for offset in (0..BYTES).step_by(page_size()) {
        // SAFETY: `offset` lies within the mapping, which is writable and used by nobody else.
        unsafe { start.cast::<u8>().add(offset).write_volatile(1) };
    }
    // SAFETY: the range is the one mapped above, and no pointer into it outlives this call.
    unsafe { munmap(start, BYTES) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_faults_once() {
        let before = thread_usage().unwrap().faults.minor;
        map_touch_unmap().unwrap();
        let after = thread_usage().unwrap().faults.minor;
        assert!(after - before >= (BYTES / page_size()) as u64, "{before} to {after}");
    }
}
