//! Socket options that no library offers: `setsockopt(2)` of a value as it lies in memory.

use rustix::fd::{AsFd, AsRawFd};
use std::io;

/// Sets an option to a value whose layout is the kernel's.
///
/// # Safety
/// Pointers within `value` must lead to memory that the option may read.
pub(super) unsafe fn set<T>(socket: &impl AsFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let (fd, length) = (socket.as_fd().as_raw_fd(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the kernel reads `length` bytes of `value`, which lives until the call returns; its
    // pointers are the caller's promise.
    let result = unsafe { libc::setsockopt(fd, level, option, std::ptr::from_ref(value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Switches an option of the socket level on or off.
pub(super) fn switch(socket: &impl AsFd, option: i32, on: bool) -> io::Result<()> {
    // SAFETY: a number holds no pointer.
    unsafe { set(socket, libc::SOL_SOCKET, option, &i32::from(on)) }
}
