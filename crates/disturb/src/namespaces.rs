//! Namespaces that a stressor enters and that die with it: network and mounts, `namespaces(7)`.
//!
//! The end of a process is the end of its namespaces, whatever ended it: links, connections and
//! mounts that were made in them go with them. So nothing has to be undone, and SIGKILL leaves
//! nothing.

use super::job::Job;
use super::{Error, ifreq};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::path::{Path, PathBuf};

/// Enters a new network namespace with loopback up; false where that is not allowed or not built
/// in. The process must have one thread and no socket.
pub(super) fn own_network() -> Result<bool, Error> {
    if unshare(UnshareFlags::NEWNET).is_err() {
        return Ok(false);
    }
    // From here there is no way back to the host's loopback: a namespace whose own is down would
    // turn every connection into an error.
    ifreq::raise("lo", None).map_err(Error::refused("raise the loopback of a network namespace"))?;
    Ok(true)
}

/// As [`own_network`], and says in the record how it went.
pub(super) fn own_or_host_network(job: &mut Job<'_>) -> Result<bool, Error> {
    let private = own_network()?;
    let how = if private { "network namespace" } else { "not network namespace: host's loopback" };
    job.confined_by.push(how.to_owned());
    Ok(private)
}

/// As [`own_network`], for what must never be done to the host's network.
pub(super) fn need_own_network(job: &mut Job<'_>) -> Result<(), Error> {
    if !own_network()? {
        return Err(Error::absent("a network namespace cannot be made here (CAP_SYS_ADMIN, CONFIG_NET_NS)"));
    }
    job.confined_by.push("network namespace".to_owned());
    Ok(())
}

/// Enters a new mount namespace that propagates nothing to others, and returns a directory there
/// that may be mounted over.
pub(super) fn own_mounts(job: &mut Job<'_>) -> Result<PathBuf, Error> {
    match unshare(UnshareFlags::NEWNS) {
        Ok(()) => {}
        Err(Errno::PERM) => return Err(Error::absent("a mount namespace needs CAP_SYS_ADMIN")),
        Err(error) => return Err(Error::refused("make a mount namespace")(error)),
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(Error::refused("keep mounts to ourselves"))?;
    job.confined_by.push("mount namespace".to_owned());
    let places = ["/mnt", "/run", "/tmp", "/var"].map(Path::new);
    let found = places.into_iter().find(|place| place.is_dir());
    found.map(Path::to_owned).ok_or_else(|| Error::absent("there is no directory to mount over"))
}

/// Leaves namespaces for new ones.
pub(super) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: descriptors stay shared with nobody: CLONE_FILES is never requested, and each caller
    // has one thread.
    unsafe { unshare_unsafe(flags) }
}
