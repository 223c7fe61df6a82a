//! The file systems that every program expects, mounted in a guest that has only its initial one.
//!
//! tracefs, debugfs and securityfs are left out on purpose: mounting them is the business of the
//! tool under test.

use super::{FirstProgram, problem};
use rustix::mount::{MountFlags, mount};
use std::ffi::CStr;
use std::fs;

/// (type, where, options); parents come first.
const MOUNTS: [(&str, &str, Option<&CStr>); 8] = [
    ("proc", "/proc", None),
    ("sysfs", "/sys", None),
    ("devtmpfs", "/dev", Some(c"mode=755")),
    ("devpts", "/dev/pts", Some(c"gid=5,mode=620,ptmxmode=666")),
    ("tmpfs", "/dev/shm", Some(c"mode=1777")),
    ("tmpfs", "/run", Some(c"mode=755")),
    ("tmpfs", "/tmp", Some(c"mode=1777")),
    ("cgroup2", "/sys/fs/cgroup", None),
];

/// Mounts them all and returns what failed.
pub fn mount_all(_: &FirstProgram) -> Vec<String> {
    let failed =
        MOUNTS.iter().filter_map(|(kind, target, options)| mount_one(kind, target, *options).err()).collect();
    enable_controllers();
    failed
}

/// Hands the controllers that confine processes on to groups below the root, as service managers do
/// at boot. A kernel built without one of them goes without.
fn enable_controllers() {
    for controller in ["cpuset", "memory", "pids"] {
        let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", format!("+{controller}"));
    }
}

fn mount_one(kind: &str, target: &str, options: Option<&CStr>) -> Result<(), String> {
    // Below /sys nothing can be made: there the directory exists, or the kernel lacks the file
    // system.
    let _ = fs::create_dir_all(target);
    mount(kind, target, kind, MountFlags::NOSUID | nodev(kind), options)
        .map_err(|error| problem(format_args!("mount {kind} on {target}"), error))
}

fn nodev(kind: &str) -> MountFlags {
    if kind.starts_with("dev") { MountFlags::empty() } else { MountFlags::NODEV }
}
