//! Pipes that never block, as wide as asked where the kernel allows it.
//!
//! In packet mode (`O_DIRECT`, pipe(2)) a write of at most PIPE_BUF bytes is one packet, and a read
//! takes one packet: boundaries of messages stay. A pipe's size counts pages, and each packet takes
//! a page of its own (`fs/pipe.c`).

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{read, writev};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};
use std::io::{self, IoSlice};

/// Bytes of one page of a pipe, and of the longest packet.
pub const PAGE: usize = 4096;

/// Reading and writing end of a pipe. EINVAL where packets are requested and the kernel has none
/// (before 3.4).
pub fn pipe(packets: bool) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    Ok(pipe_with(if packets { flags | PipeFlags::DIRECT } else { flags })?)
}

/// Lets reads and writes of a pipe that another process may hold fail with EAGAIN instead of
/// waiting.
pub fn never_wait(pipe: &impl AsFd) -> io::Result<()> {
    Ok(fcntl_getfl(pipe).and_then(|flags| fcntl_setfl(pipe, flags | OFlags::NONBLOCK))?)
}

/// Makes a pipe at least so wide, or as wide as a user without CAP_SYS_RESOURCE may
/// (`fs.pipe-max-size`), or leaves it as it is; returns its bytes.
pub fn widen(pipe: &impl AsFd, bytes: usize) -> io::Result<usize> {
    let most = || std::fs::read_to_string("/proc/sys/fs/pipe-max-size").ok()?.trim().parse::<usize>().ok();
    if bytes > fcntl_getpipe_size(pipe)?
        && fcntl_setpipe_size(pipe, bytes).is_err()
        && let Some(most) = most()
    {
        // A user who has many pipes already may not even do this (`fs.pipe-user-pages-soft`); what
        // there is, is read back below.
        let _ = fcntl_setpipe_size(pipe, most.min(bytes));
    }
    Ok(fcntl_getpipe_size(pipe)?)
}

/// Writes both parts in one call; how many bytes the pipe took. EAGAIN where it is full.
#[inline]
pub fn write_parts(pipe: &impl AsFd, parts: [&[u8]; 2]) -> io::Result<usize> {
    Ok(writev(pipe, &parts.map(IoSlice::new))?)
}

/// Reads what there is: one packet, or up to as many bytes as fit. EAGAIN where it is empty; 0
/// where no writer is left.
#[inline]
pub fn read_some(pipe: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(read(pipe, buffer)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_boundaries() {
        let (read, write) = pipe(true).unwrap();
        write_parts(&write, [b"ab", b"cde"]).unwrap();
        write_parts(&write, [b"f", b""]).unwrap();
        let mut buffer = [0u8; 16];
        assert_eq!(read_some(&read, &mut buffer).unwrap(), 5);
        assert_eq!(&buffer[..5], b"abcde");
        assert_eq!(read_some(&read, &mut buffer).unwrap(), 1);
        assert_eq!(read_some(&read, &mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_pipe_is_at_least_as_wide_as_requested() {
        let (read, write) = pipe(false).unwrap();
        let wide = widen(&read, 300_000).unwrap();
        let bytes = vec![7u8; wide];
        assert_eq!(write_parts(&write, [&bytes, &[]]).unwrap(), wide);
        assert_eq!(write_parts(&write, [&bytes, &[]]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
