//! `cpuinfo_read`: what monitoring reads. `/proc/cpuinfo` and `/proc/interrupts` in full.
//!
//! On x86 with APERF and MPERF, kernels before 5.18 interrupted every busy CPU for the frequency
//! that `/proc/cpuinfo` shows (arch/x86/kernel/cpu/aperfmperf.c); nohz_full CPUs are left out where
//! the kernel knows them. `/proc/interrupts` walks the counters of every interrupt on every CPU.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::own_io;
use crate::spec::StressorSpec;
use rustix::io::Errno;
use std::fs;

const FILES: [&str; 2] = ["/proc/cpuinfo", "/proc/interrupts"];

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "cpuinfo_read",
    title: "monitoring: /proc/cpuinfo and /proc/interrupts read in full",
    class: "broadcast",
    operation: "both files read to their ends",
    needs: "CONFIG_TASK_IO_ACCOUNTING for the witness",
    kernel_paths: &["c_start", "arch_freq_get_on_cpu", "aperfmperf_snapshot_cpu", "show_interrupts"],
    witness: "rchar of /proc/self/io: as many bytes as the files had",
    danger: "time in the kernel that grows with CPUs and interrupts; bounded by the rate",
    default_rate: Some(50.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    for file in FILES {
        fs::read(file).map_err(|error| Error::io("read", file.as_ref(), error))?;
    }
    let before = job.begin_counting(own_io("rchar")?)?;
    let mut bytes = 0;
    let done = job.repeat(|| {
        for file in FILES {
            let read = fs::read(file)?.len() as u64;
            if read == 0 {
                return Err(Errno::NODATA.into());
            }
            bytes += read;
        }
        Ok(())
    });
    // Failed operations have read as well: their bytes are expected to show, too.
    let witness = before.grown(bytes)?;
    Ok(done.account(job, witness))
}
