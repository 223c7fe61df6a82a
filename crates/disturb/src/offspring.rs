//! One short-lived child as one operation: made, ended, waited for; what it met is its exit code.

use super::workers::exit_now;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io;

/// Forks, has the copy call `body`, and waits for it. The copy's exit code is the errno that `body`
/// met, or 0; a copy that ends in any other way is ECHILD. The caller must have one thread, as a
/// worker has.
pub(super) fn fork_and_wait(body: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: the caller has one thread, so no lock is held by a thread that the copy lacks; the
    // copy leaves by `exit_now`.
    match unsafe { libc::fork() } {
        0 => exit_now(body().map_or_else(|error| error.raw_os_error().unwrap_or(libc::EIO), |()| 0)),
        -1 => Err(io::Error::last_os_error()),
        pid => match waitpid(Pid::from_raw(pid), WaitOptions::empty())? {
            Some((_, status)) => match status.exit_status() {
                Some(0) => Ok(()),
                Some(errno) => Err(io::Error::from_raw_os_error(errno)),
                None => Err(Errno::CHILD.into()),
            },
            None => Err(Errno::CHILD.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_child_met_is_the_outcome() {
        assert!(fork_and_wait(|| Ok(())).is_ok());
        let full = fork_and_wait(|| Err(io::Error::from_raw_os_error(libc::EMFILE)));
        assert_eq!(full.unwrap_err().raw_os_error(), Some(libc::EMFILE));
        let killed = fork_and_wait(|| {
            // SAFETY: ends the copy by a signal.
            unsafe { libc::raise(libc::SIGKILL) };
            Ok(())
        });
        assert_eq!(killed.unwrap_err().raw_os_error(), Some(libc::ECHILD));
    }
}
