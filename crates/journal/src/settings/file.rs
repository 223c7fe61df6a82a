//! Files of `/proc`, `/sys` and control groups that hold one value.

use super::value;
use rustix::io::Errno;
use std::fs;
use std::io::Write;
use sys::Error;

/// Errors by which the kernel says that there is nothing (any more) to read.
const ABSENT: [Errno; 5] = [Errno::NOENT, Errno::NODEV, Errno::NXIO, Errno::OPNOTSUPP, Errno::NOTDIR];

pub(super) fn read(path: &str) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(value::writable(&text))),
        Err(error) if absent(&error) => Ok(None),
        Err(error) => Err(Error::os("read", path, error)),
    }
}

/// Files that have to be written behind others, with nothing read in between.
///
/// Reading one of the lockup detectors' switches makes the kernel replace the requested value by
/// the one in force (kernel/watchdog.c, `proc_watchdog_common`): with one detector off, reading
/// `watchdog` switches the whole of it off, and no write to the detector's own file brings it back.
const WRITTEN_BEHIND: [(&str, &str); 2] = [
    ("/proc/sys/kernel/soft_watchdog", "/proc/sys/kernel/watchdog"),
    ("/proc/sys/kernel/nmi_watchdog", "/proc/sys/kernel/watchdog"),
];

/// One write(2): the kernel takes each write for a whole value.
pub(super) fn write(path: &str, text: &str) -> Result<(), Error> {
    put(path, text)?;
    // What switches a detector off must not take the other one along.
    let behind = WRITTEN_BEHIND.iter().find(|(first, _)| *first == path && text != "0");
    behind.map_or(Ok(()), |(_, second)| put(second, text))
}

fn put(path: &str, text: &str) -> Result<(), Error> {
    // Writing a line end alone clears what an empty write would leave.
    let bytes = if text.is_empty() { "\n" } else { value::asked(text) };
    let result = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)
        .and_then(|mut file| file.write_all(bytes.as_bytes()));
    result.map_err(|error| Error::os("write", path, error))
}

fn absent(error: &std::io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| ABSENT.iter().any(|errno| errno.raw_os_error() == code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_can_be_written_and_what_is_gone_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x").display().to_string();
        assert_eq!(read(&path).unwrap(), None);
        assert!(write(&path, "1").is_err(), "settings are never created");
        fs::write(&path, "always [never]\n").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("never"));
    }
}
