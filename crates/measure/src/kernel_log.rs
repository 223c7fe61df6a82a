//! The scheduler's lines in the kernel log while a window is open: it reports there, once per boot,
//! that it throttles real-time threads.
//!
//! `/dev/kmsg` (`Documentation/ABI/testing/dev-kmsg`): one record a read,
//! `priority,sequence,microseconds,flags;text`.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// The most lines that are kept.
const MOST: usize = 20;

/// The log from here on.
#[derive(Debug)]
pub(crate) struct Tail {
    log: Option<File>,
}

impl Tail {
    /// Begins behind the last record. Without the right to read the log it stays empty.
    pub(crate) fn begin() -> Self {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let open = || {
            let mut log = OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg")?;
            log.seek(SeekFrom::End(0)).map(|_| log)
        };
        Self { log: open().ok() }
    }

    /// What the scheduler has written since.
    pub(crate) fn of_scheduler(mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        while let Some(log) = &mut self.log {
            match log.read(&mut record) {
                Ok(length) if length > 0 && lines.len() < MOST => {
                    lines.extend(of_scheduler(&String::from_utf8_lossy(&record[..length])));
                }
                // EPIPE: the record was overwritten meanwhile, the next read continues after it.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                // EAGAIN: that was all.
                _ => return lines,
            }
        }
        lines
    }
}

fn of_scheduler(record: &str) -> Option<String> {
    let text = record.split_once(';')?.1.lines().next()?;
    (text.starts_with("sched: ") || text.starts_with("sched/")).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_scheduler_says_is_kept() {
        let throttled = "4,339,5140900,-;sched: RT throttling activated\n SUBSYSTEM=none\n";
        assert_eq!(of_scheduler(throttled).as_deref(), Some("sched: RT throttling activated"));
        assert_eq!(of_scheduler("6,340,5140901,-;usb 1-1: new device\n"), None);
        assert_eq!(of_scheduler("no record"), None);
    }
}
