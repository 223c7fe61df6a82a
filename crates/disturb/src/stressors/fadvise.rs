//! `fadvise`: page cache thrown away. 256 KiB of a file are dropped from memory
//! (POSIX_FADV_DONTNEED) and read again.
//!
//! Dropping walks the cache of the file (mm/fadvise.c, `invalidate_mapping_pages`); where pages are
//! still in some CPU's batch, kernels drain the batches of all CPUs (`lru_add_drain_all`: a work
//! item on each that holds any). Reading again is a request to the block device and its interrupt.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::vmstat;
use crate::scratch::scratch;
use crate::spec::StressorSpec;
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;

const BYTES: usize = 256 << 10;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "fadvise",
    title: "page cache: 256 KiB of a file dropped from memory and read again",
    class: "mm",
    operation: "256 KiB dropped, read from the device and checked",
    needs: "a file system on a device under /var/tmp or /tmp, with O_TMPFILE",
    kernel_paths: &[
        "invalidate_mapping_pages",
        "lru_add_drain_all",
        "page_cache_ra_unbounded",
        "submit_bio",
        "device interrupt",
    ],
    witness: "pgpgin of /proc/vmstat, KiB read from devices: 256 an operation",
    cleanup: "none: the file has no name and goes with its descriptor",
    danger: "reading from a disk; bounded by the rate, and a file of 256 KiB",
    default_rate: Some(50.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let file = scratch()?;
    file.write_all_at(&content(), 0)
        .and_then(|()| file.sync_all())
        .map_err(Error::refused("write a file to drop"))?;
    let before = vmstat("pgpgin")?.start()?;
    let read = drop_and_read(&file);
    // A file system that keeps its files in memory alone obeys, and drops nothing.
    if read.is_err() || before.grown(0)?.seen < BYTES as u64 / 1024 {
        return Err(Error::absent(
            "files under /var/tmp and /tmp are kept in memory and cannot be dropped from it",
        ));
    }
    let before = job.begin_counting(vmstat("pgpgin")?)?;
    let done = job.repeat(|| drop_and_read(&file));
    let witness = before.grown(done.tally.ok * BYTES as u64 / 1024)?;
    Ok(done.account(job, witness))
}

fn drop_and_read(file: &File) -> io::Result<()> {
    fadvise(file, 0, NonZeroU64::new(BYTES as u64), Advice::DontNeed)?;
    let mut again = vec![0; BYTES];
    file.read_exact_at(&mut again, 0)?;
    if again == content() { Ok(()) } else { Err(Errno::BADMSG.into()) }
}

fn content() -> Vec<u8> {
    (0..BYTES).map(|at| (at / 7) as u8).collect()
}
