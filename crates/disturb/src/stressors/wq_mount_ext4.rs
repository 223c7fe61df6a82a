//! `wq_mount_ext4`: an ext4 file system mounted and unmounted.
//!
//! Mounting allocates the workqueue `ext4-rsv-conversion` with its rescuer and starts the journal's
//! thread (fs/ext4/super.c, `ext4_fill_super`; fs/jbd2/journal.c); unmounting writes all back,
//! stops them, and waits for RCU callbacks.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::loops::{self, EXT4, Loop};
use crate::mounts::Mounting;
use crate::spec::StressorSpec;
use model::stressor::Witness;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Where the kernel counts mounts: `s_mnt_count` of the superblock, which is at 1024.
const MOUNTS_AT: u64 = 1024 + 52;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "wq_mount_ext4",
    title: "an ext4 file system mounted and unmounted: a workqueue and a journal thread each",
    class: "wq",
    operation: "an image of 4 MiB in memory mounted and unmounted",
    privilege: "root",
    needs: "CONFIG_EXT4_FS, CONFIG_BLK_DEV_LOOP, Linux 5.8",
    kernel_paths: &[
        "ext4_fill_super",
        "alloc_workqueue",
        "jbd2_journal_start_thread",
        "destroy_workqueue",
        "rcu_barrier",
    ],
    witness: "mounts that the kernel has counted in the file system itself: exact",
    cleanup: "the mount goes with its namespace, the loop device with the mount",
    danger: "writes a line or two an operation to the kernel log; bounded by the rate",
    default_rate: Some(10.0),
    modules: &["crc32c_generic", "loop", "ext4"],
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let image = EXT4.file()?;
    let device = Loop::bind(&image).map_err(loops::lacking)?;
    let mut mounting = Mounting::prepare(job, &device.path, "ext4", "")?;
    let (mut count, mut seen) = (mounts(&image).map_err(Error::refused("read a superblock"))?, 0);
    job.begin()?;
    let done = job.repeat(|| {
        mounting.mount_and_unmount()?;
        let now = mounts(&image)?;
        // The count has 16 bits.
        seen += u64::from(now.wrapping_sub(count));
        count = now;
        Ok(())
    });
    let name = "mounts counted in the superblock (s_mnt_count)".to_owned();
    let witness = Witness { name, expected: done.tally.ok, seen };
    Ok(done.account(job, witness))
}

fn mounts(image: &File) -> io::Result<u16> {
    let mut bytes = [0; 2];
    image.read_exact_at(&mut bytes, MOUNTS_AT)?;
    Ok(u16::from_le_bytes(bytes))
}
