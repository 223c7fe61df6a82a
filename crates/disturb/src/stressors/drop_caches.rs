//! `drop_caches`: drops the page cache, the directory entries and the inodes of the whole machine.
//!
//! `Documentation/admin-guide/sysctl/vm.rst`. The kernel drains the per-CPU batches of all CPUs
//! first (`lru_add_drain_all`), then walks every superblock (fs/drop_caches.c: `drop_pagecache_sb`,
//! `drop_slab`), and what it frees goes through RCU.

use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::vmstat;
use crate::spec::StressorSpec;
use crate::{Error, knob};

const PATH: &str = "/proc/sys/vm/drop_caches";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "drop_caches",
    title: "page cache, directory entries and inodes of the machine dropped",
    class: "mm",
    operation: "3 written to drop_caches",
    privilege: "root",
    needs: "CONFIG_SYSCTL",
    kernel_paths: &["lru_add_drain_all", "schedule_work_on", "drop_pagecache_sb", "drop_slab", "call_rcu"],
    witness: "drop_pagecache of /proc/vmstat: one an operation",
    danger: "all programs read from their disks again; with much in memory one write takes many seconds, and nothing ends it",
    default_rate: Some(2.0),
    dangerous: true,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    knob::writable(PATH, "way to drop caches")?;
    let before = job.begin_counting(vmstat("drop_pagecache")?)?;
    let done = job.repeat(|| knob::write(PATH, "3"));
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}
