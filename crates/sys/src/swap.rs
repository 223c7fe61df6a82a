//! Swap areas: swapon(2) and swapoff(2).

use std::ffi::CString;
use std::io;

/// `SWAP_FLAG_PREFER` and `SWAP_FLAG_PRIO_MASK` of swapon(2), which libc lacks.
const PREFER: i32 = 0x8000;
const PRIORITY: i32 = 0x7fff;

/// Switches an area on, with this priority; one below zero is the kernel's own choice.
pub fn on(area: &[u8], priority: i32) -> io::Result<()> {
    let path = CString::new(area)?;
    let flags = if priority >= 0 { PREFER | (priority & PRIORITY) } else { 0 };
    // SAFETY: the path is a valid C string; the kernel only reads it.
    checked(unsafe { libc::swapon(path.as_ptr(), flags) })
}

/// Switches an area off.
pub fn off(area: &[u8]) -> io::Result<()> {
    let path = CString::new(area)?;
    // SAFETY: as above.
    checked(unsafe { libc::swapoff(path.as_ptr()) })
}

fn checked(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
