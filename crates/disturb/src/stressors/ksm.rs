//! `ksm`: equal pages merged and parted again. 256 equal pages are offered (MADV_MERGEABLE) and
//! rewritten in full at each operation.
//!
//! The thread `ksmd` compares pages, write-protects those that are equal (a TLB flush where the
//! process runs), and makes them one (`Documentation/admin-guide/mm/ksm.rst`); each rewriting parts
//! them by 256 copy-on-write faults. `ksmd` runs where it likes, which may be a measured CPU: that
//! is part of what one sees.

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::{Counter, Growth, Read};
use crate::{Error, knob};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;
use std::ptr::NonNull;
use std::{fs, io};
use sys::clock::{now_ns, sleep_until};

const RUN: &str = "/sys/kernel/mm/ksm/run";
const SCANS: &str = "/sys/kernel/mm/ksm/full_scans";
const PAGES: usize = 256;
/// The first scan takes a page's checksum, and the second merges it if that has stayed.
const SCANS_TO_MERGE: u64 = 2;
/// How long `ksmd` may take for these before operations begin.
const PATIENCE_NS: i64 = 5_000_000_000;
const NAP_NS: i64 = 10_000_000;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "ksm",
    title: "equal pages: 256 offered for merging, and written again",
    class: "mm",
    operation: "256 pages offered for merging rewritten, all alike",
    privilege: "root; none where ksmd runs already",
    needs: "CONFIG_KSM",
    kernel_paths: &[
        "ksm_do_scan",
        "write_protect_page",
        "try_to_merge_one_page",
        "ptep_clear_flush",
        "do_wp_page",
    ],
    witness: "full_scans of /sys/kernel/mm/ksm: two since the pages were offered, the least that merges",
    cleanup: "run is given back as it was",
    danger: "ksmd compares what others have offered too, for as long as it runs",
    default_rate: Some(2.0),
    writes: &[RUN],
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let first =
        fs::read_to_string(RUN).map_err(|_| Error::absent("this kernel merges no pages (CONFIG_KSM)"))?;
    let runs = first.trim() == "1";
    if !runs {
        knob::writable(RUN, "merging of pages")?;
    }
    let mut pages = Pages::new().map_err(Error::refused("offer pages for merging"))?;
    pages.rewrite();
    let before: Growth<Read> = Counter::read(SCANS, scans as Read)?.start()?;
    if !runs {
        knob::write(RUN, "1").map_err(|error| Error::io("write", RUN.as_ref(), error))?;
    }
    if let Err(error) = await_scans(&before) {
        if !runs {
            let _ = knob::write(RUN, first.trim());
        }
        return Err(error);
    }
    job.begin()?;
    let done = job.repeat(|| {
        pages.rewrite();
        Ok(())
    });
    let witness = before.grown(SCANS_TO_MERGE);
    if !runs {
        let _ = knob::write(RUN, first.trim());
    }
    Ok(done.account(job, witness?))
}

/// Waits until pages have been merged, so that the first operation parts some. `ksmd` is the
/// weakest of threads.
fn await_scans(since: &Growth<Read>) -> Result<(), Error> {
    let deadline_ns = now_ns() + PATIENCE_NS;
    loop {
        let witness = since.grown(SCANS_TO_MERGE)?;
        if witness.seen >= witness.expected {
            return Ok(());
        }
        if now_ns() >= deadline_ns {
            return Err(Error::absent(
                "ksmd did not get through two scans in 5 s: the machine is too busy for it",
            ));
        }
        sleep_until(now_ns() + NAP_NS);
    }
}

fn scans() -> Result<u64, Error> {
    let text = fs::read_to_string(SCANS).unwrap_or_default();
    text.trim().parse().map_err(|_| Error::absent(format!("this kernel does not count {SCANS}")))
}

/// Pages that may be merged.
struct Pages {
    start: NonNull<u8>,
    round: u8,
}

impl Pages {
    fn new() -> io::Result<Self> {
        let bytes = PAGES * page_size();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh private mapping overlaps nothing; the advice is for that range.
        let start = unsafe {
            let start = mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)?;
            madvise(start, bytes, Advice::LinuxMergeable)?;
            start
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, round: 0 })
    }

    /// Makes all pages alike again, and other than before.
    fn rewrite(&mut self) {
        self.round = self.round.wrapping_add(1);
        // SAFETY: the mapping is this struct's own, and nobody holds a reference into it.
        unsafe { self.start.as_ptr().write_bytes(self.round, PAGES * page_size()) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this struct's own.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), PAGES * page_size()) };
    }
}
