//! Children of stillcore: this same program with a hidden argument, in their own process group,
//! dying with their parent.

use crate::signals;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use rustix::process::{Pid, Signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// The descriptor at which a child finds what its parent shares with it.
pub const SHARED_FD: i32 = 3;

/// Makes the child lead its own process group (Ctrl-C reaches the parent alone) and die at once
/// when the parent's thread that spawned it dies.
pub fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    command.process_group(0);
    // SAFETY: between fork and exec the closure makes only async-signal-safe calls and allocates
    // nothing.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died before the call above.
            if rustix::process::getppid() != Some(parent) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
}

/// Lets the child, a program of the user's, get the signals that this process has blocked.
pub fn unblock_end(command: &mut Command) {
    // SAFETY: it makes only async-signal-safe calls and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            signals::unblock_end();
            Ok(())
        });
    }
}

/// Asks the process group that a child leads to end. A shell may have had it ignore Ctrl-C.
pub fn end_group(child: &Child) {
    let _ = rustix::process::kill_process_group(Pid::from_child(child), Signal::TERM);
}

/// Kills that group.
pub fn kill_group(child: &Child) {
    let _ = rustix::process::kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// Gives the child a descriptor as number [`SHARED_FD`].
pub fn share(command: &mut Command, file: &OwnedFd) {
    let source = file.as_raw_fd();
    // SAFETY: dup2 and fcntl are async-signal-safe, and the parent keeps `file` open until the
    // spawn has returned.
    unsafe {
        command.pre_exec(move || {
            let result = if source == SHARED_FD {
                libc::fcntl(source, libc::F_SETFD, 0)
            } else {
                libc::dup2(source, SHARED_FD)
            };
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        });
    }
}

/// Gives the child descriptors as numbers [`SHARED_FD`], [`SHARED_FD`] + 1 and so on. Takes the
/// place of [`share`].
pub fn share_all(command: &mut Command, files: &[OwnedFd]) {
    let mut sources: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
    let end = SHARED_FD + sources.len() as i32;
    // SAFETY: fcntl and dup2 are async-signal-safe, nothing is allocated, and the parent keeps
    // `files` open until the spawn has returned.
    unsafe {
        command.pre_exec(move || {
            // A source may have the number that another is to get: all are moved out of the way
            // first.
            for source in &mut sources {
                *source = checked(libc::fcntl(*source, libc::F_DUPFD_CLOEXEC, end))?;
            }
            for (source, target) in sources.iter().zip(SHARED_FD..) {
                checked(libc::dup2(*source, target))?;
            }
            Ok(())
        });
    }
}

/// In the child: the descriptors of [`share_all`], to be called once. They are not handed on to
/// children of the child.
pub fn inherited(count: usize) -> io::Result<Vec<OwnedFd>> {
    let take = |number: RawFd| {
        // SAFETY: fcntl looks at any number, and says EBADF for one that is not open.
        checked(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
        // SAFETY: the parent placed the descriptor at this number, and nothing else in this process
        // owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(number) })
    };
    (SHARED_FD..).take(count).map(take).collect()
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
