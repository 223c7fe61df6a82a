//! Where a task may run: sched_setaffinity(2), read back from `/proc/TID/status`.

use machine::{ALLOWED, Root, status};
use model::Cpus;
use serde::{Deserialize, Serialize};
use sys::process::Owner;
use sys::{Error, sched};

/// A thread or process. Its number alone may be somebody else's by now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Thread id.
    pub id: u32,
    /// Clock ticks since boot; 0 stands for any.
    pub start: u64,
    /// Its name when it was found.
    pub name: String,
}

impl Task {
    /// As [`Settings`](super::Settings) takes it: `TID/STARTTIME/NAME`.
    pub fn target(&self) -> String {
        let Self { id, start, name } = self;
        format!("{id}/{start}/{name}")
    }

    /// Reads a target.
    pub fn of(target: &str) -> Option<Self> {
        let mut parts = target.splitn(3, '/');
        let (id, start) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { id, start, name: parts.next()?.to_owned() })
    }
}

/// The task of a target, if it still runs.
pub(super) fn alive(target: &str) -> Option<i32> {
    let Task { id, start, .. } = Task::of(target)?;
    let tid = i32::try_from(id).ok()?;
    (Owner::of(tid)?.start == start || start == 0).then_some(tid)
}

pub(super) fn read(target: &str) -> Option<String> {
    let tid = alive(target)?;
    // It may end between the two files.
    status(&Root::live(), &tid.to_string(), ALLOWED)
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
