//! The kernel's log as text, from /dev/kmsg (Documentation/ABI/testing/dev-kmsg): one record a
//! read, `priority,sequence,microseconds,flags;text`, then lines that begin with a blank and hold
//! device properties.

use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// Everything that the log still holds, in the form of dmesg(1).
pub fn kernel_log() -> String {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut text = String::new();
    let Ok(mut log) = OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg") else {
        return text;
    };
    let mut record = [0; 8192];
    loop {
        match log.read(&mut record) {
            Ok(0) => return text,
            Ok(len) => text += &line(&String::from_utf8_lossy(&record[..len])),
            // EPIPE: the record was overwritten meanwhile, the next read continues after the gap.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => text += "[records lost]\n",
            // EAGAIN: that was all.
            Err(_) => return text,
        }
    }
}

fn line(record: &str) -> String {
    let (prefix, rest) = record.split_once(';').unwrap_or(("", record));
    let micros: u64 = prefix.split(',').nth(2).and_then(|field| field.parse().ok()).unwrap_or(0);
    let message = rest.lines().next().unwrap_or_default();
    format!("[{:5}.{:06}] {message}\n", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_lines() {
        assert_eq!(
            line("6,339,5140900,-;NET: Registered\n SUBSYSTEM=net\n"),
            "[    5.140900] NET: Registered\n"
        );
        assert_eq!(line("no record"), "[    0.000000] no record\n");
    }
}
