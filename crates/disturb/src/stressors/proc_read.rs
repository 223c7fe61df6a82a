//! `proc_read`: what monitoring does to a machine. The files of /proc that such programs read are
//! read, one after the other.
//!
//! Some walk all CPUs and take their locks (`/proc/stat`, `/proc/interrupts`), some fold per-CPU
//! counters (`/proc/vmstat`), and `/proc/cpuinfo` asks each CPU for its frequency, by an interrupt
//! where the hardware counts it (arch/x86/kernel/cpu/aperfmperf.c).

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::{Error, ledger};
use rustix::io::Errno;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const FILES: [&str; 12] = [
    "/proc/stat",
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/loadavg",
    "/proc/diskstats",
    "/proc/net/dev",
    "/proc/schedstat",
    "/proc/self/smaps",
    "/proc/self/status",
];

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "proc_read",
    title: "monitoring: the files of /proc that such programs read",
    class: "io",
    operation: "a file read to its end",
    privilege: "none",
    needs: "/proc; CONFIG_TASK_IO_ACCOUNTING",
    kernel_paths: &[
        "show_stat",
        "show_interrupts",
        "all_vm_events",
        "arch_freq_prepare_all",
        "smp_call_function_many",
    ],
    witness: "growth of rchar in its own /proc/self/io, the bytes of what was read: exact",
    cleanup: "none",
    danger: "holds locks of what the files report; bounded by one reader",
    default_rate: Some(200.0),
    peer: Some("--procfs"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let there: Vec<&Path> = FILES.iter().map(Path::new).filter(|path| path.exists()).collect();
    if there.is_empty() {
        return Err(Error::absent("/proc is not mounted"));
    }
    let before = job.begin_counting(ledger::own_io("rchar")?)?;
    let (mut next, mut text, bytes) = (0, Vec::new(), Cell::new(0));
    let done = job.repeat(|| {
        let path = there[next % there.len()];
        next += 1;
        bytes.set(bytes.get() + read(path, &mut text)?);
        Ok(())
    });
    let witness = before.grown(bytes.get())?;
    Ok(done.account(job, witness))
}

/// Reads a file to its end; returns its length. One that holds nothing is a failure.
fn read(path: &Path, text: &mut Vec<u8>) -> io::Result<u64> {
    text.clear();
    match File::open(path)?.read_to_end(text)? {
        0 => Err(Errno::NODATA.into()),
        bytes => Ok(bytes as u64),
    }
}
