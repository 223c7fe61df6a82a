//! `calc_pi_out`: the computation of `calc_pi`, with its decimals written to a file.
//!
//! RTSS 2024, Table IV, runs the computation with and without output. The file has no name and
//! stays small; writing it is a system call, the page cache, and now and then the writeback thread.

use super::calc_pi::{Machin, decimals, is_pi};
use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::own_io;
use crate::scratch::scratch;
use crate::spec::StressorSpec;
use rustix::io::Errno;
use std::os::unix::fs::FileExt;

/// Results that the file keeps before the first is overwritten.
const KEPT: u64 = 1024;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "calc_pi_out",
    title: "1,000 decimals of pi computed over and over, and written to a file",
    class: "ctl",
    operation: "1,000 decimals computed, checked and written",
    needs: "a file system with O_TMPFILE under /var/tmp or /tmp; CONFIG_TASK_IO_ACCOUNTING for the witness",
    kernel_paths: &["vfs_write", "page cache", "writeback"],
    witness: "wchar of /proc/self/io: 1,001 bytes an operation; every result checked against known decimals",
    cleanup: "none: the file has no name and goes with its descriptor",
    danger: "a CPU's time, 1 MiB of a disk; bounded by one thread at a weak nice value",
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let file = scratch()?;
    let mut machin = Machin::default();
    let mut at = 0;
    let before = job.begin_counting(own_io("wchar")?)?;
    let done = job.repeat(|| {
        let limbs = machin.compute();
        if !is_pi(limbs) {
            return Err(Errno::BADMSG.into());
        }
        let mut line = decimals(limbs);
        line.push('\n');
        file.write_all_at(line.as_bytes(), at % KEPT * line.len() as u64)?;
        at += 1;
        Ok(())
    });
    let witness = before.grown(done.tally.ok * 1001)?;
    Ok(done.account(job, witness))
}
