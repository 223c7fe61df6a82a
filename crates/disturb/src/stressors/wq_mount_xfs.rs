//! `wq_mount_xfs`: an XFS file system mounted and unmounted.
//!
//! XFS has four to six workqueues a mount, most of them per CPU and with a rescuer
//! (fs/xfs/xfs_super.c, `xfs_init_mount_workqueues`; the log's in fs/xfs/xfs_log.c), and a thread
//! that writes back its log: of what ordinary administration does, the most for workqueues.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::loops::{self, Loop, XFS};
use crate::mounts::Mounting;
use crate::spec::StressorSpec;
use crate::witness::Counter;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "wq_mount_xfs",
    title: "an XFS file system mounted and unmounted: four to six workqueues each",
    class: "wq",
    operation: "an image of 16 MiB in memory mounted and unmounted",
    privilege: "root",
    needs: "CONFIG_XFS_FS, CONFIG_BLK_DEV_LOOP, Linux 5.8",
    kernel_paths: &[
        "xfs_fs_fill_super",
        "alloc_workqueue",
        "init_rescuer",
        "destroy_workqueue",
        "rcu_barrier",
    ],
    witness: "growth of `processes` in /proc/stat, machine-wide: the log's thread and two rescuers at least; a lower bound",
    cleanup: "the mount goes with its namespace, the loop device with the mount",
    danger: "writes some lines an operation to the kernel log; bounded by the rate",
    default_rate: Some(5.0),
    modules: &["crc32c_generic", "loop", "xfs"],
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let image = XFS.file()?;
    let device = Loop::bind(&image).map_err(loops::lacking)?;
    // The images of several such stressors have the same identity, which XFS would refuse.
    let mut mounting = Mounting::prepare(job, &device.path, "xfs", "nouuid")?;
    let before = job.begin_counting(Counter::forks()?)?;
    let done = job.repeat(|| mounting.mount_and_unmount());
    let witness = before.grown(done.tally.ok * 3)?;
    Ok(done.account(job, witness))
}
