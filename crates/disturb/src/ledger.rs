//! Witnesses of network and disk: what the kernel itself has counted of bytes moved and of devices
//! come and gone.
//!
//! Formats: Linux `Documentation/filesystems/proc.rst` (`/proc/PID/io`, `/proc/net/netstat`),
//! `Documentation/ABI/testing/sysfs-uevent`.

use super::Error;
use super::witness::{self, Counter, Read};
use std::fs;
use std::path::Path;

/// Events that the kernel has sent to user space about devices that came, went or changed:
/// machine-wide, a lower bound. A loopback interface that comes with its network namespace is one,
/// and so is a loop device that gets another file.
pub(super) fn uevents() -> Result<Counter<Read>, Error> {
    Counter::read("/sys/kernel/uevent_seqnum", witness::uevents)
}

/// A line of the calling process's own account of input and output, children that have been waited
/// for included.
pub(super) fn own_io(line: &'static str) -> Result<Counter<impl Fn() -> Result<u64, Error>>, Error> {
    let path = Path::new("/proc/self/io");
    if !path.exists() {
        return Err(Error::absent(
            "this kernel does not account for a task's input and output (CONFIG_TASK_IO_ACCOUNTING)",
        ));
    }
    Counter::read(format!("/proc/self/io {line}"), move || number(path, |text| labelled(text, line)))
}

/// Bytes that came in by IPv4 in this network namespace.
pub(super) fn bytes_in() -> Result<Counter<Read>, Error> {
    const PATH: &str = "/proc/self/net/netstat";
    let counter: Result<Counter<Read>, Error> =
        Counter::read("/proc/net/netstat IpExt InOctets", || number(Path::new(PATH), in_octets));
    counter.map_err(|_| Error::absent(format!("{PATH} does not count the bytes that come in")))
}

/// A file that lacks the number is an error, because a witness that says nothing must not look like
/// a no.
fn number(path: &Path, find: impl Fn(&str) -> Option<u64>) -> Result<u64, Error> {
    let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
    let lacks = || Error::io("find the witness counter in", path, std::io::ErrorKind::InvalidData.into());
    find(&text).ok_or_else(lacks)
}

fn labelled(text: &str, line: &str) -> Option<u64> {
    text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(": "))?.trim().parse().ok()
}

/// `/proc/net/netstat` has a line of names and a line of values for each group.
fn in_octets(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|name| name == "InOctets")?;
    values.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_name_and_never_by_a_part_of_it() {
        let io = "rchar: 5\nwchar: 6\nread_bytes: 7\nwrite_bytes: 4096\ncancelled_write_bytes: 9\n";
        assert_eq!(labelled(io, "write_bytes"), Some(4096));
        assert_eq!(labelled(io, "write"), None);
        let netstat = "TcpExt: A B\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 1234 99\n";
        assert_eq!(in_octets(netstat), Some(1234));
        assert_eq!(in_octets("IpExt: InNoRoutes\nIpExt: 0\n"), None);
    }

    #[test]
    fn what_this_process_reads_is_on_its_account() {
        let before = own_io("rchar").unwrap().start().unwrap();
        let read = fs::read("/proc/self/status").unwrap().len() as u64;
        let witness = before.grown(read).unwrap();
        assert!(witness.seen >= witness.expected, "{witness:?}");
    }

    #[test]
    fn a_file_without_the_number_is_an_error_that_names_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = number(file.path(), in_octets).unwrap_err().to_string();
        assert!(error.contains("find the witness counter in"), "{error}");
    }
}
