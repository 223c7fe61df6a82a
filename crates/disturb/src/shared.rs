//! Counters that several processes of a stressor share: a page of memory that stays where it is
//! over `fork`.
//!
//! A pipe for each report, as [`workers`](super::workers) has it, would be a descriptor for each of
//! 400 processes.

use super::Error;
use super::tally::Tally;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// One slot for every errno that Linux has (`include/uapi/asm-generic/errno.h` ends at 133).
const ERRNOS: usize = 134;

/// As many counters as requested, all 0 at first, in memory that forked copies share.
pub(super) struct Counters {
    start: NonNull<AtomicU64>,
    len: usize,
}

impl Counters {
    pub(super) fn new(len: usize) -> Result<Self, Error> {
        let refused = Error::refused("share memory between processes");
        // SAFETY: a new mapping at an address of the kernel's choosing overlaps nothing.
        let start = unsafe {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            mmap_anonymous(std::ptr::null_mut(), len * 8, flags, MapFlags::SHARED).map_err(refused)?
        };
        let start = NonNull::new(start.cast()).ok_or_else(|| Error::absent("no memory to share"))?;
        Ok(Self { start, len })
    }

    /// The counters.
    pub(super) fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `len` aligned, zeroed words until it is dropped; any bits are a
        // valid AtomicU64.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // SAFETY: the mapping is this struct's own, and no reference into it outlives it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len * 8) };
    }
}

/// A tally that several processes add to.
pub(super) struct SharedTally(Counters);

impl SharedTally {
    pub(super) fn new() -> Result<Self, Error> {
        // Slot 0 counts successes: no failure has errno 0.
        Counters::new(ERRNOS).map(Self)
    }

    pub(super) fn succeed(&self, operations: u64) {
        self.0.all()[0].fetch_add(operations, Ordering::Relaxed);
    }

    /// Counts a failure; what has no errno, or one beyond those known, is counted as EIO.
    pub(super) fn fail(&self, error: &io::Error) {
        let errno = error.raw_os_error().and_then(|errno| usize::try_from(errno).ok());
        let slot = errno.filter(|errno| (1..ERRNOS).contains(errno)).unwrap_or(libc::EIO as usize);
        self.0.all()[slot].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sum(&self) -> Tally {
        let mut tally = Tally::default();
        for (errno, count) in self.0.all().iter().enumerate() {
            match (errno, count.load(Ordering::Relaxed)) {
                (0, ok) => tally.ok = ok,
                (_, 0) => {}
                (errno, count) => {
                    let name = super::tally::errno_name(errno as i32);
                    tally.failed.insert(name, count);
                }
            }
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_forked_copy_counts_is_seen() {
        let tally = SharedTally::new().unwrap();
        // SAFETY: the copy touches only the shared page and leaves at once.
        match unsafe { libc::fork() } {
            0 => {
                tally.succeed(3);
                tally.fail(&io::Error::from_raw_os_error(libc::EPIPE));
                tally.fail(&io::Error::from_raw_os_error(9999));
                super::super::workers::exit_now(0)
            }
            pid => {
                rustix::process::waitpid(
                    rustix::process::Pid::from_raw(pid),
                    rustix::process::WaitOptions::empty(),
                )
                .unwrap();
            }
        }
        let sum = tally.sum();
        assert_eq!((sum.ok, sum.failed["EPIPE"], sum.failed["EIO"]), (3, 1, 1));
        assert_eq!(sum.failed.len(), 2);
    }
}
