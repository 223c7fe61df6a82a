//! `madvise_collapse`: 512 small pages made one huge page on request (MADV_COLLAPSE), and thrown
//! away (MADV_DONTNEED), as programs do that want their text or heap in huge pages.
//!
//! Each request drains the page lists of all CPUs by a work item where one has something to drain
//! (mm/khugepaged.c: `madvise_collapse`, `lru_add_drain_all`). The page table that is replaced may
//! be being walked without a lock elsewhere (GUP-fast), so every CPU is interrupted once
//! (`collapse_huge_page`, `tlb_remove_table_sync_one`), isolated or not, and whatever it runs. Any
//! user may ask.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::vmstat;
use crate::small_pages::SmallPages;
use crate::spec::StressorSpec;
use rustix::io::Errno;
use std::io;

/// How often one operation asks: another CPU may hold a page for a moment (madvise(2), EAGAIN,
/// EBUSY).
const ATTEMPTS: u32 = 10;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "madvise_collapse",
    title: "huge pages made on request: 2 MiB of small pages collapsed, and thrown away",
    class: "mm",
    operation: "2 MiB of small pages touched, collapsed into one huge page, checked and thrown away",
    needs: "MADV_COLLAPSE (Linux 6.1), CONFIG_TRANSPARENT_HUGEPAGE; free memory in pieces of 2 MiB",
    kernel_paths: &[
        "madvise_collapse",
        "lru_add_drain_all",
        "collapse_huge_page",
        "pmdp_collapse_flush",
        "tlb_remove_table_sync_one",
        "smp_call_function",
    ],
    witness: "thp_collapse_alloc of /proc/vmstat: one an operation",
    cleanup: "none: memory goes with the process",
    danger: "memory is compacted where there is no free piece; bounded by one huge page and the rate",
    default_rate: Some(50.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let mut pages = SmallPages::reserve()?;
    let event = vmstat("thp_collapse_alloc")?;
    once(&mut pages).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => {
            Error::absent("this kernel collapses no pages on request (MADV_COLLAPSE, Linux 6.1)")
        }
        _ => Error::refused("collapse small pages")(error),
    })?;
    let before = job.begin_counting(event)?;
    let done = job.repeat(|| once(&mut pages));
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

fn once(pages: &mut SmallPages) -> io::Result<()> {
    pages.fill()?;
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match pages.collapse() {
            Err(error) if left > 0 && passes(&error) => {}
            outcome => break outcome?,
        }
    }
    if pages.are_whole() { Ok(()) } else { Err(Errno::BADMSG.into()) }
}

/// Whether what stands in the way may be gone in a moment.
fn passes(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passes_is_tried_again() {
        let of = io::Error::from_raw_os_error;
        assert!(passes(&of(libc::EAGAIN)) && !passes(&of(libc::EINVAL)) && !passes(&of(libc::ENOMEM)));
    }
}
