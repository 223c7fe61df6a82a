//! The control group of a process, version 2: `cgroup.procs`. A process that joins a group with
//! cpusets gets all its CPUs (before 6.2; Linux `kernel/cgroup/cpuset.c`, `cpuset_attach`), so each
//! thread's former affinity is restored.

use super::task::alive;
use machine::{OURS, Root, group_of, lineage, mounts};
use model::Cpus;
use std::fs;
use std::path::Path;
use sys::{Error, sched};

/// How far up a line of parents is followed.
const GENERATIONS: usize = 64;
/// How often a group is looked through for what a process has left behind: a fork bomb is not
/// waited for.
const ROUNDS: usize = 50;

/// The group's directory; `None` where the process has ended.
pub(super) fn read(target: &str) -> Option<String> {
    let root = Root::live();
    let path = group_of(&root, alive(target)?.unsigned_abs())?;
    let mount = mounts(&root).into_iter().find(|mount| mount.kind == "cgroup2")?;
    Some(format!("{}{}", mount.target, path.trim_end_matches('/')))
}

/// Moves the process; out of the group of the isolated CPUs, what it has started meanwhile goes
/// with it. A group that is gone since is replaced by the nearest one above it that takes
/// processes.
pub(super) fn write(target: &str, group: &str) -> Result<(), Error> {
    let Some(pid) = alive(target) else { return Ok(()) };
    let own = read(target).unwrap_or_default();
    move_one(pid, group)?;
    // It may have forked until it was moved, and what it forked since.
    for _ in 0..ROUNDS {
        let inside = fs::read_to_string(format!("{own}/cgroup.procs")).unwrap_or_default();
        let inside = inside.lines().filter_map(|line| line.parse().ok());
        let left: Vec<i32> = inside.filter(|other| own.ends_with(OURS) && descends(*other, pid)).collect();
        if left.is_empty() {
            break;
        }
        left.into_iter().try_for_each(|one| move_one(one, group))?;
    }
    Ok(())
}

fn move_one(pid: i32, group: &str) -> Result<(), Error> {
    let before = affinities(pid);
    if before.is_empty() {
        // It ended meanwhile.
        return Ok(());
    }
    let mut at = Some(Path::new(group));
    let mut moved = Ok(());
    while let Some(directory) = at.filter(|directory| directory.parent().is_some()) {
        moved = fs::write(directory.join("cgroup.procs"), pid.to_string());
        let Err(error) = &moved else { break };
        match error.raw_os_error() {
            // It ended meanwhile.
            Some(libc::ESRCH) => return Ok(()),
            Some(libc::ENOENT | libc::ENODEV | libc::EBUSY)
                if !directory.is_dir() || directory != Path::new(group) =>
            {
                at = directory.parent();
            }
            _ => break,
        }
    }
    moved.map_err(|error| Error::os("move a process into", group, error))?;
    for (tid, cpus) in before {
        if sched::affinity_of(tid).is_ok_and(|now| now != cpus) {
            // What the group does not have the kernel takes out; a thread may have ended.
            let _ = sched::pin_task(tid, &cpus);
        }
    }
    Ok(())
}

fn affinities(pid: i32) -> Vec<(i32, Cpus)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    threads.filter_map(|tid: i32| Some((tid, sched::affinity_of(tid).ok()?))).collect()
}

fn descends(pid: i32, from: i32) -> bool {
    let root = Root::live();
    let mut at = pid;
    for _ in 0..GENERATIONS {
        let Some(line) = u32::try_from(at).ok().and_then(|pid| lineage(&root, pid)) else { return false };
        if line.parent == from || line.group == from || line.session == from {
            return true;
        }
        at = line.parent;
    }
    false
}
