//! `kmsg`: lines written to the kernel log, and so to whatever console there is.
//!
//! A serial console sends a line character by character, with interrupts off for as long as that
//! takes on kernels that print in the caller (kernel/printk/printk.c, `console_unlock`). The kernel
//! limits writers of one descriptor to ten lines in five seconds, without an error
//! (kernel.printk_devkmsg, `devkmsg_write`), so each line has a descriptor of its own.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::Counter;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;

const PATH: &str = "/dev/kmsg";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "kmsg",
    title: "lines written to the kernel log and its console",
    class: "io",
    operation: "a line of 60 characters",
    privilege: "root",
    needs: "CONFIG_PRINTK, /dev/kmsg",
    kernel_paths: &["devkmsg_write", "vprintk_emit", "console_unlock", "irq_work", "wake-up of log readers"],
    witness: "numbers of the lines of the kernel log, machine-wide: a lower bound",
    cleanup: "its lines stay in the kernel log",
    danger: "older lines fall out of the kernel log; bounded by the rate",
    default_rate: Some(5.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    say(0).map_err(|error| Error::absent(format!("{PATH} cannot be written: {error}")))?;
    let last = || last_number().map_err(Error::refused("read the number of a line of the kernel log"));
    // Reading it writes a line.
    let before = Counter::read("numbers of the lines of /dev/kmsg", last)?.start()?;
    job.begin()?;
    let mut line = 0u64;
    let done = job.repeat(|| {
        line += 1;
        say(line)
    });
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

/// Writes one line, as a warning: the least that consoles show as most machines are set.
fn say(number: u64) -> io::Result<()> {
    let line = format!("<4>stillcore: a line for the console, number {number:<16}\n");
    OpenOptions::new().write(true).open(PATH)?.write_all(line.as_bytes())
}

/// The number of a line that is written now.
fn last_number() -> io::Result<u64> {
    let mut log = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(PATH)?;
    log.seek(SeekFrom::End(0))?;
    say(0)?;
    read_number(&mut log)
}

/// Reads a record: `priority,number,time,flags;text` (Documentation/ABI/testing/dev-kmsg).
fn read_number(log: &mut File) -> io::Result<u64> {
    let mut record = [0; 1024];
    let length = log.read(&mut record)?;
    number_of(&String::from_utf8_lossy(&record[..length])).ok_or_else(|| Errno::BADMSG.into())
}

fn number_of(record: &str) -> Option<u64> {
    record.split_once(';')?.0.split(',').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_numbered_in_the_second_field() {
        assert_eq!(number_of("12,7034,881,-;stillcore: 1,2"), Some(7034));
        assert_eq!(number_of("12,7034"), None);
        assert_eq!(number_of("a;12,13"), None);
    }
}
