//! `slab_shrink`: a cache of the slab allocator is filled, emptied and shrunk.
//!
//! Shrinking flushes what every CPU keeps of the cache: by an interrupt to each CPU that keeps any
//! on kernels before 5.15, by a work item on it since (mm/slub.c: `flush_all`), and then gives
//! empty slabs back. The cache is that of file locks: any program can fill it with objects of its
//! own, by locking single bytes of a file that nobody else sees (fcntl(2), F_SETLK).

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::{Error, knob};
use model::stressor::Witness;
use rustix::fs::{MemfdFlags, memfd_create};
use std::os::fd::{AsRawFd, OwnedFd};
use std::{fs, io};

const SHRINK: &str = "/sys/kernel/slab/file_lock_cache/shrink";
const OBJECTS: &str = "/sys/kernel/slab/file_lock_cache/total_objects";
const LOCKS: i64 = 500;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "slab_shrink",
    title: "a slab cache filled with 500 file locks, emptied and shrunk",
    class: "mm",
    operation: "500 bytes locked and unlocked, the cache of file locks shrunk",
    privilege: "root",
    needs: "CONFIG_SLUB and CONFIG_SLUB_DEBUG, which shows caches in /sys/kernel/slab",
    kernel_paths: &[
        "kmem_cache_shrink",
        "flush_all",
        "flush_cpu_slab",
        "queue_work_on",
        "discard_slab",
        "fcntl_setlk",
    ],
    witness: "total_objects of the cache: one fewer after shrinking than before, an operation, at the least",
    danger: "other users of the cache allocate its slabs anew; bounded by the rate",
    default_rate: Some(20.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    knob::writable(SHRINK, "slab cache of file locks that can be shrunk")?;
    let file = memfd_create("still", MemfdFlags::CLOEXEC).map_err(Error::refused("make a file to lock"))?;
    job.begin()?;
    let mut given_back = 0;
    let done = job.repeat(|| {
        lock_all(&file, libc::F_WRLCK)?;
        lock_all(&file, libc::F_UNLCK)?;
        let before = objects()?;
        knob::write(SHRINK, "1")?;
        given_back += before.saturating_sub(objects()?);
        Ok(())
    });
    let name = format!("{OBJECTS}: objects given back");
    let witness = Witness { name, expected: done.tally.ok, seen: given_back };
    Ok(done.account(job, witness))
}

/// Locks or unlocks every second byte: neighbours would become one lock.
fn lock_all(file: &OwnedFd, kind: i32) -> io::Result<()> {
    for at in 0..LOCKS {
        // SAFETY: an all-zero flock is a valid one.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        (lock.l_type, lock.l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
        (lock.l_start, lock.l_len) = (at * 2, 1);
        // SAFETY: the descriptor is open and the lock is a valid one, which the kernel only reads.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Objects that the slabs of the cache have room for. The file appends how many each node has.
fn objects() -> io::Result<u64> {
    let text = fs::read_to_string(OBJECTS)?;
    let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
    first.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_taken_one_by_one_and_given_up() {
        let file = memfd_create("still", MemfdFlags::CLOEXEC).unwrap();
        let held = || {
            let text = fs::read_to_string("/proc/locks").unwrap();
            let pid = std::process::id().to_string();
            text.lines().filter(|line| line.split_whitespace().any(|word| word == pid)).count()
        };
        lock_all(&file, libc::F_WRLCK).unwrap();
        assert_eq!(held(), LOCKS as usize);
        lock_all(&file, libc::F_UNLCK).unwrap();
        assert_eq!(held(), 0);
    }
}
