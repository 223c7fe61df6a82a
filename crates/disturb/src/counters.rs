//! Counters of `perf_event_open(2)` as an operation: opened, fed with one page fault, read, closed.
//!
//! Page faults, a software event: it needs no PMU, so that guests have it, and whether it counted
//! can be checked at once.

use super::Error;
use perf_event::events::Software;
use perf_event::{Builder, Counter};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;
use std::io;

/// A running counter of page faults of the calling task and, if `heirs`, of what it starts from now
/// on.
pub(super) fn of_this_task(heirs: bool) -> io::Result<Counter> {
    page_faults().observe_self().inherit(heirs).build()
}

/// A running counter of page faults of another task and what it starts from now on.
pub(super) fn of_task(pid: i32) -> io::Result<Counter> {
    page_faults().observe_pid(pid).inherit(true).build()
}

/// A running counter of page faults on one CPU, whoever has them.
pub(super) fn on_cpu(cpu: u32) -> io::Result<Counter> {
    page_faults().any_pid().one_cpu(cpu as usize).build()
}

fn page_faults() -> Builder<'static> {
    let mut builder = Builder::new(Software::PAGE_FAULTS);
    // With the kernel counted too, kernel.perf_event_paranoid = 2 would refuse ordinary users.
    builder.enabled(true).exclude_kernel(true);
    builder
}

/// For `map_err` on the first counter of a run: what is not allowed or not built in is absent.
pub(super) fn lacking(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Error::absent("kernel.perf_event_paranoid does not allow it"),
        Some(libc::ENOSYS) => Error::absent("this kernel has no perf_event_open"),
        _ => Error::refused("open a counter")(error),
    }
}

/// A page that can be made to fault.
#[derive(Debug)]
pub(super) struct Page(*mut std::ffi::c_void);

impl Page {
    pub(super) fn new() -> Result<Self, Error> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh private mapping at an address of the kernel's choosing overlaps nothing.
        let page =
            unsafe { mmap_anonymous(std::ptr::null_mut(), page_size(), protection, MapFlags::PRIVATE) };
        page.map(Self).map_err(Error::refused("map a page"))
    }

    /// One minor page fault.
    pub(super) fn fault(&self) -> io::Result<()> {
        // SAFETY: the page is this struct's own, and nobody holds a reference into it.
        unsafe {
            madvise(self.0, page_size(), Advice::LinuxDontNeed)?;
            self.0.cast::<u8>().write_volatile(1);
        }
        Ok(())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and no pointer into it outlives this.
        let _ = unsafe { munmap(self.0, page_size()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_counted_and_nothing_else_is_where_counters_are_allowed() {
        let page = Page::new().unwrap();
        page.fault().unwrap();
        match of_this_task(false) {
            Ok(mut counter) => {
                page.fault().unwrap();
                assert!(counter.read().unwrap() >= 1);
            }
            Err(error) => assert!(!lacking(error).to_string().is_empty()),
        }
    }
}
