//! `compact`: memory compaction. Pages of all zones are moved together, so that free memory comes
//! in large pieces.
//!
//! `Documentation/admin-guide/sysctl/vm.rst`, compact_memory. The per-CPU batches of all CPUs are
//! drained (mm/compaction.c: `lru_add_drain_all`), and every page that moves is unmapped from its
//! processes first, with a TLB flush where they run.

use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::vmstat;
use crate::spec::StressorSpec;
use crate::{Error, knob};

const PATH: &str = "/proc/sys/vm/compact_memory";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "compact",
    title: "memory of all zones compacted",
    class: "mm",
    operation: "1 written to compact_memory",
    privilege: "root",
    needs: "CONFIG_COMPACTION",
    kernel_paths: &[
        "compact_nodes",
        "lru_add_drain_all",
        "isolate_migratepages_block",
        "try_to_migrate",
        "TLB flush",
    ],
    witness: "compact_migrate_scanned of /proc/vmstat: a page an operation at least",
    danger: "memory bandwidth, and programs that wait for a page on its way; bounded by the rate",
    default_rate: Some(2.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    knob::writable(PATH, "compaction on demand")?;
    let before = job.begin_counting(vmstat("compact_migrate_scanned")?)?;
    let done = job.repeat(|| knob::write(PATH, "1"));
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}
