//! `vmap_churn`: kernel address space. A child requests descriptor 1,048,575 and exits: a table of
//! 8 MiB is made and thrown away.
//!
//! A table as large as that comes from vmalloc (fs/file.c: `alloc_fdtable`). Freed kernel addresses
//! are kept until there are 32 MiB of them for each doubling of the CPUs (mm/vmalloc.c:
//! `lazy_max_pages`) and then purged at once, for which every CPU has to flush its translations:
//! `flush_tlb_kernel_range`, `on_each_cpu`. Any user can do it to any core.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::offspring::fork_and_wait;
use crate::spec::StressorSpec;
use crate::witness::Counter;
use crate::workers::repeat_in;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{fs, io};

/// Descriptors of a table that is twice what the page allocator gives in one piece (4 MiB), so that
/// vmalloc has to.
const FILES: u64 = 1 << 20;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "vmap_churn",
    title: "kernel addresses: descriptor tables of 8 MiB made and thrown away",
    class: "mm",
    operation: "a child that asks for descriptor 1,048,575 and exits",
    privilege: "none; CAP_SYS_RESOURCE where the hard limit of open files is below 1,048,576",
    needs: "fs.nr_open of 1,048,576 at least",
    kernel_paths: &[
        "alloc_fdtable",
        "vmalloc",
        "purge_vmap_area_lazy",
        "flush_tlb_kernel_range",
        "on_each_cpu",
    ],
    witness: "growth of `processes` in /proc/stat; each child has found FDSize of 1,048,576 in its own /proc status",
    cleanup: "none: the table goes with its process",
    danger: "kernel memory; bounded by one table at a time",
    default_rate: Some(20.0),
    memory_bytes: 96 << 20,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let allowed = allow().map_err(|error| {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        Error::absent(format!("at most {hard} files may be open here ({error}); expected {FILES}"))
    });
    allowed?;
    let before = job.begin_counting(Counter::forks()?)?;
    let done = repeat_in(job, 1, |_| Ok(|| fork_and_wait(grow)))?;
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

/// Allows as many open files, where this user may.
fn allow() -> io::Result<()> {
    let old = getrlimit(Resource::Nofile);
    let maximum = Some(old.maximum.map_or(FILES, |maximum| maximum.max(FILES)));
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum })?)
}

/// Makes the kernel enlarge this process's table, and asks it whether it has.
fn grow() -> io::Result<()> {
    // SAFETY: duplicates a descriptor that stays open to a number that nothing uses.
    if unsafe { libc::dup2(0, FILES as i32 - 1) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let status = fs::read_to_string("/proc/self/status")?;
    let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")?.trim().parse::<u64>().ok());
    if size.is_some_and(|size| size >= FILES) { Ok(()) } else { Err(Errno::OVERFLOW.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_as_large_as_its_process_says() {
        let outcome = fork_and_wait(|| allow().and_then(|()| grow()));
        // An ordinary user whose hard limit is lower gets an error that says so.
        let refused = outcome.as_ref().err().and_then(io::Error::raw_os_error);
        assert!(matches!(refused, None | Some(libc::EPERM)), "{outcome:?}");
        let small = fork_and_wait(|| {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) });
            grow()
        });
        assert_eq!(small.unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
