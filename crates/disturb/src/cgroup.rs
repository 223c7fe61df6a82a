//! A control group of ours, removed with what runs in it.

use crate::Error;
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Kills what a group still holds and removes it with the groups below it. A group that is gone is
/// a success; a directory with any other name than `stillcore-PID` or `stillcore-PID-NUMBER` is
/// never touched.
pub fn remove(dir: &Path) -> Result<(), Error> {
    let not_ours = || Error::NotOurs { path: dir.to_owned() };
    if !is_our_name(dir) {
        return Err(not_ours());
    }
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("look at", dir, error)),
        Ok(found) if !found.is_dir() => return Err(not_ours()),
        Ok(_) => {}
    }
    let deadline = Instant::now() + DEATH;
    loop {
        kill_members(dir);
        remove_below(dir);
        match fs::remove_dir(dir) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // Members that are dying still count.
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {}
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                let left = members(dir).len();
                return Err(if left > 0 {
                    Error::Survivors { path: dir.to_owned(), left }
                } else {
                    Error::io("remove", dir, error)
                });
            }
            Err(error) => return Err(Error::io("remove", dir, error)),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whatever is below a group of ours is ours. What cannot be removed shows when the group itself
/// is.
pub(crate) fn remove_below(dir: &Path) {
    let below = fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        kill_members(&entry.path());
        remove_below(&entry.path());
        let _ = fs::remove_dir(entry.path());
    }
}

pub(crate) fn is_our_name(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(PREFIX));
    let number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    name.is_some_and(|numbers| numbers.split('-').all(number))
}

pub(crate) fn members(dir: &Path) -> Vec<i32> {
    let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// At once by `cgroup.kill` (version 2 since 5.14), else one by one; the caller repeats this until
/// all are gone.
pub(crate) fn kill_members(dir: &Path) {
    let kill_all = || -> io::Result<()> {
        OpenOptions::new().write(true).open(dir.join("cgroup.kill"))?.write_all(b"1")
    };
    let me = getpid();
    let members = members(dir);
    // Nobody kills themselves by tidying up.
    if !members.contains(&me.as_raw_nonzero().get()) && kill_all().is_ok() {
        return;
    }
    // A member of another pid namespace is listed as 0.
    for pid in members.into_iter().filter(|pid| *pid > 0).filter_map(Pid::from_raw).filter(|pid| *pid != me) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

pub(crate) const PREFIX: &str = "stillcore-";

/// How long killed members may take to go.
pub(crate) const DEATH: Duration = Duration::from_secs(2);
