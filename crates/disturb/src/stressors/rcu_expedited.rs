//! `rcu_expedited`: grace periods that do not wait. A mount is made and taken away in a mount
//! namespace of the stressor's own.
//!
//! Taking a mount away ends with `synchronize_rcu_expedited` (fs/namespace.c: `namespace_unlock`),
//! which interrupts every CPU that is neither idle nor in user space as nohz_full sees it
//! (kernel/rcu/tree_exp.h: `sync_rcu_exp_select_cpus`). It is the one such wait that a process can
//! ask for without a device. Real-time kernels turn expedited grace periods into ordinary ones
//! after boot.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::sleeps;
use crate::spec::StressorSpec;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs;

const PLACE: &str = "/proc";
const NORMAL: &str = "/sys/kernel/rcu_normal";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "rcu_expedited",
    title: "expedited RCU grace periods: a mount made and taken away",
    class: "broadcast",
    operation: "a bind mount made and taken away",
    privilege: "root (CAP_SYS_ADMIN)",
    needs: "two CPUs online; /sys/kernel/rcu_normal of 0, which real-time kernels do not have",
    kernel_paths: &[
        "namespace_unlock",
        "synchronize_rcu_expedited",
        "sync_rcu_exp_select_cpus",
        "rcu_exp_handler",
    ],
    witness: "voluntary context switches of the thread: no grace period passes without a sleep",
    cleanup: "none: the mount namespace is the process's own and goes with it",
    danger: "an interrupt of every busy CPU each; bounded by the rate",
    default_rate: Some(20.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let normal = fs::read_to_string(NORMAL);
    if normal.is_ok_and(|value| value.trim() == "1") {
        return Err(Error::absent(format!("{NORMAL} is 1: expedited grace periods are ordinary ones here")));
    }
    // SAFETY: the process has one thread, and the files that it has open stay what they are.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(Error::refused("make a mount namespace"))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(Error::refused("keep mounts in a namespace"))?;
    job.confined_by.push("mount namespace".to_owned());
    let before = job.begin_counting(sleeps()?)?;
    let done = job.repeat(|| {
        mount_bind(PLACE, PLACE)?;
        Ok(unmount(PLACE, UnmountFlags::DETACH)?)
    });
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}
