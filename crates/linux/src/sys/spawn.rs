//! Children of stillcore: this same program with a hidden argument, in their own process group, dying with their parent.

use rustix::fd::{AsRawFd, OwnedFd};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The descriptor at which a child finds what its parent shares with it.
pub const SHARED_FD: i32 = 3;

/// Makes the child lead its own process group (Ctrl-C reaches the parent alone) and die at once when the parent's thread that
/// spawned it dies.
pub fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    command.process_group(0);
    // SAFETY: between fork and exec the closure makes only async-signal-safe calls and allocates nothing.
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

/// Gives the child a descriptor as number [`SHARED_FD`].
pub fn share(command: &mut Command, file: &OwnedFd) {
    let source = file.as_raw_fd();
    // SAFETY: dup2 and fcntl are async-signal-safe, and the parent keeps `file` open until the spawn has returned.
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
