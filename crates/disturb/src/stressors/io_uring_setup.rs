//! `io_uring_setup`: queues for asynchronous I/O made and freed, as programs that start and end
//! with an io_uring do.
//!
//! Freeing is the expensive part: it waits for references that are counted per CPU (`percpu_ref`,
//! an RCU grace period) and is done by a workqueue (io_uring/io_uring.c, `io_ring_exit_work`).

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::{Error, rings};
use model::stressor::Witness;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "io_uring_setup",
    title: "io_uring queues made, used once and freed",
    class: "io",
    operation: "a queue of 8 entries made, one request completed, closed",
    privilege: "none where kernel.io_uring_disabled is 0",
    needs: "CONFIG_IO_URING, Linux 5.4",
    kernel_paths: &["io_uring_create", "percpu_ref_kill", "io_ring_exit_work", "call_rcu", "task work"],
    witness: "requests that the kernel says are complete in the memory that it shares (tail of the completion ring): exact",
    cleanup: "none: the queue goes with its process",
    danger: "freed queues pile up where the kernel's worker is slower; bounded by the rate",
    default_rate: Some(200.0),
    peer: Some("--io-uring"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    rings::uring_once().map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSYS) => Error::absent("this kernel has no io_uring (CONFIG_IO_URING, Linux 5.4)"),
        Some(libc::EPERM) => Error::absent("io_uring is not allowed here (kernel.io_uring_disabled)"),
        _ => Error::refused("make an io_uring")(error),
    })?;
    let mut seen = 0;
    job.begin()?;
    let done = job.repeat(|| {
        seen += rings::uring_once()?;
        Ok(())
    });
    let name = "requests complete in the completion rings".to_owned();
    let witness = Witness { name, expected: done.tally.ok, seen };
    Ok(done.account(job, witness))
}
