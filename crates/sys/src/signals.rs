//! Ctrl-C without a handler: the signals are blocked and read from a descriptor, so that they
//! arrive where the code looks for them.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, FromRawFd};
use std::process::Child;
use std::time::Duration;

/// What came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Standard input can be read.
    Input,
    /// Whoever had the other end of it has gone.
    HungUp,
    /// A signal that asks to end, or the time is over.
    Nothing,
}

/// The signals that ask stillcore to end, blocked until they are read.
#[derive(Debug)]
pub struct EndSignals {
    file: File,
}

const END: [(i32, &str); 3] =
    [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")];

impl EndSignals {
    /// Blocks SIGINT, SIGTERM and SIGHUP in the calling thread and every thread it makes later.
    /// Call it before there are others.
    pub fn block() -> io::Result<Self> {
        // SAFETY: `set` is initialised by sigemptyset before use, and all calls get valid pointers.
        let descriptor = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            END.iter().for_each(|(signal, _)| {
                libc::sigaddset(&raw mut set, *signal);
            });
            if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Self { file: unsafe { File::from_raw_fd(descriptor) } })
    }

    /// The same signals, for another thread; each arrives once.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()? })
    }

    /// Waits until a child has ended or, where signals are given, one of them has arrived. Nothing
    /// of this process runs meanwhile, so that it disturbs no CPU that the child measures.
    pub fn wait_with(child: &Child, signals: Option<&Self>) -> io::Result<()> {
        Self::wait_with_process(Pid::from_child(child), signals)
    }

    /// The same for a child that is known by its number.
    pub fn wait_with_process(child: Pid, signals: Option<&Self>) -> io::Result<()> {
        let ended = rustix::process::pidfd_open(child, PidfdFlags::empty())?;
        let mut watched = vec![PollFd::new(&ended, PollFlags::IN)];
        watched.extend(signals.map(Self::to_poll));
        wait(&mut watched, None)
    }

    /// Waits for one of the signals, at most so long.
    pub fn wait_for(&self, most: Duration) -> io::Result<()> {
        let most = Timespec::try_from(most).map_err(io::Error::other)?;
        wait(&mut [self.to_poll()], Some(&most))
    }

    /// Waits until standard input can be read or one of the signals has arrived, at most so long.
    pub fn wait_with_input(&self, most: Duration) -> io::Result<Waited> {
        let most = Timespec::try_from(most).map_err(io::Error::other)?;
        let input = io::stdin();
        let mut watched = [PollFd::new(&input, PollFlags::IN), self.to_poll()];
        match rustix::event::poll(&mut watched, Some(&most)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Waited::Nothing),
            Err(error) => return Err(error.into()),
        }
        let is = watched[0].revents();
        Ok(match is {
            is if is.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => Waited::HungUp,
            is if is.contains(PollFlags::IN) => Waited::Input,
            _ => Waited::Nothing,
        })
    }

    /// Waits until one of these descriptors can be read or one of the signals has arrived, at most
    /// so long.
    pub fn wait_among(&self, others: &[BorrowedFd<'_>], most: Duration) -> io::Result<()> {
        let most = Timespec::try_from(most).map_err(io::Error::other)?;
        let others = others.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN));
        let mut watched: Vec<_> = others.chain([self.to_poll()]).collect();
        wait(&mut watched, Some(&most))
    }

    /// Waits until one of the signals has arrived, and leaves it for [`Self::arrived`].
    pub fn wait_for_one(&self) -> io::Result<()> {
        loop {
            let mut watched = [self.to_poll()];
            wait(&mut watched, None)?;
            if watched[0].revents().contains(PollFlags::IN) {
                return Ok(());
            }
        }
    }

    fn to_poll(&self) -> PollFd<'_> {
        PollFd::new(&self.file, PollFlags::IN)
    }

    /// The name of a signal that has arrived since the last call, if any.
    pub fn arrived(&self) -> Option<&'static str> {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        let bytes = (&self.file).read(&mut info).ok()?;
        if bytes < 4 {
            return None;
        }
        let number = i32::from_ne_bytes(info[..4].try_into().ok()?);
        END.iter().find(|(signal, _)| *signal == number).map(|(_, name)| *name)
    }
}

fn wait(watched: &mut [PollFd<'_>], most: Option<&Timespec>) -> io::Result<()> {
    match rustix::event::poll(watched, most) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Lets the signals of [`EndSignals::block`] through again, for the program that this process is
/// about to become, which also gets back what [`outlive_file_size_limit`] has ignored.
pub fn unblock_end() {
    // SAFETY: SIG_DFL is a valid disposition; the set is initialised before use, and all calls get
    // valid pointers.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        END.iter().for_each(|(signal, _)| {
            libc::sigaddset(&raw mut set, *signal);
        });
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Makes a file that grows over the limit (RLIMIT_FSIZE) an error of the write, and not the end
/// of the process.
pub fn outlive_file_size_limit() {
    // SAFETY: SIG_IGN is a valid disposition for this signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Ignores the signals that ask a program to end, in processes that must outlive their parent's
/// Ctrl-C.
pub fn ignore_end() {
    for (signal, _) in END {
        // SAFETY: SIG_IGN is a valid disposition for these signals.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Ends the sleep of a process that has called [`allow_wake`].
pub fn send_wake(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::USR1);
    }
}

/// Lets [`send_wake`] end a sleep of this process early, and do nothing else.
pub fn allow_wake() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing, so it is async-signal-safe; the action is all-zero but for
    // it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
    }
}

/// Raises a signal's default action in this process: how a program ends so that its caller sees the
/// signal.
pub fn end_by(signal: &str) {
    if let Some((number, _)) = END.iter().find(|(_, name)| *name == signal) {
        // SAFETY: restoring the default and raising are valid for these signals; the set is
        // initialised before use.
        unsafe {
            libc::signal(*number, libc::SIG_DFL);
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, *number);
            libc::raise(*number);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Instant;

    #[test]
    fn a_child_is_waited_for_until_it_ends() {
        let begun = Instant::now();
        let mut child = Command::new("sleep").arg("0.2").spawn().unwrap();
        EndSignals::wait_with(&child, None).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(200));
        assert!(child.try_wait().unwrap().unwrap().success());
    }

    #[test]
    fn a_signal_is_waited_for_no_longer_than_asked() {
        let most = Duration::from_millis(50);
        // Blocked in this thread alone: a signal to it wakes no other.
        let signals = EndSignals::block().unwrap();
        let begun = Instant::now();
        signals.wait_for(most).unwrap();
        assert!(begun.elapsed() >= most);
        // SAFETY: sends a signal that is blocked to the thread that calls.
        assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGHUP) }, 0);
        signals.wait_for(Duration::from_secs(60)).unwrap();
        // Whoever only waits leaves it to the others: a study of many guests waits again and again.
        for _ in 0..2 {
            signals.try_clone().unwrap().wait_for_one().unwrap();
        }
        assert_eq!(signals.arrived(), Some("SIGHUP"));
    }
}
