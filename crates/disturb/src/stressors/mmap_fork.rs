//! `mmap_fork`: a process with 8 MiB of touched memory is forked, and the copy writes a part of it.
//!
//! What `u_fork` leaves out: fork copies the page tables and takes the right to write away from
//! both sides (mm/memory.c: `copy_page_range`), so that the parent's translations have to leave
//! every CPU that runs it; each page that the copy writes is copied (`do_wp_page`), and its end
//! takes the tables down (mm/mmap.c: `exit_mmap`; mm/mmu_gather.c: `tlb_remove_table`). Databases
//! that save their state by fork do it, with gigabytes.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::children_faults;
use crate::offspring::fork_and_wait;
use crate::spec::StressorSpec;
use crate::workers::repeat_in;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::param::page_size;
use std::io;

const BYTES: usize = 8 << 20;
/// One page in as many is written by the copy.
const STRIDE: usize = 8;
/// What the parent has in each of its pages, and the copy writes over it.
const PARENT: u8 = 0x50;
const COPY: u8 = 0xc0;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "mmap_fork",
    title: "processes with memory forked: 8 MiB shared, and one page in eight written by the copy",
    class: "mm",
    operation: "a process of 8 MiB forked, 256 pages written by the copy, the copy ended and waited for",
    needs: "8 MiB of memory, and a quarter more for what is copied",
    kernel_paths: &[
        "copy_page_range",
        "flush_tlb_mm",
        "do_wp_page",
        "exit_mmap",
        "tlb_remove_table",
        "call_rcu",
        "wake_up_new_task",
    ],
    witness: "minor faults of the copies (getrusage): one a page written",
    cleanup: "none: every process ends with its supervisor",
    danger: "memory bandwidth; bounded by one copy at a time",
    default_rate: Some(50.0),
    memory_bytes: 32 << 20,
    fills: |_| 16 << 20,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let before = job.begin_counting(children_faults()?)?;
    let done = repeat_in(job, 1, |_| {
        let memory = Memory::new().map_err(Error::refused("map memory"))?;
        Ok(move || memory.fork())
    })?;
    let witness = before.grown(done.tally.ok * (pages() / STRIDE) as u64)?;
    Ok(done.account(job, witness))
}

fn pages() -> usize {
    BYTES / page_size()
}

/// Memory of small pages, all of them touched; it goes with its process.
struct Memory(*mut u8);

impl Memory {
    fn new() -> io::Result<Self> {
        // SAFETY: a fresh private mapping overlaps nothing; the advice and the writes are for it.
        let start = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let start = mmap_anonymous(std::ptr::null_mut(), BYTES, protection, MapFlags::PRIVATE)?;
            // Kernels without huge pages refuse the advice, and need none.
            let _ = madvise(start, BYTES, Advice::LinuxNoHugepage);
            start.cast::<u8>().write_bytes(PARENT, BYTES);
            start
        };
        Ok(Self(start.cast()))
    }

    /// One operation: what the copy writes must stay with the copy.
    fn fork(&self) -> io::Result<()> {
        fork_and_wait(|| {
            let written = (0..pages()).step_by(STRIDE);
            written.clone().for_each(|page| self.set(page, COPY));
            if written.clone().all(|page| self.get(page) == COPY) {
                Ok(())
            } else {
                Err(Errno::BADMSG.into())
            }
        })?;
        if self.get(0) == PARENT { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }

    fn set(&self, page: usize, value: u8) {
        // SAFETY: the first byte of one of the mapping's pages, which only this struct uses.
        unsafe { self.0.add(page * page_size()).write_volatile(value) };
    }

    fn get(&self, page: usize) -> u8 {
        // SAFETY: as above.
        unsafe { self.0.add(page * page_size()).read_volatile() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_faults_once_for_each_page_that_it_writes() {
        let memory = Memory::new().unwrap();
        let before = children_faults().unwrap().start().unwrap();
        memory.fork().unwrap();
        let witness = before.grown((pages() / STRIDE) as u64).unwrap();
        assert!(witness.seen >= witness.expected, "{witness:?}");
        memory.set(0, COPY);
        assert!(memory.fork().is_err(), "memory that changed by itself is found");
    }
}
