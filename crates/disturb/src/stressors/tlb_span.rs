//! `tlb_span`: TLB shootdowns. A process that has a thread on each measured CPU changes the
//! protection of a page elsewhere.
//!
//! It is the mistake of a program that spreads its threads over isolated and other CPUs: whatever
//! one thread unmaps or protects has to leave the translation caches of all CPUs that run the
//! process (arch/x86/mm/tlb.c, `flush_tlb_mm_range`). It is seen on the measured CPU while the
//! thread there is in user space, so it serves as a positive control. arm64 broadcasts the flush in
//! hardware.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::spinners::with_spinners;
use crate::witness::{self, Counter};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::io;

const PAGE: usize = 4096;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "tlb_span",
    title: "TLB shootdowns: a thread on each measured CPU, pages protected elsewhere",
    class: "mm",
    operation: "a page written and then protected",
    needs: "a measured CPU; an architecture that flushes by interrupts (x86)",
    kernel_paths: &["mprotect", "flush_tlb_mm_range", "smp_call_function_many_cond", "flush_tlb_func"],
    witness: "TLB shootdowns of the measured CPUs: one in a hundred operations at least",
    danger: "takes the measured CPUs; bounded by one SCHED_OTHER thread each",
    default_rate: Some(1000.0),
    colocated: true,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(Error::absent("TLB flushes of this architecture interrupt nobody"));
    }
    if job.measured.is_empty() {
        return Err(Error::absent("no CPU is measured"));
    }
    let page = Page::new().map_err(Error::refused("map a page"))?;
    // A page that was never touched has no translation to flush: the first operation would be
    // unlike the others.
    page.flush().map_err(Error::refused("protect a page"))?;
    let measured = job.measured.clone();
    with_spinners(&measured, || {
        let before = job
            .begin_counting(Counter::read("/proc/interrupts TLB shootdowns of the measured CPUs", || {
                witness::interrupts("TLB shootdowns", Some(&measured))
            })?)?;
        let done = job.repeat(|| page.flush());
        let witness = before.grown(done.tally.ok / 100)?;
        Ok(done.account(job, witness))
    })
}

/// A page whose protection is taken away while it is in use.
pub(super) struct Page(*mut std::ffi::c_void);

impl Page {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: a new private mapping overlaps nothing.
        let page = unsafe {
            mmap_anonymous(std::ptr::null_mut(), PAGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        Ok(Self(page?))
    }

    /// Writes to the page and forbids writing: the translation that is in use has to go everywhere.
    pub(super) fn flush(&self) -> io::Result<()> {
        let protect = |flags| {
            // SAFETY: the page is this struct's own, and nobody holds a reference into it.
            unsafe { mprotect(self.0, PAGE, flags) }
        };
        protect(MprotectFlags::READ | MprotectFlags::WRITE)?;
        // SAFETY: as above; the page is writable now.
        unsafe { self.0.cast::<u8>().write_volatile(1) };
        Ok(protect(MprotectFlags::READ)?)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the page is this struct's own.
        let _ = unsafe { munmap(self.0, PAGE) };
    }
}
