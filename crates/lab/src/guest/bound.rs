//! The one step on the host's side: becoming another program that dies when the process that
//! requested it dies.
//!
//! `PR_SET_PDEATHSIG` (prctl(2)) has to be set by the child itself and survives execve, so the
//! emulator is started through a second call of our own program, which does no more than this. The
//! signal comes when the *thread* that started the child ends.

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Replaces this process by `words`, to be killed when the parent `parent` ends. Returns only on
/// failure.
pub fn exec_bound(parent: u32, words: &[OsString]) -> io::Error {
    let Some((program, arguments)) = words.split_first() else { return io::Error::other("no program given") };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // It may have died before the signal was set; then nobody would ever send it.
    if getppid().is_none_or(|pid| pid.as_raw_pid().cast_unsigned() != parent) {
        return io::Error::other("the process that wanted this is gone");
    }
    Command::new(program).args(arguments).exec()
}
