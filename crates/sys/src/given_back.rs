//! Memory of this process that was needed for a moment alone: it can be given back.

use rustix::mm::{Advice, madvise};
use std::ffi::c_void;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Gives back what the allocator holds for later, of this thread and of those that have ended. It
/// does so by itself only when much is allocated, which a program that stays may never do again.
pub fn free() {
    // SAFETY: it takes no memory that is in use (mimalloc's documentation), from any thread.
    #[cfg(target_env = "musl")]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}

/// The number of mimalloc's option `purge_delay` (its mimalloc.h, versions 2 and 3).
#[cfg(target_env = "musl")]
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// From here on the allocator gives back at once what it no longer needs, and not only some time
/// later, by when something else may lie beside it; and the kernel backs what is needed with small
/// pages: where it gives huge ones unasked (transparent_hugepage, `always`), 2 MiB are resident for
/// each page that is used. Children are given such pages no more either ([`huge_pages_again`]). For
/// programs that stay.
pub fn at_once() {
    // Where it is refused, more is resident.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    // SAFETY: an option is a number that the allocator reads (mimalloc's documentation).
    #[cfg(target_env = "musl")]
    unsafe {
        libmimalloc_sys::mi_option_set(PURGE_DELAY, 0);
    }
}

/// Lets the child, a program of the user's, have huge pages as the machine gives them.
pub fn huge_pages_again(command: &mut Command) {
    // SAFETY: it makes only an async-signal-safe call and allocates nothing.
    unsafe {
        command.pre_exec(|| {
            let _ = rustix::thread::disable_transparent_huge_pages(false);
            Ok(())
        });
    }
}

/// The program's file in this process' memory: its code, and constants that are never written. For
/// programs that stay.
pub struct Program(Vec<(usize, usize)>);

impl Program {
    /// That of this process; without /proc nothing is known of it, and nothing given back.
    pub fn own() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let own = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        Self(mappings(&maps, &own.display().to_string()))
    }

    /// Takes its pages out of this process' memory. The kernel maps those that are used again from
    /// its cache, one fault for some sixteen of them.
    pub fn give_back(&self) {
        for &(start, length) in &self.0 {
            // SAFETY: these pages are never written to, not even by relocations, so they hold what
            // the file holds, and come back as they were (madvise(2), MADV_DONTNEED).
            let _ = unsafe { madvise(start as *mut c_void, length, Advice::LinuxDontNeed) };
        }
    }
}

/// Start and length of the private mappings of a file that are never written to, by
/// proc_pid_maps(5): code, and the constants at the file's beginning. Other constants are written
/// once, by relocations.
fn mappings(maps: &str, file: &str) -> Vec<(usize, usize)> {
    let mapping = |line: &str| {
        let mut words = line.splitn(6, ' ');
        let (range, mode, offset) = (words.next()?, words.next()?, words.next()?);
        let name = words.nth(2)?.trim_start();
        let at_the_beginning = mode == "r--p" && offset.bytes().all(|digit| digit == b'0');
        if name != file || !(mode == "r-xp" || at_the_beginning) {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|hex| usize::from_str_radix(hex, 16));
        let (start, end) = (start.ok()?, end.ok()?);
        Some((start, end.checked_sub(start)?))
    };
    maps.lines().filter_map(mapping).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_never_written_is_given_back() {
        let maps = "7f00-7f20 r--p 00000000 00:20 77  /usr/bin/still core\n7f20-8000 r-xp 00002000 00:20 77  /usr/bin/still core\n\
                    8000-8100 rw-p 00002000 00:20 77  /usr/bin/still core\n8100-8200 r--p 00003000 00:20 77  /usr/bin/still core\n\
                    9000-9100 r-xp 00000000 00:20 78  /lib/x.so\n\
                    a000-a100 r--s 00000000 00:20 77  /usr/bin/still core\nb000-b100 rw-p 00000000 00:00 0 [heap]\n";
        assert_eq!(mappings(maps, "/usr/bin/still core"), [(0x7f00, 0x20), (0x7f20, 0xe0)]);
    }

    #[test]
    fn the_program_goes_on() {
        let disabled = || std::fs::read_to_string("/proc/self/status").unwrap().contains("THP_enabled:\t0");
        at_once();
        assert!(disabled());
        let mut child = Command::new("grep");
        huge_pages_again(child.args(["-q", "THP_enabled:\t1", "/proc/self/status"]));
        assert!(child.status().unwrap().success());
        Program::own().give_back();
        free();
        assert_eq!("it is".len() + std::hint::black_box(2), 7);
    }

    #[test]
    #[cfg(target_env = "musl")]
    fn the_option_is_the_one_that_is_meant() {
        let version = unsafe { libmimalloc_sys::mi_version() };
        let delay = unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert!(delay == 0 || delay == 10 || delay == 1000, "{delay} of version {version}");
    }
}
