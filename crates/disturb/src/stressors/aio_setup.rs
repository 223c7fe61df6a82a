//! `aio_setup`: the older queues for asynchronous I/O made and freed, as databases and virtual
//! machines do at start and end.
//!
//! Destroying a context waits for references counted per CPU, and so for RCU grace periods
//! (fs/aio.c, `kill_ioctx`, `free_ioctx` work).

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::{Error, loops, rings};
use model::stressor::Witness;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "aio_setup",
    title: "aio contexts made, used once and destroyed",
    class: "io",
    operation: "a context of 8 entries made, one write completed, destroyed",
    privilege: "none",
    needs: "CONFIG_AIO",
    kernel_paths: &["ioctx_alloc", "percpu_ref_kill", "free_ioctx work", "call_rcu"],
    witness: "requests that the kernel says are complete in the memory that it shares (tail of the ring): exact",
    cleanup: "none: the context goes with its process",
    danger: "fs.aio-max-nr is used up; bounded by one context at a time",
    default_rate: Some(50.0),
    peer: Some("--aiol"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let file = loops::empty_file(4096)?;
    rings::aio_once(&file).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSYS) => Error::absent("this kernel has no aio (CONFIG_AIO)"),
        _ => Error::refused("make an aio context")(error),
    })?;
    let mut seen = 0;
    job.begin()?;
    let done = job.repeat(|| {
        seen += rings::aio_once(&file)?;
        Ok(())
    });
    let name = "requests complete in the contexts' rings".to_owned();
    let witness = Witness { name, expected: done.tally.ok, seen };
    Ok(done.account(job, witness))
}
