//! `move_pages`: pages sent from node to node, or to where they are already on a machine of one
//! node.
//!
//! Before the first page is looked at, the kernel empties the per-CPU batches of all CPUs
//! (mm/migrate.c: `migrate_prep` until 5.11, `lru_cache_disable` since), by a work item on each CPU
//! that holds any. Then each page that moves is isolated, unmapped everywhere (TLB flush), copied
//! and mapped again.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::vmstat;
use crate::spec::StressorSpec;
use crate::witness::Counter;
use model::Cpus;
use model::stressor::Witness;
use rustix::io::Errno;
use rustix::param::page_size;
use std::{fs, io};

const PAGES: usize = 64;
/// How often pages are asked for again that the kernel is moving by itself.
const AGAIN: usize = 8;
/// No node and no errno: marks an entry that the kernel has not written.
const UNSET: i32 = i32::MIN;
const MPOL_MF_MOVE: i32 = 2;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "move_pages",
    title: "64 pages moved from node to node, or to where they are",
    class: "mm",
    operation: "64 pages asked for on the next node, and found there",
    needs: "CONFIG_NUMA and CONFIG_MIGRATION",
    kernel_paths: &[
        "do_pages_move",
        "lru_cache_disable",
        "lru_add_drain_all",
        "schedule_work_on",
        "migrate_pages",
        "try_to_migrate",
    ],
    witness: "pgmigrate_success of /proc/vmstat where there are nodes to move between; on one node what the kernel reports of each page",
    danger: "memory bandwidth between nodes; bounded to 64 pages and the rate",
    default_rate: Some(500.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let nodes = nodes();
    let mut range = Range::new();
    if let Err(error) = range.move_to(nodes[0]) {
        return Err(Error::absent(format!("this kernel moves no pages: {error}")));
    }
    let migrated = (nodes.len() > 1).then(|| vmstat("pgmigrate_success")).transpose()?;
    job.begin()?;
    let migrated = migrated.map(Counter::start).transpose()?;
    let mut next = nodes.iter().cycle().skip(1);
    let mut located = 0;
    let done = job.repeat(|| {
        let node = next.next().copied().unwrap_or_default();
        let mut reported = range.move_to(node);
        for _ in 0..AGAIN {
            if !reported.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOENT)) {
                break;
            }
            range.wait_for_pages();
            reported = range.move_to(node);
        }
        located += reported?;
        Ok(())
    });
    let expected = done.tally.ok * PAGES as u64;
    let name = "pages whose node move_pages has reported".to_owned();
    let witness =
        migrated.map_or(Ok(Witness { name, expected, seen: located }), |count| count.grown(expected))?;
    Ok(done.account(job, witness))
}

/// The nodes that have memory; node 0 where nothing is said.
fn nodes() -> Vec<i32> {
    let text = fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    // A list of nodes is spelled as one of CPUs is.
    let nodes: Vec<i32> = text
        .trim()
        .parse::<Cpus>()
        .into_iter()
        .flat_map(|nodes| nodes.iter().collect::<Vec<_>>())
        .map(|node| node as i32)
        .collect();
    if nodes.is_empty() { vec![0] } else { nodes }
}

/// Pages of this process's own, each present.
struct Range {
    memory: Vec<u8>,
    first: usize,
}

impl Range {
    fn new() -> Self {
        // One more, so that whole pages fit wherever the list begins.
        let memory = vec![1; (PAGES + 1) * page_size()];
        let first = memory.as_ptr().align_offset(page_size());
        Self { memory, first }
    }

    /// A page that the kernel moves by itself (compaction) is reported as absent meanwhile; reading
    /// it waits until it is there (mm/memory.c, `migration_entry_wait`).
    fn wait_for_pages(&self) {
        for page in self.memory.chunks(page_size()) {
            std::hint::black_box(page[0]);
        }
    }

    /// Requests all pages on a node; returns the number of pages whose node the kernel has
    /// reported. An error unless all are there.
    fn move_to(&mut self, node: i32) -> io::Result<u64> {
        let start = self.memory[self.first..].as_ptr();
        let pages: Vec<*const u8> = (0..PAGES).map(|page| start.wrapping_add(page * page_size())).collect();
        let nodes = [node; PAGES];
        let mut statuses = [UNSET; PAGES];
        // SAFETY: all three lists have as many entries as said; the pages are this process's own,
        // and moving them changes no byte.
        let result = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                PAGES,
                pages.as_ptr(),
                nodes.as_ptr(),
                statuses.as_mut_ptr(),
                MPOL_MF_MOVE,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        if let Some(other) = statuses.iter().find(|status| **status != node) {
            let errno =
                Errno::from_raw_os_error(if *other < 0 && *other != UNSET { -other } else { libc::EBUSY });
            return Err(errno.into());
        }
        Ok(statuses.iter().filter(|status| **status != UNSET).count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_finds_pages_where_they_were_sent() {
        let mut range = Range::new();
        match range.move_to(nodes()[0]) {
            Ok(count) => assert_eq!(count, PAGES as u64),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSYS), "{error}"),
        }
        assert!(range.move_to(9999).is_err());
    }
}
