//! Swap areas: swapoff(2) and swapon(2), with the priority that the area had.

use crate::error::Error;
use std::ffi::CString;
use std::fs;

/// `SWAP_FLAG_PREFER` and `SWAP_FLAG_PRIO_MASK` of swapon(2), which libc lacks.
const PREFER: i32 = 0x8000;
const PRIORITY: i32 = 0x7fff;

pub(super) fn read(area: &str) -> Result<Option<String>, Error> {
    let text = match fs::read_to_string("/proc/swaps") {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::os("read", "/proc/swaps", error)),
    };
    let fields = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let priority =
        fields.filter(|fields| fields.len() == 5 && fields[0] == area).map(|fields| fields[4].to_owned());
    Ok(Some(priority.last().map_or_else(|| "off".to_owned(), |priority| format!("on {priority}"))))
}

pub(super) fn write(area: &str, value: &str) -> Result<(), Error> {
    let path = CString::new(unescaped(area)).map_err(|_| Error::failed("swap", "a path with a zero byte"))?;
    let on = value.strip_prefix("on ");
    // Priorities below zero are the kernel's own choice.
    let flags = match on.and_then(|priority| priority.parse::<i32>().ok()) {
        Some(priority) if priority >= 0 => PREFER | (priority & PRIORITY),
        _ => 0,
    };
    // SAFETY: the path is a valid C string; the kernel only reads it.
    let result = unsafe {
        if on.is_some() { libc::swapon(path.as_ptr(), flags) } else { libc::swapoff(path.as_ptr()) }
    };
    let action = if on.is_some() { "switch on swap at" } else { "switch off swap at" };
    if result == 0 { Ok(()) } else { Err(Error::os(action, area, std::io::Error::last_os_error())) }
}

/// A path of `/proc/swaps`, where blanks are spelled in octal.
fn unescaped(area: &str) -> Vec<u8> {
    let mut path = Vec::new();
    let mut rest = area.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal =
            after.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        let (one, left) = match octal.filter(|_| byte == b'\\') {
            Some(code) => (code, &after[3..]),
            None => (byte, after),
        };
        path.push(one);
        rest = left;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_paths_are_spelled_in_octal() {
        assert_eq!(unescaped("/swap\\040file\\0121"), b"/swap file\n1");
        assert_eq!(unescaped("/dev/dm-0\\"), b"/dev/dm-0\\");
    }
}
