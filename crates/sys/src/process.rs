//! Processes identified by more than their id, which the kernel reuses.

use crate::error::Error;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process, kill_process_group,
    setrlimit, waitid,
};
use std::process::{Child, ExitStatus};
use std::str::FromStr;
use std::{fmt, fs};

/// A process: its id, and when it started, in clock ticks since boot (field 22 of `/proc/PID/stat`,
/// proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Process id.
    pub pid: i32,
    /// Start time in clock ticks since boot.
    pub start: u64,
}

impl Owner {
    /// The process with this id, if there is one.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold blanks and parentheses; fields count from behind its end.
        let start = stat.rsplit_once(") ")?.1.split_whitespace().nth(19)?.parse().ok()?;
        Some(Self { pid, start })
    }

    /// The calling process.
    pub fn of_this_process() -> Result<Self, Error> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self::of(pid).ok_or_else(|| Error::failed("reading /proc/self/stat", "no start time in it"))
    }

    /// Whether this very process still runs (a zombie does not).
    pub fn alive(self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        Self::of(self.pid) == Some(self) && !matches!(state, Some('Z' | 'X') | None)
    }

    /// Kills this very process; one that is gone is fine.
    pub fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Asks this very process to end, as Ctrl-C does; one that is gone is fine.
    pub fn interrupt(self) {
        self.signal(Signal::INT);
    }

    fn signal(self, signal: Signal) {
        if self.alive()
            && let Some(pid) = Pid::from_raw(self.pid)
        {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Gives this process the lowest priority of the ordinary ones, as far as that is allowed.
pub fn yield_to_others() {
    let _ = rustix::process::setpriority_process(None, 19);
}

/// Whether the caller is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this process sees the numbers of processes that the kernel's events bear: those of the
/// first PID namespace, whose inode the kernel fixes (include/linux/proc_ns.h,
/// `PROC_PID_INIT_INO`). A kernel without such namespaces has no link.
pub fn in_first_pid_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").map_or(true, |link| is_first(&link.to_string_lossy()))
}

fn is_first(link: &str) -> bool {
    link == "pid:[4026531836]"
}

/// Allows this process and its children as many open descriptors as the hard limit does
/// (`getrlimit(2)`); the number that is allowed then, none for any.
pub fn raise_open_files() -> Option<u64> {
    let limits = getrlimit(Resource::Nofile);
    if limits.current != limits.maximum {
        // Refused where a seccomp filter forbids it: then the soft limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, maximum: limits.maximum });
    }
    getrlimit(Resource::Nofile).current
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.start)
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (pid, start) = text.split_once('-').ok_or(())?;
        Ok(Self { pid: pid.parse().map_err(drop)?, start: start.parse().map_err(drop)? })
    }
}

/// The process group of this process; 0 where its leader is outside of this PID namespace, or it
/// was started by the kernel (getpgid(2)).
pub fn group() -> std::io::Result<i32> {
    // SAFETY: the call reads no memory.
    let group = unsafe { libc::getpgid(0) };
    if group < 0 { Err(std::io::Error::last_os_error()) } else { Ok(group) }
}

/// Whether a child has ended. It is left to be waited for, so that its number stays its own.
pub fn has_ended(child: &Child) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    number(child).is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), look), Ok(None)))
}

/// Ends a child that was started in a process group of its own, with all that is in that group.
pub fn end_group(child: &mut Child) -> std::io::Result<ExitStatus> {
    number(child).map(|group| kill_process_group(group, Signal::KILL));
    child.wait()
}

fn number(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_id_and_start() {
        let this = Owner::of_this_process().unwrap();
        assert!(this.alive());
        assert!(!Owner { start: this.start + 1, ..this }.alive());
        assert_eq!(this.to_string().parse::<Owner>(), Ok(this));
        assert!("12".parse::<Owner>().is_err());
    }

    #[test]
    fn the_first_pid_namespace_is_known_by_its_inode() {
        assert!(is_first("pid:[4026531836]"));
        assert!(!is_first("pid:[4026532210]") && !is_first("mnt:[4026531836]"));
    }
}
