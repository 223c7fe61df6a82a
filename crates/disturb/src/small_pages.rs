//! As much memory as a huge page has, in small pages: what the kernel can make a huge page of, on
//! request or by itself.
//!
//! Where huge pages are given at the first touch (`enabled` is `always`) small ones have to be
//! asked for first, and allowed to become huge once they are touched
//! (`Documentation/admin-guide/mm/transhuge.rst`; madvise(2), MADV_NOHUGEPAGE, MADV_HUGEPAGE).

use super::Error;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::param::page_size;
use std::ffi::c_void;
use std::{fs, io};

const SIZE: &str = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
/// `include/uapi/asm-generic/mman-common.h`; libc lacks it.
const MADV_COLLAPSE: i32 = 25;
/// On arm64 with pages of 64 KiB a huge one has 512 MiB.
const MOST_BYTES: usize = 32 << 20;

/// A range that one huge page would fill.
pub(super) struct SmallPages {
    /// What is mapped: twice as much, so that the range within can begin at a multiple of its size.
    map: *mut c_void,
    start: *mut u8,
    bytes: usize,
    round: u8,
}

impl SmallPages {
    /// Maps it; nothing is touched yet. Absent where there are no transparent huge pages.
    pub(super) fn reserve() -> Result<Self, Error> {
        let text = fs::read_to_string(SIZE).unwrap_or_default();
        let bytes: usize = text.trim().parse().map_err(|_| {
            Error::absent("this kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE)")
        })?;
        if !bytes.is_power_of_two() || bytes > MOST_BYTES {
            return Err(Error::absent(format!(
                "a huge page has {bytes} bytes here; expected {MOST_BYTES} at most"
            )));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh private mapping overlaps nothing.
        let map = unsafe { mmap_anonymous(std::ptr::null_mut(), 2 * bytes, protection, MapFlags::PRIVATE) }
            .map_err(Error::refused("map memory"))?;
        let start = map.map_addr(|address| address.next_multiple_of(bytes)).cast();
        Ok(Self { map, start, bytes, round: 0 })
    }

    /// Throws away what there is, and touches every page anew, as a small one that may become a
    /// part of a huge one.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_DONTNEED)?;
        self.advise(libc::MADV_NOHUGEPAGE)?;
        self.round = self.round.wrapping_add(1);
        // SAFETY: the range is this struct's own, and nobody holds a reference into it.
        self.each_page().for_each(|page| unsafe { page.write_volatile(self.round) });
        self.advise(libc::MADV_HUGEPAGE)
    }

    /// Asks for one huge page in their place.
    pub(super) fn collapse(&self) -> io::Result<()> {
        self.advise(MADV_COLLAPSE)
    }

    /// Whether every page holds what was written.
    pub(super) fn are_whole(&self) -> bool {
        // SAFETY: as in `fill`.
        self.each_page().all(|page| unsafe { page.read_volatile() } == self.round)
    }

    fn each_page(&self) -> impl Iterator<Item = *mut u8> {
        (0..self.bytes).step_by(page_size()).map(|offset| self.start.wrapping_add(offset))
    }

    fn advise(&self, advice: i32) -> io::Result<()> {
        // SAFETY: the range is this struct's own, and nobody holds a reference into it.
        match unsafe { libc::madvise(self.start.cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this struct's own.
        let _ = unsafe { munmap(self.map, 2 * self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_what_was_written_and_begin_where_a_huge_page_may() {
        let Ok(mut pages) = SmallPages::reserve() else {
            println!("skipped: no transparent huge pages here");
            return;
        };
        assert_eq!(pages.start.addr() % pages.bytes, 0);
        pages.fill().unwrap();
        assert!(pages.are_whole());
        // Before 6.1 the request is not known.
        let collapsed = pages.collapse();
        assert!(pages.are_whole(), "{collapsed:?}");
        // SAFETY: the first byte of the last page.
        unsafe { pages.start.add(pages.bytes - page_size()).write_volatile(pages.round + 1) };
        assert!(!pages.are_whole());
    }
}
