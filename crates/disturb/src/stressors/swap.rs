//! `swap`: 1 MiB of memory swapped out and in again, in a swap area of the stressor's own.
//!
//! The pages are unmapped in batches, after which each CPU that runs the process flushes its
//! translations (mm/vmscan.c: `reclaim_pages`; mm/rmap.c: `try_to_unmap_flush`), and written to the
//! area. Each comes back by a fault (mm/memory.c: `do_swap_page`): from the device, or from the
//! swap cache where the device has only just written it. Switching the area on and off drains the
//! page lists of all CPUs.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::vmstat;
use crate::leaving::{Leaving, Mark};
use crate::spec::StressorSpec;
use crate::swap_file::SwapFile;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;
use std::io;

const BYTES: usize = 1 << 20;
/// The area: what others swap out meanwhile has room, too.
const AREA_BYTES: usize = 8 << 20;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "swap",
    title: "memory swapped out and in: 1 MiB, in a swap file of its own",
    class: "mm",
    operation: "1 MiB touched, swapped out on request, read back and compared",
    privilege: "root",
    needs: "CONFIG_SWAP, Linux 5.4 (MADV_PAGEOUT); /var/tmp or /tmp on a disk, or a loop device",
    kernel_paths: &[
        "madvise_pageout",
        "reclaim_pages",
        "try_to_unmap_flush",
        "arch_tlbbatch_flush",
        "swap_writepage",
        "do_swap_page",
        "lru_add_drain_all",
    ],
    witness: "pswpout of /proc/vmstat: 128 pages of the 256 of an operation at least",
    cleanup: "the swap file is switched off and removed",
    danger: "the kernel may swap out what others have, too, and has to read it back at the end; bounded by 8 MiB",
    default_rate: Some(20.0),
    memory_bytes: 64 << 20,
    fills: |_| 16 << 20,
    modules: &["loop"],
    leaves: |mark| file(mark).into_iter().collect(),
    dangerous: true,
    peer: Some("--swap"),
    work,
    ..StressorSpec::PLAIN
};

fn file(mark: &Mark<'_>) -> Option<Leaving> {
    SwapFile::of(&mark.id).map(Leaving::SwapFile)
}

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let Some(path) = job.leaves.first().cloned() else {
        return Err(Error::absent("there is no directory for a swap file"));
    };
    let swapped = vmstat("pswpout")?;
    let area = SwapFile { path: path.into() }.switch_on(AREA_BYTES)?;
    job.confined_by.push(format!("swap to {}", area.path().display()));
    let mut memory = Memory::new().map_err(Error::refused("map memory"))?;
    memory.go().map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => Error::absent("this kernel swaps nothing out on request (MADV_PAGEOUT, 5.4)"),
        _ => Error::refused("swap memory out")(error),
    })?;
    let before = job.begin_counting(swapped)?;
    let done = job.repeat(|| memory.go());
    let witness = before.grown(done.tally.ok * (BYTES / page_size() / 2) as u64)?;
    // What is still swapped out need not be read back when the area goes.
    drop(memory);
    Ok(done.account(job, witness))
}

/// What is swapped out.
struct Memory {
    start: *mut u8,
    round: u8,
}

impl Memory {
    fn new() -> io::Result<Self> {
        // SAFETY: a fresh private mapping overlaps nothing; the advice is for that range.
        let start = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let start = mmap_anonymous(std::ptr::null_mut(), BYTES, protection, MapFlags::PRIVATE)?;
            // Kernels without huge pages refuse the advice, and need none.
            let _ = madvise(start, BYTES, Advice::LinuxNoHugepage);
            start
        };
        Ok(Self { start: start.cast(), round: 0 })
    }

    /// One operation.
    fn go(&mut self) -> io::Result<()> {
        self.round = self.round.wrapping_add(1);
        // SAFETY: the mapping is this struct's own, and nobody holds a reference into it.
        let kept = unsafe {
            self.start.write_bytes(self.round, BYTES);
            madvise(self.start.cast(), BYTES, Advice::LinuxPageOut)?;
            (0..BYTES).step_by(page_size()).all(|at| self.start.add(at).read_volatile() == self.round)
        };
        if kept { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this struct's own.
        let _ = unsafe { munmap(self.start.cast(), BYTES) };
    }
}
