//! More witnesses: what the kernel has counted of memory, of switches and of a task's own input and
//! output.
//!
//! Sources: Linux `Documentation/filesystems/proc.rst` (`/proc/vmstat`, `/proc/PID/io`),
//! `getrusage(2)`. Events of `/proc/vmstat` are kept per CPU and summed when read, so that they are
//! exact; they are the whole machine's, and so a lower bound.

use super::Error;
use super::witness::{Counter, Read};
use std::{fs, io};

/// An event of `/proc/vmstat` by name; absent where this kernel does not count it.
pub(super) fn vmstat(event: &'static str) -> Result<Counter<impl Fn() -> Result<u64, Error>>, Error> {
    Counter::read(format!("/proc/vmstat {event}"), move || field("/proc/vmstat", event))
}

/// A field of the calling process's own `/proc/self/io`, such as `rchar`; absent where this kernel
/// does not account it.
pub(super) fn own_io(name: &'static str) -> Result<Counter<impl Fn() -> Result<u64, Error>>, Error> {
    Counter::read(format!("/proc/self/io {name}"), move || field("/proc/self/io", name))
}

/// Voluntary context switches of the calling thread: how often it has slept.
pub(super) fn sleeps() -> Result<Counter<Read>, Error> {
    Counter::read("voluntary context switches of the thread (getrusage)", || {
        usage(libc::RUSAGE_THREAD).map(|usage| usage.ru_nvcsw as u64)
    })
}

/// Context switches of the children that have been waited for, and of theirs.
pub(super) fn children_switches() -> Result<Counter<Read>, Error> {
    Counter::read("context switches of the workers (getrusage)", || {
        usage(libc::RUSAGE_CHILDREN).map(|usage| (usage.ru_nvcsw + usage.ru_nivcsw) as u64)
    })
}

/// Minor page faults of the children that have been waited for.
pub(super) fn children_faults() -> Result<Counter<Read>, Error> {
    Counter::read("minor faults of the workers (getrusage)", || {
        usage(libc::RUSAGE_CHILDREN).map(|usage| usage.ru_minflt as u64)
    })
}

fn usage(who: libc::c_int) -> Result<libc::rusage, Error> {
    // SAFETY: an all-zero rusage is a valid one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing.
    match unsafe { libc::getrusage(who, &raw mut usage) } {
        0 => Ok(usage),
        _ => Err(Error::refused("read the resource usage")(io::Error::last_os_error())),
    }
}

fn field(path: &str, name: &str) -> Result<u64, Error> {
    let text = fs::read_to_string(path);
    let found = text.ok().and_then(|text| named(&text, name));
    found.ok_or_else(|| Error::absent(format!("this kernel does not count {name} in {path}")))
}

/// The number on the line that begins with this name, with or without a colon.
fn named(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once([' ', ':']));
    lines.find(|(word, _)| *word == name).and_then(|(_, rest)| rest.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let vmstat = "pgfault_x 1\npgfault 22\npgmajfault 3\n";
        assert_eq!(named(vmstat, "pgfault"), Some(22));
        assert_eq!(named(vmstat, "fault"), None);
        assert_eq!(named("rchar: 323934931\nwchar: 7\n", "wchar"), Some(7));
    }

    #[test]
    fn a_kernel_that_does_not_count_is_absent_in_words() {
        let error = vmstat("no_such_event").err().unwrap();
        assert!(matches!(error, Error::Absent { .. }), "{error}");
        assert!(error.to_string().contains("no_such_event in /proc/vmstat"), "{error}");
    }

    #[test]
    fn sleeping_is_counted() {
        let before = sleeps().unwrap().start().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(before.grown(1).unwrap().seen >= 1);
    }
}
