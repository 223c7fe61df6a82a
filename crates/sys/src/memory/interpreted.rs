//! Shared memory under Miri, whose interpreter has no `memfd_create` and no shared mapping: one
//! allocation for each file, which all its mappings are.

use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::collections::BTreeMap;
use std::io;
use std::ptr::NonNull;
use std::sync::Mutex;

/// The allocation of each file, by its number. They are never freed: a test ends soon.
static FILES: Mutex<BTreeMap<RawFd, Memory>> = Mutex::new(BTreeMap::new());

struct Memory(NonNull<u8>);

// SAFETY: plain memory, as a mapping is.
unsafe impl Send for Memory {}

/// A file that is nothing but a number.
pub(super) fn file(bytes: usize) -> io::Result<OwnedFd> {
    let file: OwnedFd = std::fs::File::open("/dev/null")?.into();
    let layout = Layout::from_size_align(bytes, 4096).map_err(io::Error::other)?;
    // SAFETY: nobody asks for shared memory of no bytes.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
    FILES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(file.as_raw_fd(), Memory(start));
    Ok(file)
}

/// Where its memory begins.
pub(super) fn start(file: &impl AsFd) -> io::Result<NonNull<u8>> {
    let files = FILES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let memory = files.get(&file.as_fd().as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
    Ok(memory.0)
}
