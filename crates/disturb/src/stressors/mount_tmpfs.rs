//! `mount_tmpfs`: a file system in memory mounted and unmounted, as services with private
//! directories do.
//!
//! There is no device and no workqueue in it: what is left is the mount itself, whose end waits for
//! an RCU grace period (fs/namespace.c, `namespace_unlock`, `synchronize_rcu_expedited`). Beside it
//! the other mounts show what their workqueues add.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::mounts::Mounting;
use crate::spec::StressorSpec;
use model::stressor::Witness;
use std::path::Path;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "mount_tmpfs",
    title: "a tmpfs mounted and unmounted",
    class: "wq",
    operation: "a tmpfs of 64 KiB mounted and unmounted",
    privilege: "root",
    needs: "CONFIG_TMPFS",
    kernel_paths: &["do_new_mount", "shmem_fill_super", "namespace_unlock", "synchronize_rcu_expedited"],
    witness: "times that the kernel said that its own mount table has changed (poll of /proc/self/mountinfo): exact",
    cleanup: "the mount goes with its namespace",
    danger: "none known; bounded by one mount at a time",
    default_rate: Some(50.0),
    peer: Some("--ramfs"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let mut mounting = Mounting::prepare(job, Path::new("tmpfs"), "tmpfs", "size=64k")?;
    let before = mounting.changes;
    job.begin()?;
    let done = job.repeat(|| mounting.mount_and_unmount());
    let name = "/proc/self/mountinfo changes reported".to_owned();
    let witness = Witness { name, expected: done.tally.ok * 2, seen: mounting.changes - before };
    Ok(done.account(job, witness))
}
