//! `mem_offline`: a block of memory taken off line and back.
//!
//! Its pages are moved away, and every CPU empties its lists of free pages and slabs
//! (mm/memory_hotplug.c: `offline_pages`, `lru_add_drain_all`, `drain_all_pages`; mm/slub.c:
//! `flush_all_cpus_locked`): a work item on each. Most blocks hold something that cannot be moved,
//! which the kernel says by EBUSY or EINVAL: only successes count.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::leaving::{Leaving, Mark};
use crate::spec::StressorSpec;
use crate::witness::{Counter, uevents};
use std::path::{Path, PathBuf};
use std::{fs, io};

const BLOCKS: &str = "/sys/devices/system/memory";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "mem_offline",
    title: "a block of memory taken off line and back",
    class: "machine",
    operation: "the block off and on, both read back",
    privilege: "root",
    needs: "CONFIG_MEMORY_HOTREMOVE, and a block that holds nothing immovable",
    kernel_paths: &[
        "offline_pages",
        "lru_add_drain_all",
        "drain_all_pages",
        "flush_all_cpus_locked",
        "online_pages",
    ],
    witness: "growth of /sys/kernel/uevent_seqnum: two an operation",
    cleanup: "the block is on line, as before",
    danger: "a block less of memory meanwhile; the kernel may need long to move what it holds",
    default_rate: Some(0.5),
    leaves: |mark| state(mark).into_iter().collect(),
    dangerous: true,
    work,
    ..StressorSpec::PLAIN
};

/// The last block that is on line and, according to the kernel, removable.
fn state(_: &Mark<'_>) -> Option<Leaving> {
    let says = |block: &Path, file: &str| fs::read_to_string(block.join(file)).unwrap_or_default();
    let usable =
        |block: &PathBuf| says(block, "state").trim() == "online" && says(block, "removable").trim() == "1";
    let entries = fs::read_dir(BLOCKS).into_iter().flatten().flatten().map(|entry| entry.path());
    let last = entries.filter(usable).max_by_key(|block| number(block))?;
    Some(Leaving::Value(last.join("state")))
}

fn number(block: &Path) -> Option<u32> {
    block.file_name()?.to_str()?.strip_prefix("memory")?.parse().ok()
}

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let Some(file) = job.leaves.first().cloned() else {
        return Err(Error::absent("no block of memory can be taken away"));
    };
    let before = job.begin_counting(Counter::read("/sys/kernel/uevent_seqnum", uevents)?)?;
    let done = job.repeat(|| {
        set(&file, "offline")?;
        set(&file, "online")
    });
    let _ = set(&file, "online");
    let witness = before.grown(2 * done.tally.ok)?;
    Ok(done.account(job, witness))
}

fn set(file: &str, value: &str) -> io::Result<()> {
    if fs::read_to_string(file)?.trim() == value {
        return Ok(());
    }
    fs::write(file, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_ordered_by_number() {
        let at = |name: &str| number(Path::new(name));
        assert!(at("/m/memory10") > at("/m/memory9"));
        assert_eq!(at("/m/block_size_bytes"), None);
    }
}
