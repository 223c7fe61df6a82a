//! Files of the kernel that make it do something when they are written.

use super::Error;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Says before anything begins whether a file can be written: one that this kernel does not have is
/// absent, one that this user may not write is an error.
pub(super) fn writable(path: &str, what: &str) -> Result<(), Error> {
    match OpenOptions::new().write(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Error::absent(format!("this kernel has no {what} ({path})")))
        }
        Err(error) => Err(Error::io("write", Path::new(path), error)),
    }
}

/// Writes a value in one call, as such files want it.
pub(super) fn write(path: &str, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_absent_and_one_that_refuses_is_an_error() {
        let absent = writable("/proc/sys/vm/no_such_file", "such thing").unwrap_err();
        assert!(matches!(absent, Error::Absent { .. }) && absent.to_string().contains("no such thing"));
        assert!(matches!(writable("/proc/sys", "sysctl").unwrap_err(), Error::Io { .. }));
    }
}
