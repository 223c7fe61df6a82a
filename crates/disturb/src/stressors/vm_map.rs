//! `vm_map`: address space without memory. 4 MiB are mapped and unmapped, and no page is touched.
//!
//! What is left of a map when nothing faults: the lock of the address space, the tree of its areas
//! (mm/mmap.c, mm/vma.c), accounting, and on unmap the walk of empty page tables. Nothing has to
//! leave a translation cache, so that no other CPU should hear of it.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use model::stressor::Witness;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::param::page_size;
use std::ffi::c_void;
use std::io;

const BYTES: usize = 4 << 20;
/// One operation in as many is looked at from outside.
const LOOK: u64 = 64;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "vm_map",
    title: "maps without memory: 4 MiB mapped and unmapped, no page touched",
    class: "mm",
    operation: "4 MiB mapped and unmapped",
    needs: "4 MiB of address space",
    kernel_paths: &["mmap_region", "__vm_munmap", "mmap_lock", "free_pgtables"],
    witness: "mincore of one operation in 64: a range there while it is mapped, and ENOMEM once it is not",
    danger: "the lock of its own address space; bounded by one thread and the rate",
    default_rate: Some(10_000.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    job.begin()?;
    let (mut tried, mut seen) = (0u64, 0u64);
    let done = job.repeat(|| {
        tried += 1;
        if tried % LOOK == 1 {
            map_and_look()?;
            seen += 1;
            return Ok(());
        }
        Ok(unmap(map()?)?)
    });
    let expected = done.tally.ok.div_ceil(LOOK);
    let name = "mincore: ranges there when mapped and gone when not".to_owned();
    Ok(done.account(job, Witness { name, expected, seen }))
}

fn map() -> io::Result<*mut c_void> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh private mapping at an address of the kernel's choosing overlaps nothing.
    Ok(unsafe { mmap_anonymous(std::ptr::null_mut(), BYTES, protection, MapFlags::PRIVATE)? })
}

fn unmap(start: *mut c_void) -> rustix::io::Result<()> {
    // SAFETY: the range is one that `map` has made, and nothing points into it.
    unsafe { munmap(start, BYTES) }
}

/// The same, with the kernel asked in between and afterwards.
fn map_and_look() -> io::Result<()> {
    let start = map()?;
    let there = is_mapped(start)?;
    unmap(start)?;
    // The process has one thread, so that nothing else can have been mapped in its place.
    if there && !is_mapped(start)? { Ok(()) } else { Err(Errno::BADMSG.into()) }
}

fn is_mapped(start: *mut c_void) -> io::Result<bool> {
    let mut resident = vec![0u8; BYTES / page_size()];
    // SAFETY: mincore touches no page of the range, and writes one byte a page into a list as long.
    match unsafe { libc::mincore(start, BYTES, resident.as_mut_ptr().cast()) } {
        0 => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENOMEM) => Ok(false),
            error => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_distinguishes_a_map_from_a_hole() {
        let start = map().unwrap();
        assert!(is_mapped(start).unwrap());
        // SAFETY: the last page of the range just mapped; nothing points into it.
        unsafe { munmap(start.cast::<u8>().add(BYTES - page_size()).cast(), page_size()).unwrap() };
        assert!(!is_mapped(start).unwrap(), "a hole of one page is seen");
        unmap(start).unwrap();
    }
}
