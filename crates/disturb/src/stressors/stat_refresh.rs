//! `stat_refresh`: the memory counters of all CPUs are brought together, on each CPU by a work
//! item.
//!
//! `/proc/sys/vm/stat_refresh` (`Documentation/admin-guide/sysctl/vm.rst`; mm/vmstat.c:
//! `vmstat_refresh`, `schedule_on_each_cpu`). Every CPU has to run a kernel worker, isolated or
//! not: monitoring that reads it is a disturbance by design.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::sleeps;
use crate::spec::StressorSpec;
use std::{fs, io};

const PATH: &str = "/proc/sys/vm/stat_refresh";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "stat_refresh",
    title: "memory counters brought together by a work item on every CPU",
    class: "broadcast",
    operation: "a read of stat_refresh",
    privilege: "root",
    needs: "a kernel of 4.8 at least with more than one CPU",
    kernel_paths: &["vmstat_refresh", "schedule_on_each_cpu", "queue_work_on", "kworker", "flush_work"],
    witness: "voluntary context switches of the thread: it sleeps until the workers have run",
    danger: "kernel workers on every CPU; bounded by the rate",
    default_rate: Some(20.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    if let Err(error) = fs::read(PATH) {
        return Err(match error.kind() {
            io::ErrorKind::NotFound => Error::absent(format!("this kernel has no {PATH}")),
            _ => Error::io("read", PATH.as_ref(), error),
        });
    }
    let before = job.begin_counting(sleeps()?)?;
    let done = job.repeat(|| fs::read(PATH).map(drop));
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}
