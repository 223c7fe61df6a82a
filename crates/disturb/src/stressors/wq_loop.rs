//! `wq_loop`: loop devices bound to a file and unbound again, as mounting images does.
//!
//! A bound device has a workqueue of its own since Linux 5.14, before that a kernel thread
//! (drivers/block/loop.c, `loop_configure`, `__loop_clr_fd`). Binding and unbinding freeze the
//! device's queue, which waits for an RCU grace period.

use crate::account::Account;
use crate::job::Job;
use crate::loops::{self, Loop};
use crate::spec::StressorSpec;
use crate::{Error, ledger};

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "wq_loop",
    title: "loop devices bound and unbound, a workqueue each",
    class: "wq",
    operation: "a device bound to a file of 1 MiB in memory and let go",
    privilege: "root",
    needs: "CONFIG_BLK_DEV_LOOP, Linux 5.8",
    kernel_paths: &[
        "loop_configure",
        "alloc_workqueue",
        "blk_mq_freeze_queue",
        "__loop_clr_fd",
        "destroy_workqueue",
    ],
    witness: "growth of /sys/kernel/uevent_seqnum, machine-wide: binding is reported to user space; a lower bound",
    cleanup: "the kernel unbinds the device when the process ends (LO_FLAGS_AUTOCLEAR)",
    danger: "the kernel reports every change to user space, which may start programs; bounded by the rate",
    default_rate: Some(20.0),
    modules: &["loop"],
    peer: Some("--loop"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let file = loops::empty_file(1 << 20)?;
    drop(Loop::bind(&file).map_err(loops::lacking)?);
    let before = job.begin_counting(ledger::uevents()?)?;
    let done = job.repeat(|| Loop::bind(&file).map(drop));
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}
