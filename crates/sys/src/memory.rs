//! Memory for measuring threads: locked, touched before the window, and shared with the process
//! that drains it.

#[cfg(miri)]
mod interpreted;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, MlockAllFlags, ProtFlags, mlockall, mmap, munmap};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Locks what the process touches from now on, without touching what it never uses.
pub fn lock_on_fault() -> io::Result<()> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?;
    Ok(())
}

/// Touches this much of the stack, so that the measuring loop faults no page in.
#[inline(never)]
#[expect(clippy::large_stack_arrays, reason = "the stack is what is to be touched")]
pub fn prefault_stack() {
    let mut stack = [0u8; 64 * 1024];
    std::hint::black_box(&mut stack);
}

/// An anonymous file for sharing memory with a child.
pub fn shared_file(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    #[cfg(miri)]
    return interpreted::file(bytes);
    let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
    ftruncate(&file, bytes as u64)?;
    Ok(file)
}

/// A shared mapping of a whole file, unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is plain memory; whoever interprets it must use atomics for what two sides
// write.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` of the file and touches every page.
    pub fn new(file: &impl AsFd, bytes: usize) -> io::Result<Self> {
        #[cfg(miri)]
        return Ok(Self { start: interpreted::start(file)?, bytes });
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choosing overlaps nothing.
        let start = unsafe {
            mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED | MapFlags::POPULATE, file, 0)?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// First byte of the mapping, aligned to a page.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length of the mapping.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// `count` words from byte `offset` on, which every side may read and write at any time.
    ///
    /// # Panics
    /// Where the words are not aligned or do not lie in the mapping: a mistake of the caller, whose
    /// layout it is.
    #[inline]
    pub fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        let end = count.checked_mul(8).and_then(|bytes| bytes.checked_add(offset));
        assert!(
            offset.is_multiple_of(8) && end.is_some_and(|end| end <= self.bytes),
            "words outside a mapping"
        );
        // SAFETY: aligned and inside the mapping, which lives as long as `self`; any bits are a
        // valid AtomicU64.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset).cast(), count) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[cfg(miri)]
        return;
        // SAFETY: the range is the one mapped in `new`, and nothing borrows from it longer than
        // `self` lives.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
