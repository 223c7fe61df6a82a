//! `mremap`: 64 touched pages moved from address to address, as allocators do that grow large
//! blocks.
//!
//! The kernel moves the entries of the page tables, not the pages (mm/mremap.c:
//! `move_page_tables`), and the old translations have to leave all CPUs that run the process
//! (`flush_tlb_range`): its own ones, for it has one thread. A measured CPU that hears of it runs
//! something it should not.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use model::stressor::Witness;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap_fixed, munmap};
use rustix::param::page_size;
use std::ffi::c_void;
use std::io;

const PAGES: usize = 64;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "mremap",
    title: "memory moved to another address: 64 touched pages, again and again",
    class: "mm",
    operation: "an address reserved, 64 pages moved there, a word of them checked",
    needs: "256 KiB of memory with pages of 4 KiB",
    kernel_paths: &["mremap_to", "move_page_tables", "flush_tlb_range", "mmap_lock", "free_pgtables"],
    witness: "mincore: all pages resident at the new address, and nothing mapped at the old one",
    cleanup: "none: memory goes with the process",
    danger: "the lock of its own address space; bounded by one thread and the rate",
    default_rate: Some(2000.0),
    peer: Some("--mremap"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let mut pages = Moving::new().map_err(Error::refused("map memory"))?;
    job.begin()?;
    let mut seen = 0;
    let done = job.repeat(|| {
        pages.go()?;
        seen += u64::from(pages.have_moved()?);
        Ok(())
    });
    let name = "mincore: pages resident where they were moved, and gone where they were".to_owned();
    let witness = Witness { name, expected: done.tally.ok, seen };
    Ok(done.account(job, witness))
}

/// Touched pages, and where they are.
struct Moving {
    here: *mut c_void,
    /// Where they were before; null before the first move.
    before: *mut c_void,
    moves: u64,
}

impl Moving {
    fn new() -> io::Result<Self> {
        let here = map(ProtFlags::READ | ProtFlags::WRITE)?;
        // SAFETY: the advice is for the range just mapped. Kernels without huge pages refuse it,
        // and need none.
        let _ = unsafe { madvise(here, bytes(), Advice::LinuxNoHugepage) };
        let moving = Self { here, before: std::ptr::null_mut(), moves: 0 };
        // SAFETY: the words lie in the range just mapped.
        (0..PAGES).for_each(|page| unsafe { moving.word(page).write_volatile(page as u64) });
        Ok(moving)
    }

    /// One operation. The address is reserved first, so that the move takes nobody's place.
    fn go(&mut self) -> io::Result<()> {
        let there = map(ProtFlags::empty())?;
        // SAFETY: both ranges are this struct's own, and nothing points into them.
        if let Err(error) = unsafe { mremap_fixed(self.here, bytes(), bytes(), MremapFlags::MAYMOVE, there) }
        {
            // SAFETY: as above.
            unsafe { munmap(there, bytes())? };
            return Err(error.into());
        }
        (self.before, self.here) = (self.here, there);
        self.moves += 1;
        let page = self.moves as usize % PAGES;
        // SAFETY: the word lies in the range as it now is.
        let word = unsafe { self.word(page).read_volatile() };
        if word == page as u64 { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }

    /// Whether the kernel has the pages here, and nothing where they were. The process has one
    /// thread, so that nothing else can have been mapped there.
    fn have_moved(&self) -> io::Result<bool> {
        Ok(resident(self.here)? == Some(PAGES) && resident(self.before)?.is_none())
    }

    fn word(&self, page: usize) -> *mut u64 {
        self.here.wrapping_byte_add(page * page_size()).cast()
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        // SAFETY: the range is this struct's own.
        let _ = unsafe { munmap(self.here, bytes()) };
    }
}

fn map(protection: ProtFlags) -> io::Result<*mut c_void> {
    // SAFETY: a fresh private mapping at an address of the kernel's choosing overlaps nothing.
    Ok(unsafe { mmap_anonymous(std::ptr::null_mut(), bytes(), protection, MapFlags::PRIVATE)? })
}

fn bytes() -> usize {
    PAGES * page_size()
}

/// How many of the pages from here on are in memory; `None` where not all of them are mapped.
fn resident(start: *mut c_void) -> io::Result<Option<usize>> {
    let mut pages = [0u8; PAGES];
    // SAFETY: mincore touches no page of the range, and writes one byte a page into a list as long.
    match unsafe { libc::mincore(start, bytes(), pages.as_mut_ptr().cast()) } {
        0 => Ok(Some(pages.iter().filter(|page| **page & 1 == 1).count())),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENOMEM) => Ok(None),
            error => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_move_and_the_kernel_says_so() {
        let mut pages = Moving::new().unwrap();
        let first = pages.here;
        assert_eq!(resident(first).unwrap(), Some(PAGES));
        pages.go().unwrap();
        assert_ne!(pages.here, first);
        assert_eq!(resident(pages.here).unwrap(), Some(PAGES));
        // SAFETY: the word of the page that the next move looks at.
        unsafe { pages.word(2).write_volatile(99) };
        assert!(pages.go().is_err(), "memory that changed by itself is found");
    }
}
