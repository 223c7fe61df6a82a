//! Kernel modules: loaded from a file, unloaded by name, and restored.
//!
//! `finit_module(2)`, `delete_module(2)`; `/proc/modules` lists what is loaded, and how often each
//! is used (proc(5)).

use crate::error::Error;
use rustix::io::Errno;
use rustix::system::{delete_module, finit_module};
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The separator of name and file in the target of a change.
const SEPARATOR: char = '#';
/// `delete_module(2)`: fail where it is in use.
const AT_ONCE: i32 = libc::O_NONBLOCK;
/// `finit_module(2)`: `MODULE_INIT_COMPRESSED_FILE`.
const COMPRESSED: i32 = 4;

/// How often a module is used; `None` where it is not loaded.
pub fn uses(modules: &str, name: &str) -> Option<u64> {
    modules.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == name).then(|| words.nth(1)?.parse().ok())?
    })
}

/// How often a module is used on this machine; `None` where it is not loaded.
pub fn uses_here(name: &str) -> Option<u64> {
    uses(&fs::read_to_string("/proc/modules").unwrap_or_default(), name)
}

/// Loads a module; the kernel itself decompresses it, since 5.17 and where it was built to.
pub fn load(file: &Path) -> io::Result<()> {
    let plain = file.extension().is_some_and(|end| end == "ko");
    Ok(finit_module(File::open(file)?, c"", if plain { 0 } else { COMPRESSED })?)
}

/// Unloads a module that nobody uses.
pub fn unload(name: &str) -> io::Result<()> {
    let name = CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(delete_module(&name, AT_ONCE)?)
}

/// A change of whether a module is loaded: `NAME#FILE`.
pub fn target(name: &str, file: &Path) -> String {
    format!("{name}{SEPARATOR}{}", file.display())
}

/// Name and file of a target.
pub fn of_target(target: &str) -> Option<(&str, &Path)> {
    target.split_once(SEPARATOR).map(|(name, file)| (name, Path::new(file)))
}

/// Makes it loaded or not loaded again. One that somebody uses by now stays.
pub fn give_back(name: &str, file: &Path, loaded: bool) -> Result<(), Error> {
    let outcome = match (loaded, uses_here(name)) {
        (true, None) => load(file),
        (false, Some(0)) => unload(name),
        _ => Ok(()),
    };
    let gone = |error: &io::Error| error.raw_os_error() == Some(Errno::NOENT.raw_os_error());
    outcome
        .or_else(|error| if gone(&error) { Ok(()) } else { Err(error) })
        .map_err(|source| Error::os(if loaded { "load" } else { "unload" }, format!("module {name}"), source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_found_by_the_whole_name() {
        let text = "ts_fsm 16384 0 - Live 0x0\nts 16384 3 a,b, Live 0x0\n";
        assert_eq!((uses(text, "ts_fsm"), uses(text, "ts"), uses(text, "t")), (Some(0), Some(3), None));
    }

    #[test]
    fn a_target_holds_name_and_file() {
        let target = target("ts_fsm", Path::new("/lib/a#b.ko"));
        assert_eq!(of_target(&target), Some(("ts_fsm", Path::new("/lib/a#b.ko"))));
        give_back("stillcore_no_such_module", Path::new("/x"), false).unwrap();
    }
}
