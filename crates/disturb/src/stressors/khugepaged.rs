//! `khugepaged`: 2 MiB of small pages, again and again, for the kernel's own thread to collapse
//! into a huge page.
//!
//! What `madvise_collapse` asks for, `khugepaged` does by itself, on kernels before 6.1 too: it
//! scans the memory of all programs that may have huge pages (mm/khugepaged.c:
//! `khugepaged_scan_mm_slot`), and each collapse interrupts every CPU
//! (`tlb_remove_table_sync_one`). It drains the page lists of all CPUs before each scan
//! (`lru_add_drain_all`), and runs where it likes, which may be a measured CPU: that is part of
//! what one sees. It scans every 10 s by default; here every 10 ms.

use crate::account::Account;
use crate::job::Job;
use crate::small_pages::SmallPages;
use crate::spec::StressorSpec;
use crate::witness::{Counter, Growth, Read};
use crate::{Error, knob};
use model::stressor::Witness;
use rustix::io::Errno;
use std::fs;
use std::path::Path;
use sys::clock::{now_ns, sleep_until};

const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SLEEP: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs";
const COLLAPSED: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed";
const SLEEP_MS: &str = "10";
/// How long a collapse may take before operations begin, and after the last one: `khugepaged` is
/// the weakest of threads.
const PATIENCE_NS: i64 = 3_000_000_000;
const NAP_NS: i64 = 10_000_000;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "khugepaged",
    title: "huge pages made by the kernel: 2 MiB of small pages, again and again",
    class: "mm",
    operation: "2 MiB of small pages checked and touched anew, for khugepaged to collapse",
    privilege: "root",
    needs: "CONFIG_TRANSPARENT_HUGEPAGE, enabled for all or on request",
    kernel_paths: &[
        "khugepaged_do_scan",
        "lru_add_drain_all",
        "collapse_huge_page",
        "tlb_remove_table_sync_one",
        "smp_call_function",
    ],
    witness: "pages_collapsed of khugepaged: one at least from the first operation on",
    cleanup: "scan_sleep_millisecs is given back as it was",
    danger: "khugepaged scans the memory of others too, a hundred times a second",
    default_rate: Some(2.0),
    writes: &[SLEEP],
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let enabled = fs::read_to_string(ENABLED).unwrap_or_default();
    if enabled.contains("[never]") {
        return Err(Error::absent(format!("{ENABLED} is never: khugepaged does not run")));
    }
    let mut pages = SmallPages::reserve()?;
    knob::writable(SLEEP, "khugepaged")?;
    let first = fs::read_to_string(SLEEP).map_err(|error| Error::io("read", Path::new(SLEEP), error))?;
    knob::write(SLEEP, SLEEP_MS).map_err(|error| Error::io("write", Path::new(SLEEP), error))?;
    let account = scanned(job, &mut pages);
    let _ = knob::write(SLEEP, first.trim());
    account
}

/// The operations, once pages have been collapsed at all.
fn scanned(job: &mut Job<'_>, pages: &mut SmallPages) -> Result<Account, Error> {
    let counter = || Counter::read(COLLAPSED, collapsed as Read);
    let offered = counter()?.start()?;
    pages.fill().map_err(Error::refused("touch memory"))?;
    let first = await_collapse(&offered)?;
    if first.seen == 0 {
        return Err(Error::absent("khugepaged collapsed nothing in 3 s: the machine is too busy for it"));
    }
    let before = job.begin_counting(counter()?)?;
    let done = job.repeat(|| {
        if !pages.are_whole() {
            return Err(Errno::BADMSG.into());
        }
        pages.fill()
    });
    let witness = await_collapse(&before)?;
    Ok(done.account(job, witness))
}

/// Returns as soon as something has been collapsed, or when patience is at its end.
fn await_collapse(since: &Growth<Read>) -> Result<Witness, Error> {
    let deadline_ns = now_ns() + PATIENCE_NS;
    loop {
        let witness = since.grown(1)?;
        if witness.seen >= witness.expected || now_ns() >= deadline_ns {
            return Ok(witness);
        }
        sleep_until(now_ns() + NAP_NS);
    }
}

fn collapsed() -> Result<u64, Error> {
    let text = fs::read_to_string(COLLAPSED).unwrap_or_default();
    text.trim().parse().map_err(|_| Error::absent(format!("this kernel does not count {COLLAPSED}")))
}
