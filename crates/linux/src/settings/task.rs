//! Where a task may run: sched_setaffinity(2), read back from `/proc/TID/status`.

use crate::error::Error;
use crate::sys::process::Owner;
use crate::sys::sched;
use model::Cpus;
use std::fs;

/// The task of a target `TID/STARTTIME/NAME`, if it still runs. A start time of 0 stands for any.
pub(super) fn alive(target: &str) -> Option<i32> {
    let mut parts = target.splitn(3, '/');
    let tid: i32 = parts.next()?.parse().ok()?;
    let start: u64 = parts.next()?.parse().ok()?;
    let now = Owner::of(tid)?;
    (start == 0 || now.start == start).then_some(tid)
}

pub(super) fn read(target: &str) -> Option<String> {
    let tid = alive(target)?;
    // It may end between the two files.
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(|list| list.trim().to_owned())
}

pub(super) fn write(target: &str, list: &str) -> Result<(), Error> {
    let Some(tid) = alive(target) else { return Ok(()) };
    let cpus = Cpus::parse_list(list)?;
    match sched::pin_task(tid, &cpus) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        result => result.map_err(|error| Error::os("move task", target, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_identified_by_its_start_and_moves() {
        std::thread::spawn(|| {
            let tid = sched::tid();
            let owner = Owner::of(tid).unwrap();
            let target = format!("{tid}/{}/test/with/slashes", owner.start);
            let before = read(&target).unwrap();
            let first = Cpus::one(Cpus::parse_list(&before).unwrap().iter().next().unwrap()).to_string();
            write(&target, &first).unwrap();
            assert_eq!(read(&target).as_deref(), Some(first.as_str()));
            write(&target, &before).unwrap();
            let another = format!("{tid}/{}/x", owner.start + 1);
            assert_eq!(read(&another), None);
            write(&another, &first).unwrap();
            assert_eq!(read(&target).as_deref(), Some(before.as_str()), "another task's order is not ours");
        })
        .join()
        .unwrap();
    }
}
