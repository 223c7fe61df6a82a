//! `hugepages`: two huge pages more, two fewer.
//!
//! Growing the pool allocates 2 × 2 MiB in one piece, compacting where there is none (mm/hugetlb.c:
//! `alloc_pool_huge_folio`); shrinking gives them back, and since 6.x remaps their descriptors
//! (`hugetlb_vmemmap`), which flushes kernel translations of all CPUs: two broadcasts an operation
//! were seen on 6.12, none on 5.10 and 6.1.

use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::vmstat;
use crate::spec::StressorSpec;
use crate::{Error, knob};
use rustix::io::Errno;
use std::{fs, io};

const PATH: &str = "/proc/sys/vm/nr_hugepages";
const MORE: u64 = 2;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "hugepages",
    title: "the pool of huge pages grows by two and shrinks again",
    class: "mm",
    operation: "two huge pages more, read back, and two fewer, read back",
    privilege: "root",
    needs: "CONFIG_HUGETLBFS; 4 MiB of memory in pieces large enough",
    kernel_paths: &[
        "set_max_huge_pages",
        "alloc_fresh_hugetlb_folio",
        "compaction",
        "hugetlb_vmemmap",
        "flush_tlb_kernel_range",
    ],
    witness: "htlb_buddy_alloc_success of /proc/vmstat: two an operation",
    cleanup: "the number before is given back",
    danger: "memory that nobody else can use meanwhile: two huge pages",
    default_rate: Some(5.0),
    writes: &[PATH],
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    knob::writable(PATH, "pool of huge pages")?;
    let first = pool().map_err(Error::refused("read the number of huge pages"))?;
    let before = job.begin_counting(vmstat("htlb_buddy_alloc_success")?)?;
    let done = job.repeat(|| {
        let grown = set(first + MORE);
        set(first)?;
        grown
    });
    let witness = before.grown(done.tally.ok * MORE)?;
    Ok(done.account(job, witness))
}

/// Sets the number of huge pages; ENOMEM where the kernel came to a halt before it.
fn set(pages: u64) -> io::Result<()> {
    knob::write(PATH, &pages.to_string())?;
    if pool()? == pages { Ok(()) } else { Err(Errno::NOMEM.into()) }
}

fn pool() -> io::Result<u64> {
    fs::read_to_string(PATH)?.trim().parse().map_err(|_| Errno::BADMSG.into())
}
